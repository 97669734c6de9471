#!/usr/bin/env python3
"""The Triton peer: a block matmul kernel, tuned for each problem, verified and timed beside cuBLAS as the steps are.

It takes a step's command line and writes a step's result file; README.md says what is compared. Exit code: 0 verified, 1 wrong, 2 refused
input, or a machine without PyTorch, Triton or a GPU; with --probe 0 if they are there, else 1, and one line that says what is missing."""

import contextlib
import ctypes
import math
import random
import re
import sys

sys.dont_write_bytecode = True
import peer
import rounds
from peer import BadInput

NAME = "peer_triton"
DEVICE = "cuda"
MAX_SETS = 8192
GUARD = 512  # elements on both sides of a matrix, that nobody may write to
GUARD_VALUE = -1024.0  # exact in both types
GROUP = 8  # tiles that are timed in the same rounds


def missing():
    """What keeps this machine from running the peer, in a line; '' if nothing does."""
    try:
        import torch
    except Exception as error:  # a broken installation fails in other ways than with ImportError
        return f"PyTorch cannot be imported ({type(error).__name__}): install torch for CUDA"
    try:
        import triton
    except Exception as error:
        return f"Triton cannot be imported ({type(error).__name__}): install triton"
    if not torch.cuda.is_available():
        return "PyTorch finds no GPU that it can use"
    if torch.version.cuda is None:
        return "PyTorch is not built for CUDA"
    major, minor = torch.cuda.get_device_capability()
    if major < 8:
        return f"the GPU has compute capability {major}.{minor}, needed is 8.0 or higher"
    return "" if hasattr(triton, "jit") else "triton has no jit: it is not the compiler of that name"


# --- the machine ---


class Nvml:
    """The driver's version and the GPU's state, as common/harness/measure/nvml.cpp reads them; None for what NVML does not say."""

    REASONS = {
        0x1: "idle",
        0x2: "application clocks",
        0x4: "software power cap",
        0x8: "hardware slowdown",
        0x10: "sync boost",
        0x20: "software thermal slowdown",
        0x40: "hardware thermal slowdown",
        0x80: "hardware power brake",
        0x100: "display clocks",
    }

    def __init__(self, bus_id):
        self.device = ctypes.c_void_p()
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            if self.library.nvmlInit_v2() != 0:
                self.library = None
            elif self.library.nvmlDeviceGetHandleByPciBusId_v2(bus_id.encode(), ctypes.byref(self.device)) != 0:
                self.library = None
        except (OSError, AttributeError):
            self.library = None

    def driver(self):
        text = ctypes.create_string_buffer(80)
        if not self.library or self.library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(80)) != 0:
            return None
        return text.value.decode()

    def number(self, name, scale, *arguments):
        value = ctypes.c_uint()
        try:
            function = getattr(self.library, name)
        except AttributeError:
            return None
        if function(self.device, *arguments, ctypes.byref(value)) != 0:
            return None
        return value.value * scale

    def conditions(self):
        if not self.library:
            return None
        bits = ctypes.c_ulonglong()
        reasons = getattr(self.library, "nvmlDeviceGetCurrentClocksThrottleReasons", None)
        known = reasons is not None and reasons(self.device, ctypes.byref(bits)) == 0
        return {
            "sm_hz": self.number("nvmlDeviceGetClockInfo", 1e6, 1),
            "memory_hz": self.number("nvmlDeviceGetClockInfo", 1e6, 2),
            "power": self.number("nvmlDeviceGetPowerUsage", 1e-3),
            "power_limit": self.number("nvmlDeviceGetEnforcedPowerLimit", 1e-3),
            "temperature": self.number("nvmlDeviceGetTemperature", 1, 0),
            "throttle": [name for bit, name in self.REASONS.items() if known and bits.value & bit],
        }


def bus_id_of_gpu(torch):
    """Of the GPU that PyTorch computes on: the first one that CUDA shows."""
    driver = ctypes.CDLL("libcuda.so.1")
    text, device = ctypes.create_string_buffer(64), ctypes.c_int()
    if driver.cuDeviceGet(ctypes.byref(device), torch.cuda.current_device()) != 0:
        return ""
    return text.value.decode() if driver.cuDeviceGetPCIBusId(text, 64, device) == 0 else ""


def cublas_version():
    """Of the library that PyTorch has loaded: '13.1.0'; None if it cannot be found."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as lines:
            path = next((match[0] for match in map(re.compile(r"/\S*/libcublas\.so\S*").search, lines) if match), None)
        library, parts = ctypes.CDLL(path), []
        for which in range(3):  # major, minor, patch
            value = ctypes.c_int()
            if path is None or library.cublasGetProperty(which, ctypes.byref(value)) != 0:
                return None
            parts.append(str(value.value))
        return ".".join(parts)
    except (OSError, AttributeError, TypeError):
        return None


def describe_gpu(torch, driver):
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    gpu = {
        "name": properties.name,
        "compute_capability": 10 * properties.major + properties.minor,
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "memory_bytes": properties.total_memory,
    }
    if hasattr(properties, "uuid"):  # older versions of PyTorch have none
        gpu["uuid"] = f"GPU-{properties.uuid}"
    return {**gpu, "driver": driver} if driver else gpu


def describe_launch(compiled, tile, spec):
    """The 'launch' of a result, from the driver; None where a version of Triton hides the kernel."""
    try:
        driver, kernel = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(int(compiled.function))
        shared, threads = int(compiled.metadata.shared), 32 * tile.warps

        def attribute(which):
            value = ctypes.c_int()
            if driver.cuFuncGetAttribute(ctypes.byref(value), which, kernel) != 0:
                raise OSError
            return value.value

        static, local, registers = attribute(1), attribute(3), attribute(4)
        resident = ctypes.c_int()
        if driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(resident), kernel, threads, ctypes.c_size_t(shared)
        ):
            raise OSError
    except (OSError, AttributeError, TypeError, ValueError):
        return None
    return {
        "blocks": math.ceil(spec.m / tile.m) * math.ceil(spec.n / tile.n),
        "threads": threads,
        "registers": registers,
        "shared_bytes": static + shared,
        "local_bytes": local,
        "blocks_per_sm": resident.value,
    }


# --- a problem and its data ---


class Wrong(Exception):
    """A result that is not A · B."""


class GuardedMatrix:
    """A matrix in device memory without padding, guard bands around it; `view` is what kernels get."""

    def __init__(self, torch, dtype, rows, cols, transposed):
        self.memory = torch.full((rows * cols + 2 * GUARD,), GUARD_VALUE, dtype=dtype, device=DEVICE)
        inner = self.memory[GUARD : GUARD + rows * cols]
        self.view = inner.view(cols, rows).t() if transposed else inner.view(rows, cols)

    def guards_survive(self):
        return bool((self.memory[:GUARD] == GUARD_VALUE).all() and (self.memory[-GUARD:] == GUARD_VALUE).all())


class Problem:
    """A and B random, C NaN, the reference in double precision, and as many copies of the matrices as the mode asks for."""

    def __init__(self, torch, spec, sets):
        self.torch, self.spec = torch, spec
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[spec.dtype]
        transpose_a, transpose_b = (letter == "t" for letter in spec.layout)
        generator = torch.Generator(device=DEVICE).manual_seed(0)

        def matrix(rows, cols, transposed=False):
            return GuardedMatrix(torch, dtype, rows, cols, transposed)

        first_a, first_b = matrix(spec.m, spec.k, transpose_a), matrix(spec.k, spec.n, transpose_b)
        for each in (first_a, first_b):  # normally distributed, mean 0, deviation 1, as the steps' matrices are
            each.view.copy_(torch.randn(each.view.shape, generator=generator, device=DEVICE, dtype=torch.float32))
        self.a, self.b = [first_a], [first_b]
        for _ in range(sets - 1):
            self.a.append(matrix(spec.m, spec.k, transpose_a))
            self.b.append(matrix(spec.k, spec.n, transpose_b))
            self.a[-1].view.copy_(first_a.view)
            self.b[-1].view.copy_(first_b.view)
        self.c = [matrix(spec.m, spec.n) for _ in range(sets)]
        self.cublas_c = [matrix(spec.m, spec.n) for _ in range(sets)]
        # As BufferSets in common/harness/measure/backend_gpu.cpp: how far a set's matrices are from each other is left to chance.
        for number, matrices in enumerate((self.a, self.b, self.c, self.cublas_c)):
            matrices[1:] = random.Random(number).sample(matrices[1:], sets - 1)
        self.original_a, self.original_b = first_a.view.clone(), first_b.view.clone()

        a, b = first_a.view.double(), first_b.view.double()
        self.sums = a @ b
        magnitudes = a.abs_() @ b.abs_()
        # As common/harness/problem/reference.cpp: k products and k additions in float, in any order, then one rounding to C's type. Infinity
        # is always wrong here: inputs like these do not overflow.
        ku = (spec.k + 1) * 2.0**-24
        unit, underflow = {"f16": (2.0**-11, 2.0**-25), "bf16": (2.0**-8, 2.0**-134)}[spec.dtype]
        summation = ku / (1 - ku) * magnitudes + spec.k * 2.0**-149
        self.tolerance = summation + unit * (self.sums.abs() + summation) + underflow
        summation += unit * magnitudes  # cuBLAS may split k and add 16-bit parts
        self.in_parts = summation + unit * (self.sums.abs() + summation) + underflow

    def poison(self, matrices):
        for each in matrices:
            each.view.fill_(math.nan)

    def check(self, c, in_parts=False):
        """Raises Wrong, with the first element that is."""
        torch = self.torch
        torch.cuda.synchronize()
        error = (c.view.double() - self.sums).abs_()
        tolerance = self.in_parts if in_parts else self.tolerance
        wrong = ~(error <= tolerance)  # true for NaN
        if bool(wrong.any()):
            row, col = wrong.nonzero()[0].tolist()
            raise Wrong(
                f"C[{row}, {col}] is {c.view[row, col].item():.9g}, expected {self.sums[row, col].item():.9g}"
                f" within {tolerance[row, col].item():.9g}"
            )
        if not c.guards_survive():
            raise Wrong("an element outside of C was overwritten")
        if not (torch.equal(self.a[0].view, self.original_a) and torch.equal(self.b[0].view, self.original_b)):
            raise Wrong("an input was overwritten")


def sets_for(spec, mode, l2_bytes):
    """Hot, as many as rounds take in turn; else so many that between two uses of one more than 3 times the L2 cache is touched."""
    if mode == "hot":
        return max(1, min(32, 2**30 // spec.matrix_bytes))
    sets = math.ceil(3 * l2_bytes / spec.matrix_bytes) + 1
    if sets > MAX_SETS:
        raise BadInput(
            f"--mode {mode}: {spec.shape} is so small that {sets} sets of matrices would be needed to flush the L2 cache;"
            " choose a larger --shape, or --mode hot"
        )
    return sets


def check_affordable(torch, spec, sets):
    """The copies, their guard bands, cuBLAS's C, and in double precision A, B, the reference and its tolerances."""
    free, _ = torch.cuda.mem_get_info()
    inputs, mn = spec.m * spec.k + spec.k * spec.n, spec.m * spec.n
    needed = sets * (spec.matrix_bytes + peer.BYTES * (mn + 8 * GUARD)) + 10 * inputs + 48 * mn
    if needed > 0.95 * free:
        raise BadInput(
            f"{spec.shape} needs {peer.with_prefix(needed)}B of the GPU's memory, {peer.with_prefix(free)}B are free;"
            " choose a smaller --shape"
        )


# --- one problem ---


def reason_of(error):
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"


def tune(torch, kernel, problem, plan):
    """(tile, compiled kernel, what each candidate took), for the fastest that is right. Raises Wrong, BadInput."""
    spec, compiled, pruned, seconds = problem.spec, {}, {}, {}
    for tile in kernel.candidates(spec.m, spec.n):
        problem.poison(problem.c[:1])
        try:
            compiled[tile] = kernel.launch(tile, problem.a[0].view, problem.b[0].view, problem.c[0].view)
        except Exception as error:  # Triton's own kinds of them change: too much shared memory, too many registers
            pruned[tile] = reason_of(error)
            continue
        try:
            problem.check(problem.c[0])
        except Wrong as error:
            raise Wrong(f"{tile}: {error}") from None
    if not compiled:
        raise BadInput(f"none of its tiles runs here: {next(iter(pruned.values()), 'there are none')}")
    waiting, best = list(compiled), None
    while waiting:
        # Each group beside the best so far, in units of its time: so clocks and temperature are the same for both.
        group, waiting = waiting[:GROUP], waiting[GROUP:]
        tiles = ([best] if best else []) + group

        def contestant(tile):
            return lambda i: kernel.launch(tile, problem.a[i].view, problem.b[i].view, problem.c[i].view)

        quick = rounds.Plan(plan.sets if plan.cold else 1, plan.cold, plan.graphs, 5, 51, 0.03 * len(tiles))
        taken = peer.comparable([each[0] for each in rounds.time_in_rounds(torch, map(contestant, tiles), quick)])
        scale = seconds[best] / taken[0] if best else 1
        seconds.update({tile: scale * each for tile, each in zip(tiles, taken)})
        best = min(seconds, key=seconds.get)
    entries = [
        {"tile": str(tile), "seconds": seconds[tile], "bound": None, "model": None}
        for tile in sorted(seconds, key=seconds.get)
    ]
    entries += [
        {"tile": str(tile), "seconds": None, "bound": None, "model": None, "pruned": why} for tile, why in pruned.items()
    ]
    return best, compiled[best], entries


def measure(torch, kernel, spec, typed, gpu, ceilings, nvml, versions):
    """The result of one problem. Raises Wrong; BadInput where it cannot be run."""
    sets = sets_for(spec, typed.mode, gpu["l2_bytes"])
    check_affordable(torch, spec, sets)
    problem = Problem(torch, spec, sets)
    cold = typed.mode != "hot"
    plan = rounds.Plan(sets, cold, typed.mode != "single", 11 if cold else max(11, 2 * sets), seconds=typed.seconds)
    tile, compiled, tuning = tune(torch, kernel, problem, plan)
    print(f"{tile}: the best of {len(tuning)} tiles, {sum('pruned' in each for each in tuning)} cannot run", flush=True)

    def cublas(i):
        torch.matmul(problem.a[i].view, problem.b[i].view, out=problem.cublas_c[i].view)

    problem.poison(problem.c + problem.cublas_c)
    cublas(0)
    try:
        problem.check(problem.cublas_c[0], in_parts=True)
    except Wrong as error:
        raise Wrong(f"cuBLAS computed something else: {error}") from None
    used = {0}  # sets that our kernel wrote to

    def ours(i):
        used.add(i)
        kernel.launch(tile, problem.a[i].view, problem.b[i].view, problem.c[i].view)

    conditions = []
    timings = rounds.time_in_rounds(torch, [ours, cublas], plan, lambda: conditions.append(nvml.conditions()))
    for i in (0, max(used)):
        try:
            problem.check(problem.c[i])
        except Wrong as error:
            raise Wrong(f"{tile}, after the timed launches: {error}") from None
    return peer.result(
        NAME,
        spec,
        typed.mode,
        str(tile),
        tile.m,
        tile.n,
        ceilings,
        timings,
        "cublasGemmEx",
        tuning,
        conditions[0] if conditions else None,
        describe_launch(compiled, tile, spec),
        versions,
    )


def prefer_cublas(torch):
    """torch.matmul is cublasGemmEx then, with sums in float throughout."""
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    if hasattr(torch.backends.cuda, "preferred_blas_library"):
        torch.backends.cuda.preferred_blas_library("cublas")


def run(typed):
    if typed.json:
        peer.check_writable(typed.json)
    if lacking := missing():
        raise BadInput(lacking)
    import torch
    import triton

    import triton_kernel

    prefer_cublas(torch)
    torch.cuda.init()
    torch.zeros(1, device=DEVICE)  # so that there is a context
    nvml = Nvml(bus_id_of_gpu(torch))
    gpu = describe_gpu(torch, nvml.driver())
    ceilings = peer.read_ceilings(typed.ceilings, gpu["name"], gpu.get("driver"))
    cublas = cublas_version()
    versions = {"name": "Triton", "version": triton.__version__, "torch": torch.__version__, "cublas": cublas}
    entries, left_out = [], ""
    for spec in typed.specs:
        print(f"{NAME}  m={spec.m} n={spec.n} k={spec.k} {spec.dtype} {spec.layout}, {gpu['name']}", flush=True)
        try:
            if not spec.flops:
                raise BadInput("there is nothing to multiply")
            entry = measure(torch, triton_kernel, spec, typed, gpu, ceilings, nvml, versions)
        except BadInput as error:  # the others may run
            left_out = f"{spec.shape}: {error}"
            print(f"cannot run this: {error}", flush=True)
            continue
        except torch.cuda.OutOfMemoryError:
            raise BadInput("out of memory; choose a smaller --shape") from None
        except Wrong as error:
            print(f"WRONG\n{error}", flush=True)
            return peer.WRONG
        finally:
            with contextlib.suppress(RuntimeError):
                torch.cuda.empty_cache()
        print(peer.describe(entry), flush=True)
        entries.append(entry)
    if not entries:
        raise BadInput(f"nothing of this can be run: {left_out}")
    if typed.json:
        peer.write(typed.json, peer.document(gpu, torch.version.cuda, cublas, ceilings, entries))
    return peer.VERIFIED


def main(arguments):
    try:
        typed = peer.parse(arguments, NAME, __doc__.split("\n", 1)[0])
        if typed.probe:
            lacking = missing()
            print(f"{NAME}: {lacking or 'PyTorch, Triton and a GPU are there'}")
            return 1 if lacking else 0
        return run(typed)
    except BadInput as error:
        sys.stdout.flush()
        print(f"{NAME}: {error}", file=sys.stderr)
        return peer.BAD_INPUT
    except RuntimeError as error:  # CUDA's errors, among others
        sys.stdout.flush()
        print(f"{NAME}: {reason_of(error)}", file=sys.stderr)
        return peer.WRONG


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
