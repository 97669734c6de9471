"""CUDA that stays out of the interpreter: what it is called, and where a program uses it."""

import os
import re

from structure import skip_template

_CUBLAS = ("cublas_v2.h", "cublasLt.h")
_RUNTIME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../common/interpreter/cuda_runtime")
_OWN_CUBLAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../common/interpreter/include")


def _of_cublas():
    """What the interpreter's own cuBLAS has."""
    found = {*(f"cublas{letter}gemm(StridedBatched)?" for letter in "SDH"), "cublas[SD]gemv"}
    for name in _CUBLAS:
        with open(os.path.join(_OWN_CUBLAS, name), encoding="utf-8") as header:
            found.update(re.findall(r"\b(?:cublas|CUBLAS(?:LT)?_)\w+", header.read()))
    return sorted(found)


def _of_graphs():
    """The functions of CUDA graphs that the interpreter has."""
    with open(os.path.join(_RUNTIME, "graph.cpp"), encoding="utf-8") as source:
        return sorted(set(re.findall(r"\bcuda(?:Graph|Stream)\w+(?=\()", source.read())))


_OWN_INCLUDES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")
# What there is of thrust: include/thrust/vectors.h.
_OF_THRUST = {"host_vector", "device_vector", "device_ptr", "device_reference", "raw_pointer_cast", "device_pointer_cast", "copy", "fill", "sequence", "sort", "sort_by_key", "is_sorted", "default_random_engine", "uniform_int_distribution", "uniform_real_distribution"}
_WITHOUT = "Put it between #ifndef WITHOUT_IT and #endif, and give -D WITHOUT_IT."
# Names of headers, what they stand for, the words of a program that use it, and what to do then. An include alone needs nothing of it.
_LIBRARIES = (
    (r"cuda_awbarrier\w*\.h", "awbarrier", r"__mbarrier_\w+|awbarrier", "cuda::barrier of <cuda/barrier> does the same."),
    (r"cub/.*", "the library CUB", r"cub::", _WITHOUT),
    (r"thrust/.*", "the library thrust", r"thrust::", "There are host_vector, device_vector, copy, fill and sort."),
    (r"(cutlass|cute)/.*", "the library CUTLASS", r"cutlass::|cute::", "Name the folder of its headers with -I."),
    (r"cublas\w*\.h", "the library cuBLAS", rf"(?!({'|'.join(_of_cublas())})\b)(cublas[A-Z]|CUBLAS(LT)?_)\w+", "There is gemm: cublasSgemm, cublasGemmEx, cublasLtMatmul and their like."),
    *(
        (rf"{name.lower()}\w*([./].*)?", f"the library {name}", rf"{name.lower()}{'(_|[A-Z]|[(])' if name == 'cuRAND' else '[A-Z]'}\w*|{name.upper()}_\w+", _WITHOUT)
        for name in ("cuFFT", "cuSPARSE", "cuSOLVER", "cuRAND", "NVRTC", "nvJPEG", "cuDNN", "NCCL")
    ),
    (r"npp\w*([./].*)?", "the library NPP", r"npp\w+|Npp\w+|NPP_\w+", _WITHOUT),
    (r"(cuda_gl_interop|cudaGL|cudaEGL|cuda_egl_interop|GL/.*|vulkan/.*)\.?h?", "graphics", r"(cudaGraphics|cudaGL|cuGraphics|gl|glut|glew|vk)[A-Z]\w*|GL_\w+|GL[a-z]\w+|Vk\w+", _WITHOUT),
    (r"cudaProfiler\.h", "the driver API", r"cuProfiler\w+", "cudaProfilerStart and cudaProfilerStop do the same."),
    (r"mpi\.h", "MPI", r"MPI_\w+", _WITHOUT),
)
# What the interpreter has of the driver API: common/interpreter/cuda_runtime/driver.cpp.
_OF_DRIVER = ("cuTensorMapEncodeTiled", "cuInit", "cuDriverGetVersion", "cuGetError(Name|String)", "cuDeviceGet(Count|Name|Attribute)?", "cuCtxSynchronize")
_GLOBAL_MEMORY = "Read global memory through a pointer instead."
# Words of a program's own text, what they stand for, and what to do.
_WORDS = (
    (r"cudaTextureObject_t|cudaCreateTextureObject|tex(1D|2D|3D|Cubemap)\w*|textureReference", "textures", _GLOBAL_MEMORY),
    (r"cudaSurfaceObject_t|cudaCreateSurfaceObject|surf(1D|2D|3D|Cubemap)\w*", "surfaces", _GLOBAL_MEMORY),
    (r"cudaArray_t|cudaMallocArray|cudaMalloc3DArray|cudaMemcpyToArray|cudaMemcpy2DToArray\w*|cudaMipmappedArray_t", "CUDA arrays, which are for textures", _GLOBAL_MEMORY),
    (r"cudaMemcpy3D\w*", "three-dimensional copies between devices", "There is one device."),
    (r"cudaOccupancyMaxActiveClusters|cudaOccupancyMaxPotentialClusterSize", "how many clusters a GPU holds", "Give a number."),
    (r"cudaGraphSetConditional|cudaGraphConditionalHandleCreate\w*", "conditions in CUDA graphs", "Let the host decide, and launch a graph for each."),
    (rf"(?!(cudaGraph\w*Conditional\w*|{'|'.join(_of_graphs())})\b)cuda(Graph[A-Z]\w*|Stream[A-Z]\w*Capture\w*)", "this of CUDA graphs", "docs/interpret.md lists what it has."),
    (r"cudaIpc\w+|cudaImportExternal\w+", "memory shared between processes", "Use one process."),
    (r"cudaGraphics\w+", "graphics", _WITHOUT),
    (r"__shfl|__shfl_up|__shfl_down|__shfl_xor|__any|__all|__ballot", "warp functions without _sync, which sm_70 and later do not have", "Write _sync behind the name, and a mask."),
    (
        rf"(?!({'|'.join(_OF_DRIVER)})\(?\Z)cu(Init|DriverGet|Get(Proc|Error)|Device|(Device)?PrimaryCtx|Ctx|Module|Library|Kernel|Link|Func|Launch|Mem|Pointer|Stream|Event"
        r"|Array|Tex|Surf|TensorMap|Occupancy|Graph|Multicast|Green)\w*",
        "the driver API",
        "The runtime's functions, cuda..., do the same.",
    ),
    (r"multi_grid_group|this_multi_grid|cudaLaunchCooperativeKernelMultiDevice", "launches on several devices", "There is one device."),
    (r"clusterlaunchcontrol\w*", "blocks that take over the work of others", _WITHOUT),
    # <nv/target> would take the host's side in kernels.
    (r"NV_IF_TARGET|NV_IF_ELSE_TARGET|NV_DISPATCH_TARGET", "code for one target", "#ifdef __CUDA_ARCH__ does the same."),
)
# Host functions that CUDA's headers declare: who calls none compiles, so it is the linker that knows whether a program needs them.
_LINKED = ("the driver API", "memory shared between processes", "three-dimensional copies between devices", "this of CUDA graphs")
_TYPES = {"int", "float", "double", "bool", "char", "unsigned", "signed", "long", "short", "half", "__half", "float2", "float4"}
_ONLY_CALLS = re.compile(r"__|cu[A-Z]|cudaGraph[A-Z]|cudaStream")  # without parentheses, such a word may be anybody's variable
_USE = r"(?:{})(?:\(|::)?\Z"  # of a word with what follows it
_LIBRARY_PATTERNS = tuple((re.compile(header), (re.compile(_USE.format(words)), feature, way)) for header, feature, words, way in _LIBRARIES)
_WORD_PATTERNS = tuple((re.compile(_USE.format(words)), feature, way) for words, feature, way in _WORDS)
_ANY_WORD = re.compile(_USE.format("|".join(words for words, _, _ in _WORDS)))


def is_left_out(header):
    """Whether a header of that name, which is not the program's own, is none of the interpreter's."""
    is_there = header in _CUBLAS or os.path.isfile(os.path.join(_OWN_INCLUDES, header))
    return not is_there and library(header) is not None


def library(header):
    """What in_file() needs to find the uses of a library that stays out, by the name that a program includes; None for any other header."""
    return next((uses for pattern, uses in _LIBRARY_PATTERNS if pattern.fullmatch(header)), None)


class Refusal:
    """`word` is what of the feature the line uses; `macro` is (path, line) of the definition that makes the line one, if it is a macro's;
    `way` says what to do."""

    code = 2  # the exit code

    def __init__(self, path, line, feature, way="", word="", macro=None):
        self.path, self.line, self.feature, self.way, self.word, self.macro = path, line, feature, way, word, macro

    @property
    def is_linked(self):
        """Whether it counts only if the linker does not find the word."""
        return self.feature in _LINKED

    def __str__(self):
        what = f"{self.feature} ({self.word})" if self.word not in self.feature else self.feature
        return f"{self.path}:{self.line}: {what}: the interpreter does not have it. {self.way}".rstrip()


class Mistake(Refusal):
    """What nvcc says to be one, and g++ does not see."""

    code = 1

    def __str__(self):
        return f"{self.path}:{self.line}: error: {self.feature}"


def told(refusals):
    """All refusals as lines: one for each feature in a file, with the other lines that use it."""
    groups = {}
    for refusal in refusals:
        groups.setdefault((refusal.path, refusal.feature), []).append(refusal)
    for first, *others in groups.values():
        more = sorted({r.line for r in others} - {first.line})
        also = f" Also line{'s' if len(more) > 1 else ''} {', '.join(map(str, more))}." if more else ""
        yield f"{first}{also}"


def in_macros(files, libraries, own=frozenset()):
    """Macros that use what stays out, themselves or by another one: name -> [(feature, what to do, word, (path, line))].

    `files` are pairs of a path and a rewrite.File. A macro may be defined several times, for other compilers. `own` are names that the
    program gives to something else.
    """
    found, used = {}, {}
    for path, file in files:
        for name, body, token in file.definitions():
            used.setdefault(name, set()).update(t.text for t in body)
            for i in (i for i in range(len(body)) if body[i].text not in own):
                for use in _uses_at(body, i, libraries):
                    found.setdefault(name, []).append((*use, (path, file.lines.line(token.start))))
    while True:
        more = {name: found[w] for name, words in used.items() if name not in found for w in words if w in found}
        if not more:
            return found
        found.update(more)


def _uses_at(visible, i, libraries):
    """What stays out and is used by the word at index `i`: its name, what to do, and the word. `libraries` are those of library()."""
    text, before = visible[i].text, visible[i - 1].text if i else ""
    if visible[i].kind != "word" or before in (".", "->") or not (libraries or _ANY_WORD.match(text)):
        return
    following = "::" if before == "namespace" else visible[i + 1].text if i + 1 < len(visible) else ""
    use = text + following if following in ("(", "::") else text
    for pattern, feature, way in _WORD_PATTERNS:
        if pattern.match(use) and (following == "(" or not _ONLY_CALLS.match(text)):
            yield feature, way, text
    if use == "thrust::" and i + 2 < len(visible) and visible[i + 2].text in _OF_THRUST:
        return
    for pattern, feature, way in libraries:
        if pattern.match(use):
            yield feature, way, text


def in_file(path, file, launches, libraries=(), macros=(), own=frozenset()):
    """All uses in one file (rewrite.File) of what stays out, in its order; `launches` are the file's; `libraries` what library() gives for the
    program's includes; `macros` are as above; `own` are names that the program gives to something else."""
    found = []
    own = own | {f.name for f in file.functions}
    for i, token in enumerate(file.visible):
        if token.kind == "word" and (token.text in macros or token.text not in own):
            line = file.lines.line(token.start)
            uses = macros[token.text] if token.text in macros else _uses_at(file.visible, i, libraries)
            found += [Refusal(path, line, *use) for use in uses]
    found += [Mistake(path, file.lines.line(token.start), what) for token, what in _mistakes(file, launches)]
    for launch in launches:
        token = file.visible[launch.opening]
        function = file.function_at(token.start)
        if function and function.is_device and not function.is_host:
            line = file.lines.line(token.start)
            found.append(Refusal(path, line, "dynamic parallelism, a launch in device code", "Launch it from the host."))
    return sorted(found, key=lambda refusal: refusal.line)


def _mistakes(file, launches):
    """What nvcc refuses in its own words, as (token, words); only what is certain, for macros and other files are not looked at."""
    v = file.visible
    kernels = {f.name for f in file.functions if f.is_kernel}
    others = {f.name for f in file.functions if not f.is_kernel}
    for f in file.functions:
        if f.is_kernel and _has_result(file, f):
            yield v[f.head], "a __global__ function must have a void return type"
        own = _declared(v, f.head, f.end)
        for i in range(f.body + 1, f.end):
            is_call = v[i + 1].text == "(" and v[i - 1].text in (";", "{", "}", "else", "do")
            if is_call and v[i].text in kernels - others - own:
                yield v[i], f"a __global__ function call must be configured: {v[i].text}<<<grid, block>>>(...)"
    for launch in launches:
        name, around = v[launch.kernel], file.function_at(v[launch.kernel].start)
        own = _declared(v, around.head, launch.kernel) if around else {name.text}
        if launch.opening == launch.kernel + 1 and name.text in others - kernels - own:
            yield name, f"a host function call cannot be configured: {name.text} is not __global__"


def _declared(visible, first, last):
    """The names that tokens [first, last) declare, and others: all that may stand behind a type."""
    return {visible[i].text for i in range(first, last) if visible[i - 1].kind == "word" or visible[i - 1].text in ("*", "&", ">", ",", "[")}


def _has_result(file, kernel):
    """Whether a type that is the language's own stands in front of the kernel's name."""
    v, i, words = file.visible, kernel.head, set()
    while i < kernel.body and not (v[i].text == kernel.name and v[i + 1].text == "("):
        words.add(v[i].text)
        i = skip_template(v, i + 1) if v[i].text == "template" else file.partner.get(i, i) + 1
    return bool(words & _TYPES) or {"void", "*"} <= words
