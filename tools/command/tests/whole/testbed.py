"""What the tests of the whole command run in: a scratch copy of it whose path has a space, and stand-ins for the compiler, CMake, apt-get, the
steps and the machine's own folders. So nothing is built or installed, each way of failing can be made to happen, and what this machine has
does not matter."""

import json
import os
import pathlib
import pty
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]
REAL = "bash basename cat chmod cp dirname env flock grep ln mkdir mv perl readlink rm sed setsid sleep sort tail true"
UNUSED = "__pycache__", "tests", "programs", "cases", "test_*", "fit", "peers", "cmake", "*.svg"  # of tools/: no test needs it
# What the command, or what it starts, reads of the environment.
READ = re.compile("PYTHON|COURSE_|CUDA|CMAKE_|NINJA_|(CC|CXX|CFLAGS|CXXFLAGS|LDFLAGS|CPATH|CPLUS_INCLUDE_PATH|COLUMNS)$")
# Of Python, the command itself runs, and nobody writes that down.
UNSEEN = r"""case $* in '-ISc '* | */tools/command | */tools/command\ *) exec "$REAL_PYTHON" "$@" ;; esac"""

signal.signal(signal.SIGINT, signal.default_int_handler)  # where the background of a shell has it ignored, what starts here would, too

# Bodies of the stand-ins; each writes down how it was called. Their files in the scratch folder say how they shall behave.
STAND_INS = {
    # The file missing lists headers and -lNAMEs that the compiler does not find.
    "g++": """
if [[ $* == -dumpversion ]]; then echo 12; exit; fi
IFS= read -r -d '' source
while read -r name; do [[ "$*$source" != *"$name"* ]] || exit 1; done <"$SCRATCH/missing"
""",
    "cmake": r"""
[[ $* =~ --preset\ ([a-z-]+) ]] && build=build/${BASH_REMATCH[1]}
case $* in
  *--version*) echo "cmake version 3.25.1" ;;
  *'--target help') ;;
  *--build*)
    [[ ! -f $SCRATCH/build-fails ]] || { echo 'gemm.cuh:7: error: expected a tile'; exit 1; }
    trap 'sleep 0.2; echo interrupted && rm -r "$SCRATCH/building"; exit 130' INT
    # Two builds at the same time: the second finds the first one's mark.
    mkdir "$SCRATCH/building" || exit 1
    [[ ! -f $SCRATCH/build-is-slow ]] || sleep "$(<"$SCRATCH/build-is-slow")"
    echo '[1/1] Linking'
    [[ -d $build/bin ]] || mkdir -p "$build/bin"
    for step in steps/*; do
      for short in '' _first_f32 _first_f16 _first_bf16; do
        program=$build/bin/${step##*/}$short
        [[ ! -d $step || -L $program ]] || ln -s "$SCRATCH/bin/a_step" "$program"
      done
    done
    rm -r "$SCRATCH/building"
    ;;
  *)
    mkdir -p "$build"
    : >"$build/CMakeCache.txt"
    : >"$build/build.ninja"
    ;;
esac
""",
    # The file exit-NN_name holds a step's exit code, the file document.json what it writes, with its name for STEP.
    "a_step": """
name=${0##*/}
name=${name%_first_*}
echo "$name $*"
echo "${COURSE_COMMIT-unset}" >"$SCRATCH/commit"
[[ ! -f $SCRATCH/exit-$name ]] || exit "$(<"$SCRATCH/exit-$name")"
[[ ! -f $SCRATCH/document.json ]] || sed "s/STEP/$name/" "$SCRATCH/document.json" >"${*: -1}"
""",
    "ctest": "[[ ! -f $SCRATCH/ctest-fails ]] || exit 8",
    "apt-get": """
[[ ! -f $SCRATCH/apt-fails || $* != *install* ]] || { echo 'E: no network'; exit 100; }
[[ $* != *install* ]] || : >"$SCRATCH/missing"
""",
    # The report's scripts do nothing here, except where a test makes the file reports.
    "python3": r"""
[[ $* != */tools/report\ * || ! -f $SCRATCH/reports ]] || exec "$REAL_PYTHON" "$@"
[[ $* != *ensurepip* || ! -f $SCRATCH/no-venv ]] || exit 1
[[ $* != *matplotlib* ]] || exit "$(<"$SCRATCH/matplotlib")"
[[ $* == *'-Im venv'* ]] || exit 0
target=${*: -1}
mkdir -p "$target/bin" "$target/lib/python3.11/site-packages/nvidia/cu13/include"
: >"$target/lib/python3.11/site-packages/nvidia/cu13/include/cuda_runtime.h"
ln -s "$SCRATCH/bin/pip" "$target/bin/python"
""",
    "pip": "[[ ! -f $SCRATCH/pip-fails ]] || exit 1",
    "id": "echo 0",
    "ninja": "",
    "gdb": "",
}

# Runs main() with each line of words in a process of its own, without the beginning of Bash and Python: [exit code, stdout, stderr, calls].
MANY = """
import importlib, json, os, sys
sys.path[0] = sys.argv[1]
from command.main import COMMANDS, main, module_of
for name in COMMANDS: importlib.import_module(module_of(name), "command")
scratch, told = os.environ["SCRATCH"], []
def text(name):
    with open(os.path.join(scratch, name), encoding="utf-8") as file: return file.read()
for words in json.load(sys.stdin):
    open(os.path.join(scratch, "calls"), "w").close()
    child = os.fork()
    if child == 0:
        for number, name in ((1, "output"), (2, "errors")):
            os.dup2(os.open(os.path.join(scratch, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os._exit(main(words))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told.append([code, text("output"), text("errors"), text("calls")])
print(json.dumps(told))
"""


def listed(wanted):
    return (wanted,) if isinstance(wanted, str) else wanted


class Whole(unittest.TestCase):
    """A test has a course of its own. Everywhere, $S is the scratch folder; what a line of words has in quotes is a word."""

    def setUp(self):
        self.S = pathlib.Path(tempfile.mkdtemp(prefix="course test."))
        self.addCleanup(shutil.rmtree, self.S)
        self.build, self.here = self.S / "course/build", self.S / "here"
        self.command = self.S / "course/tools/course"
        self.env = {name: value for name, value in os.environ.items() if not READ.match(name)}
        self.env.update(PATH=f"{self.S}/bin", SCRATCH=str(self.S), COURSE_TEST_MACHINE=f"{self.S}/machine", REAL_PYTHON=sys.executable )
        shutil.copytree(REPOSITORY / "tools", self.S / "course/tools", ignore=shutil.ignore_patterns(*UNUSED))
        for step in ("01_naive", "02_tiled", "02_tiny", "10_last"):
            (self.S / "course/steps" / step).mkdir(parents=True)
        for name in ("gemm", "activation"):
            self.put(f"course/common/gemm/{name}.h", (REPOSITORY / f"common/gemm/{name}.h").read_text())
        self.declare_steps("01_naive", "02_tiled", "02_tiny", "06_tuned TUNED", "10_last")
        self.put("course/CMakePresets.json", "{}")
        for folder in ("bin", "here", "machine/proc", "machine/dev"):
            (self.S / folder).mkdir(parents=True)
        # One without a GPU; with the toolkit's headers, as on most machines of those who write kernels.
        self.put("machine/proc/meminfo", f"MemAvailable: {24 << 20} kB\n")
        self.put("machine/etc/ssl/certs/ca-certificates.crt")
        self.make_toolkit("machine/usr/local/cuda")
        self.put("missing")
        self.put("matplotlib", "1")
        for name in REAL.split():
            (self.S / "bin" / name).symlink_to(shutil.which(name))
        for name, body in STAND_INS.items():
            self.stand_in(name, body)
        self.stand_in("python3", STAND_INS["python3"], UNSEEN)
        self.put("bin/clang++", self.text("bin/g++").replace("echo 12", "echo 14.0.6").replace('"g++ ', '"clang++ ')).chmod(0o755)

    def tearDown(self):
        self.assertFalse((self.here / "build").exists(), "written where the command is typed")

    # --- files below the scratch folder ---

    def put(self, name, text=""):
        path = self.S / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def text(self, name):
        return (self.S / name).read_text()

    def edit(self, name, pattern, text):
        changed, times = re.subn(pattern, text, self.text(name), flags=re.MULTILINE)
        self.assertTrue(times, f"{name} has no {pattern}")
        self.put(name, changed)

    def remove(self, *names):
        for name in names:
            shutil.rmtree(self.S / name) if (self.S / name).is_dir() else (self.S / name).unlink()

    def stand_in(self, name, body="", first=""):
        self.put(f"bin/{name}", f'#!/bin/bash\n{first}\nprintf "%s\\n" "{name} $*" >>"$SCRATCH/calls"\n{body}\n').chmod(0o755)

    def declare_steps(self, *steps):
        self.put("course/steps/CMakeLists.txt", "".join(f"course_step({step})\n" for step in steps))

    def steps_are_python(self, program):
        self.put("a_step.py", program)
        self.stand_in("a_step", 'exec "$REAL_PYTHON" -SE "$SCRATCH/a_step.py" "${0##*/}" "$@"')

    def make_toolkit(self, folder):
        self.put(f"{folder}/include/cuda_runtime.h")
        self.put(f"{folder}/include/cuda_runtime_api.h", "#define CUDART_VERSION 13000\n")

    def make_gpu(self, says=""):
        """As if there were a GPU and nvcc."""
        self.stand_in("nvidia-smi", says)
        self.make_toolkit("cuda")
        (self.S / "cuda/bin").mkdir(exist_ok=True)
        shutil.copy(self.S / "bin/ninja", self.S / "cuda/bin/nvcc")
        self.env["CUDA_HOME"] = f"{self.S}/cuda"

    def make_exercise(self, name, folder="course"):
        """An exercise as it comes."""
        with open(self.put(f"{folder}/exercises/{name}/test.cpp").parent.parent / "CMakeLists.txt", "a", encoding="utf-8") as file:
            file.write(f"course_exercise({name} NEEDS 75)\n")
        for kind, filling in (("exercises", "hole"), ("solutions", "filled")):
            self.put(f"{folder}/{kind}/{name}/gemm.cuh", f"// >>> Your turn\n{filling}\n// <<<\n")
        self.put(f"{folder}/exercises/{name}/README.md", "**Task.** Fill it.\n\n<details>\n<summary>Hint 1</summary>\n\nDo this.\n\n</details>\n")

    def make_document(self, backend):
        """What each step's stand-in writes, for the real report."""
        self.put("reports")
        result = {"step": "STEP", "tile": "1x1", "first": True, "m": 1, "n": 1, "k": 1, "in": "f32", "out": "f32", "layout": "nn", "mode": "count",
                  "flops": 2, "bytes": {"no_reuse": 12, "tile_reuse": 12, "compulsory": 12}, "intensity": {}, "bound": {},
                  "note": "the note of STEP", "counters": {"bytes": 96}}
        self.put("document.json", json.dumps({
            "schema": "gemm-course-results", "version": 1, "created": "2026-11-21T07:00:00Z", "commit": None, "backend": backend,
            "gpu": {"name": "a GPU"}, "cuda": "13.0", "cublas": None, "ceilings": {"source": "datasheet"}, "results": [result]}) + "\n")

    # --- the command ---

    def words(self, line):
        return [word.replace("$S", str(self.S)) for word in shlex.split(line)]

    def environment(self, more):
        return {**self.env, **{name: str(value).replace("$S", str(self.S)) for name, value in more.items()}}

    def course(self, line="", at="here", env=(), most=None, **wanted):
        """Runs the command with LINE's words in the folder AT, whatever the environment ENV has besides; it can write files of MOST bytes.
        What is WANTED of it: verify()."""

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing more fails, as on a full disk
            if most is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        self.run_and_verify(line, [self.command, *self.words(line)], wanted, cwd=self.S / at, env=self.environment(dict(env)), preexec_fn=limit)

    def bash(self, script, **wanted):
        """Where streams or limits are odd: the command is $0 of a SCRIPT."""
        self.run_and_verify(script, [shutil.which("bash"), "-c", script, self.command], wanted, cwd=self.here, env=self.env)

    def run_and_verify(self, what, command, wanted, **how):
        self.put("calls")
        ran = subprocess.run(command, **how, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120)
        self.verify(what, (ran.returncode, ran.stdout, ran.stderr, self.text("calls")), **wanted)

    def on_terminal(self, typed, line, **wanted):
        """The same on a terminal, where somebody types TYPED. What is shown there is told as stderr."""
        self.put("calls")
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.here)
            os.execve(self.command, [str(self.command), *self.words(line)], self.env)
        os.write(terminal, typed.encode())
        shown = b""
        try:
            while data := os.read(terminal, 4096):
                shown += data
        except OSError:  # that is how it ends
            pass
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        self.verify(line, (code, "", shown.decode().replace("\r\n", "\n"), self.text("calls")), **wanted)

    def start(self, line, until=None):
        """The command in the background, as soon as the file UNTIL is there; in a process group of its own, as a terminal does."""
        process = subprocess.Popen([self.command, *self.words(line)], cwd=self.here, env=self.env, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        while until and not (self.S / until).exists():
            self.assertIsNone(process.poll(), f"{line}: ended before there was {until}")
            time.sleep(0.02)
        return process

    def ended(self, process, what, **wanted):
        errors = process.communicate(timeout=60)[1]
        self.verify(what, (process.returncode, "", errors, ""), **wanted)

    def many(self, *rows, env=()):
        """Of each row LINE, WANTED: the same, sooner; for what writes nothing below build/."""
        words = json.dumps([self.words(line) for line, _ in rows])
        ran = subprocess.run([sys.executable, "-B", "-c", MANY, self.command.parent], input=words, cwd=self.here, env=self.environment(dict(env)),
                             stdout=subprocess.PIPE, encoding="utf-8", check=True, timeout=300)
        for (line, wanted), told in zip(rows, json.loads(ran.stdout)):
            self.verify(line, told, **wanted)
        self.assertFalse(self.build.exists(), "one of them has written")

    def refusals(self, rows):
        """Of each row TEXT, LINE...: exit 2 and a few lines with TEXT; nothing looked at, installed or written."""
        wanted = {"code": 2, "is_out": "", "lines": 3, "not_err": "line ", "no_calls": "cmake|apt-get|python3|a_step"}
        return [(line, {"err": text, **wanted}) for text, *lines in rows for line in lines]

    def refused(self, *rows, env=()):
        self.many(*self.refusals(rows), env=env)

    def refused_whole(self, *rows, env=()):
        """From Bash on."""
        for line, wanted in self.refusals(rows):
            self.course(line, env=env, **wanted)
            self.assertFalse(self.build.exists(), f"{line}: has written")

    def verify(self, what, told, code=None, out=(), err=(), is_out=None, is_err=None, not_out=(), not_err=(), lines=None, calls=(), no_calls=()):
        """TOLD has the exit code CODE, each text of OUT on stdout, whole or broken into lines, and none of NOT_OUT; at most so many LINES on
        stderr. One of the calls has each pattern of CALLS, none has one of NO_CALLS."""
        self.code, self.out, self.err, self.calls = told[0] if told[0] >= 0 else 128 - told[0], told[1].rstrip("\n"), told[2].rstrip("\n"), told[3]
        wrong = []

        def expect(text, condition, *shown):
            if not condition:
                wrong.append(" ".join([text, *map(repr, shown)]))

        expect("the exit code is not", code in (None, self.code), code)
        for name, shown, has, lacks, exactly in (("stdout", self.out, out, not_out, is_out), ("stderr", self.err, err, not_err, is_err)):
            for text in listed(has):
                text = text.replace("$S", str(self.S))
                expect(f"{name} lacks", text in shown or text in " ".join(shown.split()), text)
            for text in listed(lacks):
                expect(f"{name} has", text not in shown, text)
            if exactly is not None:
                expect(f"{name} is not", shown == exactly.replace("$S", str(self.S)), exactly)
        expect("too many lines on stderr", lines is None or len(self.err.splitlines()) <= lines)
        for patterns, is_wanted in ((calls, True), (no_calls, False)):
            for pattern in listed(patterns):
                expect("no call has" if is_wanted else "a call has", bool(self.called(pattern)) == is_wanted, pattern)
        with self.subTest(what):
            self.assertFalse(wrong,
                "\n  ".join(["", *wrong, f"exit code: {self.code}", f"stdout: {self.out}", f"stderr: {self.err}", f"calls: {self.calls}"]))

    def called(self, pattern):
        """How often."""
        return len(re.findall(pattern.replace("$S", re.escape(str(self.S))), self.calls, re.MULTILINE))

    def steps_run(self):
        return " ".join(re.findall(r"^a_step .*/([^/]+)\.json$", self.calls, re.MULTILINE))
