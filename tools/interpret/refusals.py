"""CUDA that stays out of the interpreter: what it is called, and where a program uses it."""

import re

import inline_ptx
from structure import matching, skip_template

# A name that a file includes, and what it stands for.
_HEADERS = (
    (r"mma\.h", "wmma (nvcuda::wmma): the course's mma_m16n8k16 in common/device/ptx.cuh is an instruction like it"),
    (r"cuda_awbarrier\w*\.h", "{} (cuda::barrier of <cuda/barrier> does the same)"),
    (r"(cub|thrust)/.*", "the library {}"),
    (r"(cublas|cufft|cusparse|cusolver|curand|nvrtc|nvjpeg|npp|cudnn|cutlass|nccl)\w*([./].*)?", "the library {}"),
    (r"(cuda_gl_interop|cudaGL|cudaEGL|cuda_egl_interop|GL/.*|vulkan/.*)\.?h?", "graphics"),
    (r"cudaProfiler\.h", "the driver API"),
    (r"mpi\.h", "MPI"),
)
# Words of a program's own text.
_WORDS = (
    (r"cudaTextureObject_t|cudaCreateTextureObject|tex(1D|2D|3D|Cubemap)\w*|textureReference", "textures"),
    (r"cudaSurfaceObject_t|cudaCreateSurfaceObject|surf(1D|2D|3D|Cubemap)\w*", "surfaces"),
    (r"cudaArray_t|cudaMallocArray|cudaMalloc3DArray|cudaMemcpyToArray|cudaMemcpy2DToArray\w*|cudaMipmappedArray_t", "CUDA arrays, which are for textures"),
    (r"cudaMalloc3D|cudaMemcpy3D\w*|cudaMemset3D\w*", "three-dimensional copies"),
    (r"wmma|nvcuda", "wmma"),
    (r"cudaOccupancyMaxActiveClusters|cudaOccupancyMaxPotentialClusterSize", "how many clusters a GPU holds"),
    (r"cudaGraph\w+|cudaStreamBeginCapture|cudaStreamEndCapture", "CUDA graphs"),
    (r"cudaIpc\w+|cudaImportExternal\w+", "memory shared between processes"),
    (r"cudaGraphics\w+", "graphics"),
    (r"__shfl|__shfl_up|__shfl_down|__shfl_xor|__any|__all|__ballot", "warp functions without _sync, which sm_70 and later do not have"),
    (
        r"(?!cuTensorMapEncodeTiled\Z)cu(Init|DriverGet|Get(Proc|Error)|Device|(Device)?PrimaryCtx|Ctx|Module|Library|Kernel|Link|Func|Launch|Mem|Pointer|Stream|Event"
        r"|Array|Tex|Surf|TensorMap|Occupancy|Graph|Multicast|Green)\w*",
        "the driver API",
    ),
    (r"multi_grid_group|this_multi_grid|cudaLaunchCooperativeKernelMultiDevice", "launches on several devices"),
    (r"clusterlaunchcontrol\w*", "blocks that take over the work of others"),
    # <nv/target> would take the host's side in kernels.
    (r"NV_IF_TARGET|NV_IF_ELSE_TARGET|NV_DISPATCH_TARGET", "code for one target, as #ifdef __CUDA_ARCH__ has it"),
)
_TYPES = {"int", "float", "double", "bool", "char", "unsigned", "signed", "long", "short", "half", "__half", "float2", "float4"}
_ONLY_CALLS = re.compile(r"__|cu[A-Z]")  # without parentheses, such a word may be anybody's variable
_HEADER_PATTERNS = tuple((re.compile(pattern), feature) for pattern, feature in _HEADERS)
_WORD_PATTERNS = tuple((re.compile(rf"(?:{pattern})\Z"), feature) for pattern, feature in _WORDS)
_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]')


class Refusal:
    """`macro` is (path, line) of the definition that makes the line one, if it is a macro's."""

    code = 2  # the exit code

    def __init__(self, path, line, feature, macro=None):
        self.path, self.line, self.feature, self.macro = path, line, feature, macro

    def __str__(self):
        return f"{self.path}:{self.line}: {self.feature}: the interpreter does not have it."


class Mistake(Refusal):
    """What nvcc says to be one, and g++ does not see."""

    code = 1

    def __str__(self):
        return f"{self.path}:{self.line}: error: {self.feature}"


def macros_with_ptx(files):
    """Macros that hold inline PTX that stays out, themselves or by another one: name -> [(what to say, (path, line))].

    `files` are pairs of a path and a rewrite.File. A macro may be defined several times, for other compilers.
    """
    found, used = {}, {}
    for path, file in files:
        for name, body, token in file.definitions():
            partner = matching(body)
            used.setdefault(name, set()).update(t.text for t in body)
            instruction = next(filter(None, (_ptx_at(body, partner, i) for i in range(len(body)))), None)
            if instruction:
                found.setdefault(name, []).append((instruction, (path, file.lines.line(token.start))))
    while True:
        more = {name: found[w] for name, words in used.items() if name not in found for w in words if w in found}
        if not more:
            return found
        found.update(more)


def in_file(path, file, launches, ptx_macros):
    """All uses in one file (rewrite.File) of what stays out, in its order; `launches` are the file's, `ptx_macros` as above."""
    found = []

    def add(offset, feature, macro=None):
        found.append(Refusal(path, file.lines.line(offset), feature, macro))

    for token in file.tokens:
        if token.kind == "directive" and (match := _INCLUDE.match(token.text)):
            for pattern, feature in _HEADER_PATTERNS:
                if name := pattern.fullmatch(match[1]):
                    add(token.start, feature.format(name[0]))
    own = {f.name for f in file.functions}
    for i, token in enumerate(file.visible):
        if token.kind != "word":
            continue
        following = file.visible[i + 1].text if i + 1 < len(file.visible) else ""
        before = file.visible[i - 1].text if i else ""
        if ptx := _ptx_at(file.visible, file.partner, i):
            if file.is_device_code(token.start) is not False:
                add(token.start, ptx)
        elif token.text in ptx_macros and token.text not in own:
            if file.is_device_code(token.start) is not False:
                for instruction, macro in ptx_macros[token.text]:
                    add(token.start, instruction, macro)
        elif token.text not in own and before not in (".", "->"):
            is_call = following == "("
            for pattern, feature in _WORD_PATTERNS:
                if pattern.match(token.text) and (is_call or not _ONLY_CALLS.match(token.text)):
                    add(token.start, f"{feature} ({token.text})" if token.text not in feature else feature)
    found += [Mistake(path, file.lines.line(token.start), what) for token, what in _mistakes(file, launches)]
    for launch in launches:
        token = file.visible[launch.opening]
        function = file.function_at(token.start)
        if function and function.is_device and not function.is_host:
            add(token.start, "dynamic parallelism, a launch in device code")
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


def _ptx_at(visible, partner, i):
    """What to say of the asm statement that begins with token `i`; None if none does, or one that the interpreter has."""
    if inline_ptx.find(visible, partner, i) is None:
        return None
    try:
        inline_ptx.translate(visible, partner, i, lambda first, last: " ".join(t.text for t in visible[first : last + 1]))
    except inline_ptx.NotHere as instruction:
        return f"inline PTX {instruction}"
    return None
