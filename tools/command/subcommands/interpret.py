"""course interpret: a CUDA program without a GPU. How it is compiled: tools/interpret/interpret.py."""

import os
import re
import signal
import sys
import tempfile

from ..building import folder
from ..cli import options
from ..cli.arguments import Arguments, Command, require_file
from ..machine import processes
from ..machine.processes import become
from ..messages import Refused, say
from ..places import BUILD, script

# nvcc's options that change nothing here; a learner has a line with some of them at hand. Those with a value have it in the same word,
# behind '=', or in the next one.
FLAGS = re.compile(
    r"-(g|G|O[0-9]|lineinfo|w|v|c|dc|dw|ptx|cubin|fatbin|shared|lib|run|dlto|restrict|pg|res-usage|keep|m64|W[a-z].*|l\S+|L\S+|M[DMPT]+|t[0-9]+"
    r"|-?(use_fast_math|extended-lambda|expt-(relaxed-constexpr|extended-lambda)|extra-device-vectorization|forward-unknown-to-host-compiler)"
    r"|-(debug|device-debug|generate-line-info|disable-warnings|verbose|resource-usage|profile|compile|shared|lib|run))"
)
VALUED = re.compile(
    r"-(o|O|l|L|t|x|m|odir|arch|code|gencode|std|ccbin|rdc|fmad|ftz|prec-div|prec-sqrt|maxrregcount|cudart|default-stream|diag-suppress"
    r"|Werror|Xcompiler|Xptxas|Xlinker|Xcudafe|Xnvlink"
    r"|-(output-file|optimize|library|library-path|threads|gpu-architecture|gpu-code|generate-code|std|compiler-bindir|relocatable-device-code|fmad"
    r"|ftz|prec-div|prec-sqrt|maxrregcount|cudart|default-stream|diag-suppress|Werror|compiler-options|ptxas-options|linker-options|machine))"
)
NEWER = re.compile(r"(c|gnu)\+\+(23|2b|26|2c)")  # than what the interpreter is compiled with, C++20
# Behind the file, nobody but nvcc means these.
MISPLACED = re.compile(r"-(arch|gencode|std|rdc)(=.*)?|-lineinfo|-X(compiler|ptxas)(=.*)?|-l(cu(blas|dart|rand|fft)\w*)|--?use_fast_math|--?expt-.*")


class Interpret(Command):
    def parse(self, words):
        """What is nvcc's is not refused: it is `ignored`, but for a `standard` that is newer than usual."""
        words, ignored, standard = without_nvccs(list(words), {o.name: o for o in self.options if o.metavar})
        given = Arguments(self, words)
        given.ignored, given.standard = ignored, standard
        return given


def without_nvccs(words, valued):
    """(the words without nvcc's options, those options, the C++ standard or ''). `valued`: own options that have a value, by name."""
    kept, ignored, standard, files = [], [], "", []
    is_whole_line = bool(words) and os.path.basename(words[0]) == "nvcc"  # then all of it is nvcc's
    if is_whole_line:
        words.pop(0)
    while words and words[0] != "--" and (is_whole_line or words[0].startswith("-")):
        word = words.pop(0)
        if not word.startswith("-"):
            files.append(word)
            continue
        name, _, value = word.partition("=")
        if word in valued:
            takes = valued[word].takes(words)
            kept += [word, *words[:takes]]
            del words[:takes]
        elif VALUED.fullmatch(name):
            value = value or (words.pop(0) if "=" not in word and words else "")
            if name.endswith("std") and NEWER.fullmatch(value):
                standard = value.replace("c++", "gnu++").replace("gnugnu", "gnu")
            else:
                ignored.append(word if "=" in word else f"{word} {value}".rstrip())
        elif FLAGS.fullmatch(word):
            ignored.append(word)
        else:
            kept.append(word)
    if len(files) > 1:
        raise Refused(f"a program is one file here: {', '.join(files)} are several. #include one in another, or name one.")
    return kept + files + words, ignored, standard


def run(given):
    if not given.everything:
        raise Refused("interpret needs a file, for example: tools/course interpret docs/examples/saxpy.cu")
    file, *rest = given.everything
    require_file(file, "name a CUDA program, such as docs/examples/saxpy.cu.")
    if given.keep and os.path.lexists(given.keep) and not os.path.isdir(given.keep):
        raise Refused(f"cannot write to {given.keep}: it is a file. Name a folder with --keep.")
    if given.ignored:
        say(f"{', '.join(given.ignored)}: nvcc's, ignored here. No program is written, and the language is C++20.")
    if misplaced := [word for word in rest if MISPLACED.fullmatch(word)]:
        say(f"{', '.join(misplaced)}: behind {file}, so the program gets it; nvcc's options stand in front.")
    folder.prepare("interpreter", ["python3"], ["interpreter", "interpret_prelude"])
    words = given.to_pass(options.COUNT, options.KEEP_GOING, options.ORDER, options.INCLUDE, options.DEFINE, options.AS, options.KEEP)
    if given.standard:
        words += ["--std", given.standard]
    if given.see is not None:
        return run_seen(words, file, rest, given)
    if given.limited:
        return run_limited(words, file, rest, given)
    command = program_of(words, file, rest)
    # Ctrl-C waits until the next program has said what it does then.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
    become(command)


CACHE = os.path.join(BUILD, "interpret")


def program_of(words, file, rest, cache=CACHE):
    """The command that compiles and runs FILE."""
    return [*script("interpret", "interpret.py"), "--build", os.path.join(BUILD, "interpreter"), "--cache", cache, *words, "--", file, *rest]


def run_seen(words, file, rest, given):
    from . import see  # it needs this module
    from .run import end_if_over

    path = see.path_of(given.see, see.name_of_program(file))
    with see.page_of(path, see.title_of_program(file)) as events:
        if given.limited:
            return run_limited(words, file, rest, given, events)
        code = processes.run(program_of(words, file, rest), env={**os.environ, "COURSE_EVENTS": events})
        end_if_over(code)
        return code


def run_limited(words, file, rest, given, events=""):
    """As an answer of an exercise is compiled and run. What it makes is not kept: it could write to that."""
    from ..exercises import judging

    with tempfile.TemporaryDirectory(prefix="limited-", dir=BUILD) as scratch:
        command = program_of(words, os.path.abspath(file), rest, scratch)
        shown = [os.path.dirname(os.path.abspath(file)), *map(os.path.abspath, given.I or []), sys.base_prefix]
        command = judging.behind_wall(judging.recording(command, events), shown, [scratch, *filter(None, [given.keep, os.path.dirname(events)])])
        done = judging.limited(command, os.getcwd(), judging.COMPILER_SECONDS + judging.SECONDS, remove=scratch)
    print(judging.printable(done.output), flush=True)
    if done.reason:
        say(done.reason)
    return 1 if done.reason else done.code


COMMAND = Interpret(
    name="interpret",
    usage="[OPTION...] FILE.cu [ARGUMENT...]",
    intro="""
    Compiles a CUDA program that is one file and runs it on this machine's CPU, without a GPU: every access to memory is checked. The
    program may include headers of its own and the course's. What stands behind FILE.cu is the program's. In front of it, options of
    nvcc, such as -O3, -arch=sm_90 or -o NAME, are allowed and ignored: a line for nvcc works as it is, if its file comes last.
    """,
    options=(
        options.COUNT,
        options.ORDER.but(
            help="the order in which threads and blocks run: forward, reverse, random or random:SEED"
        ),
        options.AS.but(help="the GPU that is modelled: h200, a100, h100 or 4090", default="h200"),
        options.INCLUDE,
        options.DEFINE,
        options.KEEP_GOING,
        options.KEEP,
        options.SEE.but(help="write what the first block did as a page, as 'see' does; it opens where a check has ended the kernel"),
        options.LIMITED,
    ),
    outro="""
    Exit code: the program's own; 1 if it does not compile or a check fails, which ends the program with a report unless it keeps going; 2 if it uses what
    the interpreter does not have, or cannot be read or written, which one line names; 130 interrupted. docs/interpret.md says what it has.
    """,
    run=run,
    stops_at_first=True,
    hint="The program's own stand behind its file.",
)
