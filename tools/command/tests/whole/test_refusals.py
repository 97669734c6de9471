"""What the command refuses, and that it has done nothing then; and what it says of itself."""

import shutil
import unittest

from testbed import Whole


class Refusals(Whole):
    def test_words(self):
        shapes = ["0x4x", "4x4", "-1x2x3", "1x2x3x4", "1x2x", "axbxc", "1.5x2x3", "''", "' 1x2x3'", "0x10x2x3", "1X2X3", "x4", "4x", "-4", "4k"]
        lists = ["1x1x1,", ",1x1x1", "1x1x1,,2x2x2", "1x1x1,2x2", "'1x1x1 2x2x2'", "'1x1x1, 2x2x2'", "1,,", "'1 2'"]
        too_much = "9999999999x9999999999x9999999999", "9999999999", "4294967296x4294967296x1"
        self.refused(
            ("unknown command", "frobnicate", "run/../x", "course help frobnicate"),
            ("is not MxNxK", *(f"run --shape {shape}" for shape in shapes + lists), *(f"run --shape={shape}" for shape in shapes)),
            ("too large", "run --shape 12x12x99999999999999999999"),
            ("is too large: an extent has 10 digits at most", "run --shape 99999999999x1x1", "run --shape 12345678901"),
            ("needs 8589934591 GiB", *(f"run --on interpreter --shape {shape}" for shape in too_much)),
            ("take a smaller --shape", "run --on interpreter --shape 1000000x1000000x1", "run --on interpreter --shape 1x1x1,1000000x1000000x1"),
            ("'12x12x99999999999999999999' is too large", "run --shape 1x1x1,12x12x99999999999999999999"),
            ("none of: f32 f16 bf16", "run --dtype int3", "run --dtype="),
            ("none of: nn nt tn tt", "run --layout qq", "run --layout 'nn nt'"),
            ("none of: gpu interpreter", "run --on tpu", "test --on tpu"),
            ("none of: hot cold single", "run --mode warm"),
            ("none of: identity leaky_relu relu gelu silu", "run --activation tanh", "run --activation="),
            ("needs a value", "run --activation", "run --shape", "compare a b --fail-beyond", "interpret --order", "interpret -I",
             "build gpu --with="),
            ("unknown option '--bias=3'", "run --bias=3"),
            ("unknown option", "run --bias=yes", "run --json=yes", "run --what", "run -x", "run --force=yes", "bench --shape 1x1x1",
             "bench --plan=yes", "interpret --json $S/missing", "test --shape 1x1x1"),
            ("--debug runs one step in gdb: name it", "run --debug --on interpreter", "run 1 10 --debug"),
            ("--json has no meaning with --debug", "run 1 --debug --json"),
            ("--energy is about the GPU", "run --on interpreter --energy 1"),
            ("--energy '0' is no number of seconds", "run --energy 0"),
            ("--mode is about the GPU", "run --on interpreter --mode cold"),
            ("none of: h200 a100 h100 4090", "run --as b200", "run --as=", "interpret --as=b200 $S/missing"),
            ("needs the name of a folder", "run --out=", "bench --out=", "interpret --keep= $S/missing"),
            ("cannot write to $S/missing: it is a file", "run --on interpreter --out $S/missing", "interpret --keep $S/missing $S/missing"),
            ("cannot write to $S/missing/below: make", "run --on interpreter --out $S/missing/below"),
            ("cannot write to /proc/below: make", "run --on interpreter --out /proc/below"),
            ("needs two result files", "compare", "compare a", "compare a b c"),
            ("cannot read 'a'", "compare a $S/missing"),
            ("cannot read '/'", "compare $S/missing -- /", "interpret -- / x"),
            ("not a number of percent", "compare $S/missing $S/missing --fail-beyond -3", "compare $S/missing $S/missing --fail-beyond 3%"),
            ("--suite 'all' is none of: squares rows transformer", "bench --suite all"),
            ("--suite '' is none of", "bench --suite squares,", "bench --suite="),
            ("--dtype 'f8' is none of: f32 f16 bf16, nor spelt as fp32 ", "bench --dtype f16,f8"),
            ("--dtype '' is none of", "bench --dtype f16,"),
            ("--mode 'warm' is none of: hot cold single", "bench --mode hot,warm"),
            ("no step '3'", "bench 3"),
            ("none of: forward", "run --order sideways", "run --order random:", "run --order random:-1", "run --order random:99999999999999999999",
             "interpret --order sideways $S/missing"),
            ("interpret needs a file", "interpret", "interpret --count"),
            ("cannot read '$S/none.cu'", "interpret $S/none.cu --order reverse"),
            ("a program is one file here: a.cu, b.cu", "interpret nvcc a.cu -o x b.cu"),
            ("unknown option '-order'", "interpret -order reverse $S/missing"),
            ("for the interpreter", "test --compiler clang --on gpu"),
            ("none of: gcc clang", "test --compiler msvc"),
            ("build needs the name of a preset", "build"),
            ("no preset 'nix'. There are: interpreter ", "build nix"),
            ("Or run with --on interpreter", "run --on gpu", "test --on gpu"),
            ("bench measures on a GPU: this machine has no NVIDIA GPU that can be used. Here, 'tools/course bench --plan'", "bench"),
        )
        nope = "COURSE_GPU_ARCHITECTURES=nope: 'nope' is no architecture"
        self.refused((nope, "build gpu course_gemm"), env={"COURSE_GPU_ARCHITECTURES": "nope"})
        none = "'' is no architecture. Name some, for example 80-real;90a-real."
        self.refused((none, "build gpu"), env={"COURSE_GPU_ARCHITECTURES": "80-real;"})

    def test_from_bash_on(self):
        self.refused_whole(
            ("unknown command", "frobnicate"),
            ("is not MxNxK", "run --shape '1x1x1 2x2x2'"),
            ("none of: f32 f16 bf16", "run --dtype="),
            ("cannot read '/'", "compare $S/missing -- /"),
            ("Or run with --on interpreter", "test --on gpu"),
            ("'' is no architecture", "build gpu"),
            env={"COURSE_GPU_ARCHITECTURES": "80-real;"},
        )

    def test_step_names(self):
        nothing = "3", "0", "iled", "99999999999999999999999", "", "/", "*", "_", "01_naivety", "../steps"
        self.refused(
            *((f"no step '{name}'. Give a number or a word of a name: 01_naive 02_tiled 02_tiny 10_last", f"run '{name}'") for name in nothing),
            ("could be any of: 02_tiled 02_tiny", "run ti", "run 2", "run 02_ti"),
            ("no step '3'", "run 1 3"),
            ("'4': tune takes options alone", "tune 4", "tune -- 4"),
            ("is not MxNxK", "tune --shape 4x4"),
            ("06_tuned multiplies f16 and bf16", "tune --dtype f32"),
            ("none of: f32 f16 bf16", "tune --dtype f8"),
            ("none of: nn nt tn tt", "tune --layout nx"),
            ("none of: h200 a100 h100 4090", "tune --as b200"),
            ("none of: gpu interpreter", "tune --on tpu"),
            ("needs the name of a folder", "tune --cache="),
            ("--shape has no meaning with --show", "tune --show --shape 1x1x1"),
            ("--cache $S/missing is a file", "tune --cache $S/missing --clear", "tune --cache $S/missing --show"),
            ("unknown option '--clear=3'", "tune --clear=3"),
            ("--verbose has no meaning with --show or --clear", "tune --clear --verbose"),
            ("one at a time", "tune --show --clear"),
        )
        self.course("run --on interpreter 1 02_til 10 01 10_ steps/02_tiny/ last Naive ./steps/10_last/gemm.cuh")
        self.assertEqual(self.steps_run(), "01_naive 02_tiled 10_last 02_tiny")
        (self.S / "course/steps/01_copy").mkdir()
        self.course("run --on interpreter 1", code=0)
        self.assertEqual(self.steps_run(), "01_naive")
        self.assertEqual(self.err.count("steps/01_copy is left out: steps/CMakeLists.txt names no such step"), 1)
        self.remove("course/steps/01_copy")
        self.course("run --on interpreter")
        self.assertEqual(self.steps_run(), "01_naive 02_tiled 02_tiny 10_last")

    def test_profile(self):
        self.make_exercise("01_first")
        self.refused(
            ("profile needs one step, exercise or solution", "profile", "profile 1 2"),
            ("no step '7'", "profile 7"),
            ("no exercise 'exercises/7'", "profile exercises/7"),
            ("no exercise 'solutions/x'", "profile solutions/x"),
            ("name one --shape", "profile 1 --shape 1x1x1,2x2x2"),
            ("has nothing to multiply", "profile 1 --shape 1x0x1"),
            ("is not MxNxK", "profile 1 --shape 4x4"),
            ("take a smaller --shape", "profile 10 --shape 1000000x1000000x1"),
            ("needs 8589934591 GiB", "profile 1 --shape 9999999999x9999999999x9999999999"),
            ("too large", "profile 1 --shape 12345678901x0x0"),
            ("--tile needs a value", "profile 1 --tile="),
            ("none of: f32 f16 bf16", "profile 1 --dtype int3"),
            ("none of: gpu interpreter", "profile 1 --on tpu"),
            ("--on gpu: this machine has no NVIDIA GPU that can be used: measuring needs one", "profile 1 --on gpu"),
            ("unknown option '--mode'; 'tools/course profile --help' lists them", "profile 1 --mode hot"),
            ("--tile is for steps", "profile exercises/1 --tile g8", "profile solutions/01_first --tile g8"),
            ("--dtype is for steps", "profile exercises/1 --dtype f16", "profile solutions/01_first --dtype f16"),
        )

    def test_memory(self):
        # A, B and C are a sixth of the memory; only with shadow memory it is too much.
        self.refused(("take a smaller --shape", f"run --on interpreter --shape {(24 << 30) // 48}x1x1"))
        self.put("machine/sys/fs/cgroup/memory.max", "max")
        self.course("run --on interpreter --shape 10000x1000x1000 1", code=0)
        self.put("machine/sys/fs/cgroup/memory.max", str(1 << 30))
        self.remove("course/build")
        self.refused(("this machine has 1024 MiB: take a smaller --shape", "run --on interpreter --shape 10000x1000x10000 1"))

    def test_memory_that_the_steps_ask_for(self):
        """What the machine cannot hold is refused by one step, not by each."""
        self.stand_in("a_step", '[[ $* != *--check-memory* ]] || { echo "${0##*/}: this problem needs 2 TB" >&2; exit "$(<"$SCRATCH/enough")"; }')
        self.put("enough", "2")
        self.course("run --on interpreter --shape 20000x20000x1", code=2, calls="--check-memory --shape 20000x20000x1 --dtype f32")
        self.assertEqual((self.err.count("this problem needs 2 TB"), self.called("^a_step")), (1, 1))
        self.put("enough", "0")
        self.course("run --on interpreter --shape 1x1x1,20000x20000x1")
        self.assertEqual(self.called("^a_step"), 5)
        self.course("run --on interpreter", no_calls="--check-memory")

    def test_folders_that_cannot_be_built_in(self):
        why = "and CMake cannot build below a folder with ; # [ ] \" or \\ in its name: rename it, or move the course."
        for name in ("a;b", "a#b", 'a"b', "a\\b", "a[b", "a]b"):
            (self.S / "course").rename(self.S / name)
            self.command = self.S / name / "tools/course"
            self.course("run", code=2, is_err=f"course: the course lies in $S/{name}, {why}")
            self.assertFalse((self.S / name / "build").exists())
            (self.S / name).rename(self.S / "course")


class Help(Whole):
    def test_help(self):
        commands = ["run", "test", "tune", "bench", "compare", "interpret", "list", "check", "watch", "hint", "solution", "reset", "verify-all", "grade"]
        lines = "help", "--help", *(f"{command} --help" for command in commands), "interpret -h", "help run", "help test", "run 1 -h"
        wanted = {"code": 0, "out": "Usage: tools/course", "is_err": ""}
        self.many(*((line, wanted) for line in lines))
        self.course("help run", **wanted)
        self.refused(
            ("'x': --version takes no more arguments", "--version x"),
            ("'zzz': --help takes no more arguments", "--help zzz"),
            ("'zzz': help takes no more arguments", "help run zzz"),
        )

    def test_version(self):
        self.course("--version", code=0, is_out="course, commit unknown: this is no git checkout", is_err="")
        self.course("--version", env={"COURSE_COMMIT": "0123456789ab-dirty"}, code=0, is_out="course, commit 0123456789ab-dirty", is_err="")
        self.assertFalse(self.build.exists())

    def test_no_command(self):
        self.course(code=0, out="Usage: tools/course")
        self.make_exercise("01_first")
        self.course(code=0, is_err="", out=["0 of 1 passed\nNext: 01 first. Read exercises/01_first/README.md", "tools/course check "])
        self.assertFalse((self.S / "course/exercises/my").exists())


class Exercises(Whole):
    def test_from_the_first_to_the_last(self):
        self.refused(("there are no exercises here", "check"))
        for name in ("01_first", "02_second"):
            self.make_exercise(name)
        self.refused(
            ("no exercise '3'. Give a number or a word of a name: 01_first 02_second", "check 3"),
            ("no exercise 'x'", "reset x"),
            ("--all checks every exercise", "check --all 1"),
            ("there is no such folder", "check --all --of $S/nowhere"),
            ("'1': list takes no arguments", "list 1"),
            ("needs an exercise", "solution"),
            ("01 first has not passed yet", "solution 1"),
            ("watch begins with one exercise", "watch 1 2"),
            ("hint is about one exercise", "hint 1 2"),
            ("start is about one exercise", "start 1 2"),
            ("none of: gpu interpreter", "verify-all --on tpu"),
        )
        self.course("list", out=["-> 01 first                     not begun", "[....................] 0 of 2 passed. Next: 01 first."])
        self.course("hint 2", out="hint 1 of 1")
        self.course("solution 2 --give-up", out="filled")
        self.course("start 1", out="Edit exercises/my/01_first/gemm.cuh")
        self.put("course/exercises/my/01_first/gemm.cuh", "mine\n")
        self.course("reset 1")
        self.assertIn("hole", self.text("course/exercises/my/01_first/gemm.cuh"))
        self.assertEqual([kept.read_text() for kept in self.S.glob("course/exercises/my/01_first/gemm-*.cuh")], ["mine\n"])
        self.assertFalse((self.build / "interpreter").exists())
        # Progress is where the exercises are.
        shutil.rmtree(self.build, ignore_errors=True)
        (self.S / "course").rename(self.S / "moved")
        shutil.copytree(self.S / "moved", self.S / "course")
        self.course("hint 2", out="solution 02 --give-up")
        # No build: the stand-ins make no program.
        self.course("check 1 --json", code=1, err="does not know how to link exercise 01_first")


if __name__ == "__main__":
    unittest.main()
