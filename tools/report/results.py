"""Result files: reading, checking, merging and writing them. Their format: docs/results/README.md."""

import contextlib
import json
import os

SCHEMA = "gemm-course-results"
VERSION = 1
MODELS = ("no_reuse", "tile_reuse", "compulsory")
BASELINES = ("cublasGemmEx", "cublasLt")
# Of fused problems, besides cublasGemmEx.
GEMM_EX_THEN, LT_FUSED = "cublasGemmEx, then epilogue", "cublasLt, fused"
UNFUSED, UNFUSED_THEN = "unfused", "unfused, then epilogue"
FUSED_BASELINES = (GEMM_EX_THEN, LT_FUSED, UNFUSED, UNFUSED_THEN)
BYTES_PER_SECTOR = 32
# Kernels of others, measured as the steps are: what stands in `step`, and their names.
PEERS = {"peer_triton": "Triton", "peer_cutlass": "CUTLASS"}

# ncu's names, as the files have them.
GLOBAL_LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
GLOBAL_LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
GLOBAL_STORE_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
GLOBAL_STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
SHARED_LOAD_REQUESTS = "smsp__inst_executed_op_shared_ld.sum"
SHARED_LOAD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SHARED_LOAD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"


class BadFile(Exception):
    """A file that cannot be used or written. The message is one line that says what to do."""


# --- what a document must be ---
#
# A check is a function of (value, where) that raises ValueError. Only what the readers of this folder use is checked:
# a file may have fields that nobody here knows.


def text(value, where):
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"{where} is not a line of text")


def prose(value, where):
    if not isinstance(value, str):
        raise ValueError(f"{where} is not text")


def truth(value, where):
    if not isinstance(value, bool):
        raise ValueError(f"{where} is neither true nor false")


def number(value, where):
    # JSON's 1e999 is Python's infinity, and true counts as an int.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e300:
        raise ValueError(f"{where} is not a number from 0")


def integer(value, where):
    number(value, where)
    if not isinstance(value, int):
        raise ValueError(f"{where} is not a whole number")


def one_of(*choices):
    def check(value, where):
        if value not in choices:
            raise ValueError(f"{where} is none of: {', '.join(choices)}")

    return check


def optional(check):
    def check_if_there(value, where):
        if value is not None:
            check(value, where)

    check_if_there.optional = True
    return check_if_there


def record(**fields):
    """An object with these fields; other ones are ignored."""

    def check(value, where):
        if not isinstance(value, dict):
            raise ValueError(f"{where or 'the document'} is not an object")
        for name, check_field in fields.items():
            path = f"{where}.{name}".lstrip(".")
            if name not in value and not hasattr(check_field, "optional"):
                raise ValueError(f"{path} is missing")
            check_field(value.get(name), path)

    return check


def list_of(check_item):
    def check(value, where):
        if not isinstance(value, list):
            raise ValueError(f"{where} is not a list")
        for index, item in enumerate(value):
            check_item(item, f"{where}[{index}]")

    return check


def numbers(value, where):
    if not isinstance(value, dict):
        raise ValueError(f"{where} is not an object")
    for name, item in value.items():
        optional(number)(item, f"{where}.{name}")


quantiles = record(median=number, q20=number, q80=number)
of_each_model = record(**{model: optional(number) for model in MODELS})
result = record(
    step=text,
    tile=text,
    first=truth,
    m=integer,
    n=integer,
    k=integer,
    **{"in": text},
    out=text,
    layout=text,
    mode=text,
    flops=number,
    bytes=record(**dict.fromkeys(MODELS, number)),
    intensity=of_each_model,
    bound=of_each_model,
    peak=optional(number),
    ridge=optional(number),
    note=optional(prose),
    tuning=optional(list_of(record(tile=text, seconds=optional(number), model=optional(number), pruned=optional(text)))),
    time=optional(quantiles),
    tflops=optional(number),
    roofline=optional(number),
    baselines=optional(record(**{name: optional(quantiles) for name in BASELINES + FUSED_BASELINES})),
    ratio=optional(record(**{name: optional(quantiles) for name in BASELINES + FUSED_BASELINES})),
    counters=optional(numbers),
    projection=optional(record(gpu=text, flops_per_second=optional(number))),
    epilogue=optional(record(activation=text, bias=truth)),
    saved_bytes=optional(number),
)
document = record(
    created=text,
    commit=optional(text),
    backend=one_of("gpu", "interpreter"),
    gpu=record(name=text, uuid=optional(text), driver=optional(text)),
    cuda=optional(text),
    cublas=optional(text),
    ceilings=record(
        source=text,
        copy_bytes_per_second=optional(number),
        fma_f32_flops=optional(number),
        mma_f16_flops=optional(number),
        mma_bf16_flops=optional(number),
        wgmma_f16_flops=optional(number),
        wgmma_bf16_flops=optional(number),
        wgmma_registers_f16_flops=optional(number),
        wgmma_registers_bf16_flops=optional(number),
    ),
    results=list_of(result),
)


# --- files ---


def not_a_number(name):
    raise ValueError(f"{name} is no value")


def load(path):
    """The document in the file PATH. Raises BadFile if it cannot be used as it is."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file, parse_constant=not_a_number)
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise BadFile(
            f"{path} is damaged or no result file ({error}): make it again with 'tools/course run'."
        ) from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise BadFile(f'{path} is no result file: it has no "schema": "{SCHEMA}".')
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        raise BadFile(
            f"{path} was made by a newer version of the course (format {version}, known are up to {VERSION}):"
            " update this checkout."
        )
    try:
        integer(version, "version")
        document(content, "")
    except ValueError as error:
        raise BadFile(f"{path} is damaged: {error}. Make it again with 'tools/course run'.") from None
    return content


def merge(documents):
    """One document with the results of all, which one run made: on the same GPU, with the same backend."""
    newest = max(documents, key=lambda each: each["created"])
    for each in documents:
        if (each["backend"], each["gpu"]["name"]) != (newest["backend"], newest["gpu"]["name"]):
            raise BadFile(
                f"the files are not of one run: {each['gpu']['name']} ({each['backend']})"
                f" and {newest['gpu']['name']} ({newest['backend']}). Give those of one run."
            )
    return {**newest, "results": [each for document in documents for each in document["results"]]}


def dump(content):
    """With a line for each of the many results, or solutions."""
    many = "results" if "results" in content else "solutions"
    text = json.dumps({**content, many: []}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    lines = [json.dumps(each, ensure_ascii=False, allow_nan=False, separators=(",", ":")) for each in content[many]]
    return '"{}": [\n  {}\n ]'.format(many, ",\n  ".join(lines)).join(text.rsplit(f'"{many}": []', 1))


def write_text(path, content):
    """Afterwards the file is complete; or this raises BadFile, and the file is what it was before."""
    if is_no_file(path):
        raise BadFile(f"cannot write {path}: it is not a regular file. Name another one.")
    write_all({path: content.encode()}, "name another file", makes_folders=False)


def is_no_file(path):
    """Renaming would replace a device such as /dev/null, too."""
    return os.path.exists(path) and not os.path.isfile(path)


def write_all(files, instead="name another one with --out", makes_folders=True):
    """FILES: from path to bytes. Afterwards all are complete; or BadFile, with what to do INSTEAD, and none has changed."""
    written, made = {}, []
    path = ""
    try:
        for path, data in files.items():
            folder, name = os.path.split(os.path.abspath(path))
            if makes_folders and not os.path.isdir(folder):
                os.makedirs(folder)
                made.append(folder)
            if is_no_file(path):
                raise OSError(0, "it is not a regular file")
            temporary = os.path.join(folder, f".{name}.{os.getpid()}")
            written[temporary] = path
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for temporary, path in written.items():
            os.replace(temporary, path)
    except BaseException as error:  # Ctrl-C, too
        remove_all(written, made)
        if not isinstance(error, OSError):
            raise
        raise BadFile(f"cannot write {path}: {error.strerror}. Free some space, make the folder yours, or {instead}.") from None


def remove_all(files, folders):
    for file in files:
        if os.path.exists(file):
            os.remove(file)
    for folder in reversed(folders):
        with contextlib.suppress(OSError):  # somebody else's files
            os.rmdir(folder)


def write(path, document):
    write_text(path, dump(document))


# --- looking results up ---


def setting(result):
    """What has to agree before two results may stand in one table: shape, types, layout, mode."""
    return tuple(result[name] for name in ("m", "n", "k", "in", "out", "layout", "mode"))


def epilogue(result):
    """'gelu', 'bias + gelu', 'bias': what is fused; '' for nothing."""
    fused = result.get("epilogue")
    if not fused:
        return ""
    parts = ["bias"] * fused["bias"] + [fused["activation"]] * (fused["activation"] != "identity")
    return " + ".join(parts)


def title(result):
    """The tile, and what is fused."""
    return ", ".join(filter(None, (result["tile"], epilogue(result))))


def identity(result):
    """What has to agree before two results are of the same thing."""
    return (result["step"], result["tile"], epilogue(result), *setting(result))


def latest(results):
    """Of what was run twice the later one, in the earlier one's place."""
    return list({identity(each): each for each in results}.values())


def grouped(results, key):
    """A dictionary from key(result) to the results that have it, both in the order in which they come."""
    groups = {}
    for each in results:
        groups.setdefault(key(each), []).append(each)
    return groups


def describe(setting):
    """('4096x4096x4096', 'f32', 'nn', 'hot'): a setting in words."""
    m, n, k, a, c, layout, mode = setting
    return (f"{m}x{n}x{k}", a if a == c else f"{a} to {c}", layout, mode)


def quotient(dividend, divisor):
    """None if either is missing or there is nothing to divide by."""
    return None if dividend is None or not divisor else dividend / divisor


def noise(sample):
    """Half of the 20-80 % band over the median."""
    return quotient((sample["q80"] - sample["q20"]) / 2, sample["median"]) if sample else None


def ratio(result, baseline):
    """The sample of (time of the baseline / time of the result), or None."""
    return (result.get("ratio") or {}).get(baseline)


def counter(result, name):
    return (result.get("counters") or {}).get(name)
