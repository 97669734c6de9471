"""What an answer's object file may define and call: neither what the coach watches with, nor files, processes and threads."""

import functools
import glob
import os
import re

from .. import files
from ..machine import processes
from ..messages import Failed
from ..places import ROOT

# Names of C, as they are in object files.
OF_C = re.compile(
    r"_GLOBAL_OFFSET_TABLE_|__dso_handle|__dynamic_cast|__libc_single_threaded"
    r"|__(tsan|ubsan|sanitizer_cov|asan|start___sanc|stop___sanc)_?\w*|__cxa_\w+|__gxx_\w+|_Unwind_Resume"
    r"|__stack_chk_fail|__tls_get_addr|__assert_fail|abort|cuda[A-Z]\w*|cublas[A-Z]\w*|cuTensorMapEncode\w*"
    r"|(__)?(mem|str|wcs|wmem)[a-z]+(_chk)?|malloc|calloc|realloc|free|aligned_alloc|posix_memalign|l?l?abs|l?l?div|qsort|bsearch|s?rand(_r)?"
    r"|ato(i|l|ll|f)|(__isoc\d+_)?(strto\w+|sscanf)|is[a-z]+|to(upp|low)er|__ctype_\w+|getenv"
    r"|(__)?v?(f|s|sn|as)?printf(_chk)?|puts|putchar|putc|fputs|fputc|fwrite|fflush|stdout|stderr|perror|__errno_location"
    r"|time|clock|clock_gettime|gettimeofday|difftime|(local|gm)time(_r)?|strftime|nanosleep|clock_nanosleep|usleep|sched_yield"
    r"|pthread_(mutex_\w+|once|self|getspecific|key_create|setspecific)|__pthread_key_create"
    r"|__[a-z]+(hi|si|di|ti|hf|sf|df|xf|tf|bf|sc|dc)\d?"  # libgcc's arithmetic
    r"|(__)?(a?(sin|cos|tan)h?|exp(2|m1|10)?|log(2|10|1p|b)?|pow|sqrt|cbrt|hypot|fma|f(loor|abs|max|min|mod|dim)|ceil|trunc|l?l?r(int|ound)"
    r"|nearbyint|roundeven|erfc?|[lt]gamma|remainder|remquo|copysign|nextafter|nexttoward|ldexp|frexp|modf|scalbl?n|ilogb|nan|[jy][01n]"
    r"|sincos|is(nan|inf|finite)|finite|fpclassify|signbit)[fl]?(_r|_finite)?"
)
# Prefixes of mangled names: a table's or a type's, then a namespace.
MANGLED = r"_Z(?:T[A-Z]|T[hv]n?\d+_(?:n?\d+_)?|GV|GR)?(?:N[rVKRO]*)?"
OF_CPP = re.compile(MANGLED + r"(S[tabsiod]|n[wa]|d[la]|\d+__cxxabiv1|9__gnu_cxx|6device|4gemm)")
NOT_OF_CPP = re.compile(
    r"basic_(filebuf|[io]?fstream)|__basic_file|stdio_(filebuf|sync)|10filesystem|St\d?w?cin\b|St[34]w?cin|(?<!\d)(6|7j)thread|random_device"
)
OF_INTERPRETER = re.compile(MANGLED + r"11interpreter(?:12cuda_runtime)?(?=\d)")
# Headers that kernels and CUDA's runtime consist of call these, and so may an answer.
HEADERS = ("interpreter/include/**/*", "interpreter/instructions/*.h", "interpreter/language/*.h", "device/**/*")
PROGRAM = ("program.h", "labels.h", "inline_ptx.h")
# But not headers with what a block keeps of instructions: they see other rooms of the interpreter.
OF_BLOCKS = re.compile(r'#include "common/interpreter/(?!count/gpus\.h|cuda_runtime/|include/|instructions/|interpreter\.h|language/)')
OF_COACH = {"options", "profiles", "clear_profiles", "metrics", "find_gpu", "name", "quoted_line", "report", "observe", "record"}
OF_VERDICT = re.compile(r"_ZT[IS]N8exercise(6NotYet|4Seen)E")  # types that the coach throws
# What brings bytes to the host, where a file could compute what its kernels should. Tables may go to the GPU.
TO_HOST = re.compile(r"cudaMemcpy(?!ToSymbol)\w*|_ZN11interpreter8copy_outE\w*")
# What copies where the interpreter does not look, and a GPU has none of it. memcpy() and memmove() are seen.
UNSEEN = re.compile(r"(__)?(mempcpy|memccpy|memfrob|strfry|strxfrm|str[ln]?(cpy|cat|dup)|stp\w+|wcs\w*(cpy|cat|dup|xfrm)|wmem\w*(cpy|move))(_chk)?")
OF_EXERCISE = ("_ZN8exercise", "_ZNK8exercise")  # a test calls those of an answer; the linker says which one nobody defines
STRONG, WEAK = "TBDRGSCi", "WVu"


def symbols(paths):
    """[(kind, name)] of object files and archives, as nm has them."""
    code, text = processes.ask(["nm", *paths])
    if code:
        raise Failed(f"cannot read what was compiled: 'nm {paths[0]}' ends with exit code {code}. Is binutils complete?")
    fields = (line.split() for line in text.splitlines())
    return [(each[-2], each[-1]) for each in fields if len(each) in (2, 3) and len(each[-2]) == 1]


@functools.cache
def functions_of_headers():
    """Names that headers for kernels have in front of a parenthesis."""
    place = os.path.join(ROOT, "common")
    paths = [path for each in HEADERS for path in glob.glob(os.path.join(glob.escape(place), each), recursive=True)]
    paths += [os.path.join(place, "interpreter", "cuda_runtime", each) for each in PROGRAM]
    texts = [files.text(path) for path in paths if os.path.isfile(path)]
    texts = [text for text in texts if not OF_BLOCKS.search(text)]
    return {word for text in texts for word in re.findall(r"\b([A-Za-z_]\w*)\s*\(", text)} - OF_COACH | {"KernelError"}


def last_name(mangled):
    """Of a name in one namespace, without what it is called with; empty for one that lies deeper."""
    found = re.match(r"\d+", mangled)
    end = found.end() + int(found[0])
    return mangled[found.end() : end] if not re.match(r"\d", mangled[end:]) else ""


def may_use(name):
    found = OF_INTERPRETER.match(name)
    if found:
        return last_name(name[found.end() :]) in functions_of_headers()
    if not name.startswith("_Z"):
        return bool(OF_C.fullmatch(name))
    return bool(OF_CPP.match(name)) and not NOT_OF_CPP.search(name)


symbols_of_library = functools.cache(lambda path: symbols([path]))


def foreign_of(found):
    """Those of SYMBOLS that are used, defined elsewhere, and not for an answer."""
    own = {name for kind, name in found if kind not in "Uwv"}
    return [name for kind, name in found if kind in "Uwv" and name not in own and not may_use(name)]


class Others:
    """What an answer is linked with."""

    def __init__(self, paths):
        found = [each for path in paths for each in symbols_of_library(path)]
        self.defined = {name for kind, name in found if kind in STRONG}
        self.used = {name for kind, name in found if kind == "U"}

    def may_define(self, kind, name):
        if name == "main":
            return True  # the linker says it
        if name in self.defined or OF_VERDICT.fullmatch(name):
            return False
        if name.startswith("_Z"):  # what a test calls is in namespace exercise
            return kind in WEAK or name not in self.used or name.startswith(OF_EXERCISE)
        return name.startswith("DW.ref.") or not OF_C.fullmatch(name) and name not in self.used


def refused(path, others, file):
    """Why the answer in the object file PATH is not linked, in a learner's words; or ''."""
    found = symbols([path])
    defined = [name for kind, name in found if kind in STRONG + WEAK and not others.may_define(kind, name)]
    if defined:
        return (
            f"{file} defines {readable(defined)}, which the check has already.\n"
            "Define what the task asks for, in namespace exercise, and give what is your own another name."
        )
    to_host = [name for kind, name in found if kind in "Uwv" and TO_HOST.fullmatch(name)]
    if to_host:
        return (
            f"{file} uses {readable(to_host)}.\n"
            "Nothing is copied to the host, or by it: kernels do all of the work, and the host starts them. printf() in a kernel shows what\n"
            "there is."
        )
    unseen = [name for kind, name in found if kind in "Uwv" and UNSEEN.fullmatch(name)]
    if unseen:
        return (
            f"{file} uses {readable(unseen)}.\n"
            "The interpreter does not see what it copies, and a GPU does not have it: take memcpy(), snprintf() or a loop."
        )
    foreign = [name for name in foreign_of(found) if not name.startswith(OF_EXERCISE) or name in others.defined]
    if foreign:
        return (
            f"{file} uses {readable(foreign)}.\n"
            "An answer may call CUDA's functions, what lies in common/device and common/gemm, and C++'s standard library, but for files,\n"
            "processes and threads; what the coach and the interpreter watch with is not for it."
        )
    return ""


def readable(names):
    _, text = processes.ask(["c++filt"], "\n".join(names[:3]))
    shown = [re.sub(r"\[abi:\w+\]|std::__cxx11::", "", each) for each in text.splitlines()] or list(names[:3])
    shown = [f"{each}()" if re.fullmatch(r"\w+", each) else each for each in shown]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
