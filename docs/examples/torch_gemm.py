"""The course's kernels for PyTorch: gemm::run() on CUDA tensors of any strides, through ctypes.

    import torch_gemm as course_gemm

    c = course_gemm.matmul(a, b)                              # a @ b
    c = course_gemm.matmul(a, b.T, activation="leaky_relu")   # nothing is copied: a view is only strides
    course_gemm.tune(a, b)                                    # once per shape, and only if you want

Build the library first, where nvcc is: tools/course build gpu course_gemm. It is taken from build/gpu/lib of this checkout, or from
where COURSE_GEMM_LIBRARY says. docs/library.md has more.
"""

import contextlib
import ctypes
import functools
import itertools
import os
import pathlib

import torch

TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # CourseGemmType in common/library/c_interface.h
REFUSED = 1
HERE = pathlib.Path(__file__).resolve().parent
IN_WHEEL = HERE / "libcourse_gemm.so"
BUILT = IN_WHEEL if IN_WHEEL.exists() else HERE.parents[1] / "build" / "gpu" / "lib" / "libcourse_gemm.so"


class Matrix(ctypes.Structure):
    """CourseGemmMatrix: strides in elements."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("cols", ctypes.c_int64),
        ("row_stride", ctypes.c_int64),
        ("col_stride", ctypes.c_int64),
    ]


@functools.cache
def library():
    """The shared library, loaded once. Raises OSError with what to do when it is not there."""
    path = os.environ.get("COURSE_GEMM_LIBRARY", str(BUILT))
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise OSError(f"{error}; build it with 'tools/course build gpu course_gemm', or name it in COURSE_GEMM_LIBRARY") from error
    matrices, types = [ctypes.POINTER(Matrix)] * 3, [ctypes.c_int] * 2
    loaded.course_gemm_run.argtypes = [*matrices, *types, ctypes.c_float, ctypes.c_void_p]
    loaded.course_gemm_tune.argtypes = loaded.course_gemm_run.argtypes
    loaded.course_gemm_choice.argtypes = [*matrices, *types, ctypes.c_char_p, ctypes.c_size_t]
    loaded.course_gemm_error.restype = ctypes.c_char_p
    return loaded


def matmul(a, b, out=None, activation=None, slope=0.01, out_dtype=None):
    """activation(a @ b), on PyTorch's current stream; it does not wait for the GPU, and CUDA graphs capture it.

    a and b are what torch.matmul takes: matrices, vectors, and batches of matrices, which are broadcast. Both are float32, float16 or
    bfloat16, of any strides. Sums are float32; the activation gets them before they are rounded. OUT, or a new tensor, has the type of a
    and b, or float32. ACTIVATION is None or "leaky_relu", x where x >= 0, else slope * x.

    torch.compile takes it as one operator, course_gemm::matmul. A gradient is two more products; not with OUT, as in torch.matmul. A
    batch of matrices beside one matrix is one launch where its rows lie evenly; else each matrix is one.

    Raises ValueError for what the contract does not allow (common/gemm/gemm.h), TypeError for other tensors, RuntimeError for what
    CUDA refuses.
    """
    if activation not in (None, "leaky_relu"):
        raise ValueError(f"activation {activation!r}: there is None and 'leaky_relu'")
    factor = slope if activation else 1.0
    if a.dim() == 2 and b.dim() == 2:
        return _matrix_product(a, b, out, factor, out_dtype)
    return _batched(a, b, out, factor, out_dtype)


def _matrix_product(a, b, out, slope, out_dtype):
    if torch.compiler.is_compiling():
        if out is None:
            return torch.ops.course_gemm.matmul(a, b, slope, out_dtype)
        torch.ops.course_gemm.matmul_out(a, b, out, slope)
        return out
    if out is None and torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return torch.ops.course_gemm.matmul(a, b, slope, out_dtype)
    return _call(library().course_gemm_run, a, b, out, out_dtype, slope)  # without the microseconds that an operator costs


def _batched(a, b, out, slope, out_dtype):
    if a.dim() == 0 or b.dim() == 0:
        raise TypeError("a and b have to have one dimension at least")
    of_rows, of_cols = a.dim() == 1, b.dim() == 1  # vectors: a row and a column
    a, b = a.unsqueeze(0) if of_rows else a, b.unsqueeze(1) if of_cols else b
    try:
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except RuntimeError as error:
        raise ValueError(f"the batches of a, {tuple(a.shape)}, and of b, {tuple(b.shape)}, do not fit: {error}") from error
    m, n = a.shape[-2], b.shape[-1]
    shape = (*batch, *(() if of_rows else (m,)), *(() if of_cols else (n,)))
    if out is not None and out.shape != shape:
        raise ValueError(f"out is {tuple(out.shape)}, the product {tuple(shape)}")
    flat = b.dim() == 2 and a.numel() > 0 and _rows_of(a) is not None
    if out is None and flat:
        return _matrix_product(_rows_of(a), b, None, slope, out_dtype).reshape(shape)
    if out is None and batch and torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        pairs = zip(a.expand(*batch, *a.shape[-2:]).flatten(0, -3), b.expand(*batch, *b.shape[-2:]).flatten(0, -3), strict=True)
        products = [_matrix_product(x, y, None, slope, out_dtype) for x, y in pairs]
        return torch.stack(products).reshape(shape) if products else a.new_empty(shape, dtype=out_dtype)
    result = torch.empty(shape, dtype=out_dtype or a.dtype, device=a.device) if out is None else out
    whole = result.unsqueeze(-1) if of_cols else result
    whole = whole.unsqueeze(-2) if of_rows else whole
    for at in itertools.product(*(range(size) for size in batch)):
        _matrix_product(a.expand(*batch, *a.shape[-2:])[at], b.expand(*batch, *b.shape[-2:])[at], whole[at], slope, out_dtype)
    return result


def _rows_of(a):
    """All rows of a batch as one matrix, without a copy; or None."""
    try:
        return a.view(-1, a.shape[-1])
    except RuntimeError:
        return None


@torch.library.custom_op("course_gemm::matmul", mutates_args=(), device_types="cuda")
def _operator(a: torch.Tensor, b: torch.Tensor, slope: float, out_dtype: torch.dtype | None) -> torch.Tensor:
    with torch.no_grad():
        return _call(library().course_gemm_run, a, b, None, out_dtype, slope)


@_operator.register_fake
def _(a, b, slope, out_dtype):
    return a.new_empty(a.shape[0], b.shape[1], dtype=out_dtype or a.dtype)


@torch.library.custom_op("course_gemm::matmul_out", mutates_args=("out",), device_types="cuda")
def _operator_out(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, slope: float) -> None:
    with torch.no_grad():
        _call(library().course_gemm_run, a, b, out, None, slope)


@_operator_out.register_fake
def _(a, b, out, slope):
    return None


def _keep(ctx, inputs, output):
    a, b, ctx.slope, _ = inputs
    ctx.save_for_backward(a, b, output if ctx.slope != 1 else None)


def _gradient(ctx, gradient):
    a, b, output = ctx.saved_tensors
    if output is not None:  # whose sign is that of the sum, if the slope is not negative
        if ctx.slope < 0:
            raise ValueError(f"slope {ctx.slope}: there is no gradient for one below 0, for the result's sign does not tell the sum's")
        gradient = torch.ops.aten.leaky_relu_backward(gradient, output, ctx.slope, True)
    gradient = gradient.to(a.dtype)
    product = torch.ops.course_gemm.matmul  # the operator itself: torch.compile traces this too, and then is_compiling() is false
    of_a = product(gradient, b.T, 1.0, None) if ctx.needs_input_grad[0] else None
    of_b = product(a.T, gradient, 1.0, None) if ctx.needs_input_grad[1] else None
    return of_a, of_b, None, None


_operator.register_autograd(_gradient, setup_context=_keep)


def tune(a, b, out=None, out_dtype=None):
    """Times the kernels that could be the best for these shapes, types and strides, and keeps what it finds on disk: from now on
    matmul() takes the fastest. Waits for the GPU, for about a second. Returns the product."""
    return _call(library().course_gemm_tune, a, b, out, out_dtype, 1.0)


def choice(a, b, out=None, out_dtype=None):
    """What matmul() would launch: "12_persistent 128x256x64 s4 g8, by model 215.1 us"."""
    out = _checked(a, b, out, out_dtype)
    text = ctypes.create_string_buffer(256)
    with _on_device(a):
        _raise_for(library().course_gemm_choice(*_matrices(a, b, out), TYPES[a.dtype], TYPES[out.dtype], text, len(text)))
    return text.value.decode()


def _call(function, a, b, out, out_dtype, slope):
    result = _checked(a, b, out, out_dtype)
    with _on_device(a):
        stream = torch.cuda.current_stream().cuda_stream
        _raise_for(function(*_matrices(a, b, result), TYPES[a.dtype], TYPES[result.dtype], slope, stream))
    if out is not None and not out.is_inference():
        torch.autograd.graph.increment_version(out)  # PyTorch has not seen that it changed
    return result


def _on_device(tensor):
    """The library works on the current device; to make one current takes microseconds, even if it is already."""
    return contextlib.nullcontext() if tensor.get_device() == torch.cuda.current_device() else torch.cuda.device(tensor.device)


def _checked(a, b, out, out_dtype):
    """OUT, or a new tensor. Raises for what C++ could not see."""
    for name, tensor in (("a", a), ("b", b), ("out", out)):
        if tensor is None and name == "out":
            continue
        if not torch.is_tensor(tensor) or tensor.layout != torch.strided or tensor.dim() != 2 or not tensor.is_cuda:
            raise TypeError(f"{name} has to be a dense CUDA tensor of two dimensions")
        if tensor.dtype not in TYPES:
            raise TypeError(f"{name} is {tensor.dtype}; there are kernels for float32, float16 and bfloat16")
        if tensor.device != a.device:
            raise TypeError(f"{name} is on {tensor.device}, a on {a.device}")
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise TypeError(f"{name} requires a gradient, and there is none with out, nor of tune: use torch.no_grad(), or detach {name}")
        if tensor.is_neg():
            raise TypeError(f"{name} is a negative view: resolve_neg() makes its elements what they seem to be")
    if a.dtype != b.dtype:
        raise TypeError(f"a is {a.dtype}, b is {b.dtype}; they have to have the same type")
    if out is not None and out.is_inference() and not torch.is_inference_mode_enabled():
        raise TypeError("out was made in inference mode, and can be written in it alone")
    if out is None:
        return torch.empty(a.shape[0], b.shape[1], dtype=out_dtype or a.dtype, device=a.device)
    if out_dtype not in (None, out.dtype):
        raise TypeError(f"out is {out.dtype}, and out_dtype says {out_dtype}")
    return out


def _matrices(*tensors):
    return [ctypes.byref(Matrix(t.data_ptr(), *t.shape, *t.stride())) for t in tensors]


def _raise_for(status):
    if status:
        message = library().course_gemm_error().decode()
        raise ValueError(message) if status == REFUSED else RuntimeError(message)
