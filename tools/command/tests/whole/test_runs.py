"""What the command makes of its arguments, runs, shows and writes: steps, benchmarks, other programs, ctest."""

import json
import resource
import shutil
import subprocess
import time
import unittest

from testbed import REPOSITORY, Whole

LEAKY = "using Activations = gemm::TypeList<gemm::LeakyRelu>;\n"
# A step that writes a result for each shape.
MEASURES = """
import json, sys
step, *given = sys.argv[1:]
def option(name, default): return given[given.index(name) + 1] if name in given else default
results = []
for shape in option("--shape", "").split(","):
    m, n, k = map(int, shape.split("x"))
    ratio = {"median": 0.25, "q20": 0.25, "q80": 0.25}
    results.append({"step": step, "tile": "1x1", "first": True, "m": m, "n": n, "k": k, "in": "f16", "out": "f16",
        "layout": option("--layout", "nn"), "mode": option("--mode", "hot"), "flops": 2, "intensity": {}, "bound": {},
        "bytes": {"no_reuse": 1, "tile_reuse": 1, "compulsory": 1}, "ratio": {"cublasGemmEx": ratio, "cublasLt": ratio}})
document = {"schema": "gemm-course-results", "version": 1, "created": "2026-11-21T07:00:00Z", "commit": None, "backend": "gpu",
    "gpu": {"name": "a GPU", "driver": "1"}, "cuda": "13.0", "cublas": "13.1", "ceilings": {"source": "measured"},
    "results": results}
with open(option("--json", ""), "w") as file: json.dump(document, file)
"""


class Runs(Whole):
    def test_arguments_reach_the_step(self):
        json_there = "--json $S/course/build/results/01_naive.json"
        self.course("run 1 --on interpreter", is_out=f"01_naive --shape 256x256x256 --dtype f32 --layout nn {json_there}")
        self.course("run 1 --on=interpreter --shape=0x4x007,08x9x10,012 --dtype fp16 --layout tn --order random:7 --as h100 --force",
            is_out=f"01_naive --shape 0x4x7,8x9x10,12x12x12 --dtype f16 --layout tn --as h100 --order random:7 --force {json_there}",
            calls="cmake --build --preset interpreter --target 01_naive_first_f16$")
        for spelt, name in (("float32", "f32"), ("fp32", "f32"), ("float16", "f16"), ("half", "f16"), ("bfloat16", "bf16")):
            self.course(f"run 1 --on interpreter --dtype {spelt}", out=f" --dtype {name} ")
        self.course("run 1 02_tiled --on interpreter", calls="--target 01_naive_first_f32 02_tiled_first_f32$")
        self.course("run 1 --on interpreter --json", calls="--target 01_naive_first_f32$")
        self.put("course/steps/01_naive/gemm.cuh", LEAKY)
        for option in ("--all-tiles", "--bias", "--activation gelu"):
            self.course(f"run 1 --on interpreter {option}", code=0, calls="cmake --build --preset interpreter --target 01_naive$")
        self.remove("course/steps/01_naive/gemm.cuh")
        for option in ("", "--all-tiles"):
            self.course(f"run --on interpreter {option}", calls="--target 01_naive 02_tiled 02_tiny 10_last$")
        self.course("run -- 1 --on", err="no step '--on'")

    def test_activations(self):
        self.put("course/steps/02_tiled/gemm.cuh", LEAKY)
        self.course("run 02_tiled --on interpreter --activation gelu --bias", out=" --activation gelu --bias ")
        why = "01_naive fuses nothing: leave out --activation and --bias, or run 02_tiled."
        self.course("run 1 --on interpreter --activation gelu", code=2, err=why, no_calls="cmake")
        self.course("run --on interpreter --bias", err="01_naive fuses nothing: left out.")
        self.assertEqual(self.steps_run(), "02_tiled")

    def test_types_that_a_step_has(self):
        def log(step):
            return self.text(f"course/build/logs/run-{step}.log")

        self.put("course/steps/02_tiled/gemm.cuh", "using Inputs = gemm::TypeList<__half, __nv_bfloat16>;\n")
        self.put("course/steps/01_naive/gemm.cuh", "using Inputs = gemm::TypeList<float, __half, __nv_bfloat16>;\n")
        self.course("run --on interpreter")
        self.assertIn("--dtype f16", log("02_tiled"))
        self.assertIn("--dtype f16", log("01_naive"))
        self.course("run 1 --on interpreter", out="--dtype f32")
        for path in (self.build / "logs").glob("run-*"):
            path.unlink()
        self.course("run --dtype f32 --on interpreter", code=0, err="02_tiled has no kernels for f32: left out.")
        self.assertFalse((self.build / "logs/run-02_tiled.log").exists())
        self.assertIn("--dtype f32", log("01_naive"))
        why = "02_tiled has no kernels for f32: choose another --dtype, f16 or bf16."
        self.course("run 02_tiled --dtype f32 --on interpreter", code=2, err=why, no_calls="cmake")

    def test_tune(self):
        (self.S / "course/steps/06_tuned").mkdir()
        self.course("tune --on interpreter", is_out="06_tuned --tune --shape 256x256x256 --dtype f16 --layout nn")
        self.course("tune --on interpreter --shape 4096x8x16,1x2x3 --dtype bfloat16 --layout tt --as 4090 --verbose --cache=$S/x",
            is_out="06_tuned --cache $S/x --as 4090 --verbose --tune --shape 4096x8x16,1x2x3 --dtype bf16 --layout tt")
        tune = "tune --on interpreter --cache 'a b' "
        self.course(tune + "--show", at="", code=0, is_out="$S/a b:\n  nothing so far", no_calls="cmake")
        self.course(tune + "--clear", at="", code=0, is_out="what was found for 0 problems is removed from $S/a b", no_calls="cmake")
        why = ["cannot write to /proc/nope: make", "name another one with --cache"]
        self.course("tune --on interpreter --cache /proc/nope", code=2, err=why, no_calls="cmake")
        self.put("a b/x")
        self.put("course/build/tuning/x")
        self.course(tune + "--show", at="", is_out="06_tuned --cache $S/a b --show")
        self.course("tune --on interpreter --clear", is_out="06_tuned --clear")
        self.put("exit-06_tuned", "2")
        self.course("tune --on interpreter", code=2)

    def test_exit_codes(self):
        self.put("exit-01_naive", "1")
        self.put("exit-02_tiled", "2")
        self.course("run --on interpreter", code=1)  # a wrong result outranks a refusal
        self.assertEqual(self.steps_run(), "01_naive 02_tiled 02_tiny 10_last")
        self.course("run --on interpreter 02_til 10", code=2)
        self.put("exit-02_tiny", "139")
        self.course("run --on interpreter 02_til 02_tin 10", code=1, err="02_tiny ended with exit code 139")
        self.put("exit-01_naive", "130")
        self.course("run --on interpreter 1 10", code=130)  # an interrupted step ends the run
        self.assertEqual(self.steps_run(), "01_naive")

    def test_a_step_that_is_killed(self):
        self.stand_in("a_step", "kill -9 $$")
        why = "01_naive was killed, as the system does when memory runs out: take a smaller --shape"
        self.course("run --on interpreter 1", code=1, err=why, not_err="never should")

    def test_what_is_unused_is_said_short(self):
        """As g++ writes them: with the instantiation, the line and what may be done."""
        self.edit("bin/cmake", r"(?=echo '\[1/1\] Linking')", 'cat "$SCRATCH/warnings"; ')
        file = f"{self.S}/course/steps/01_naive/gemm.cuh"
        row = f"{file}:42:13: warning: unused variable 'row' [-Wunused-variable]\n"
        self.put("warnings",
            f"In file included from {self.build}/interpreter/steps/01_naive/entry.cpp:2:\n"
              f"{file}: In instantiation of 'void gemm_kernel(int) [with Tile = float]':\n{row}   42 |   const int row = 3;\n{row}"
              f"{file}:40:25: warning: unused parameter 'k' [-Wunused-parameter]\n/usr/include/x.h:1:1: warning: something else [-Wother]\n")
        self.course("run --on interpreter 1", code=0)
        step = "steps/01_naive/gemm.cuh:"
        told = ["configuring interpreter", "building interpreter", f"{step}42: unused variable 'row'", f"{step}40: unused parameter 'k'"]
        self.assertEqual([line for line in self.err.splitlines() if "results:" not in line], [f"course: {each}" for each in told])

    def test_a_second_run_does_no_work(self):
        def seconds():
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime

        again = "run --on interpreter 1"
        self.course(again, calls="cmake --fresh --preset interpreter", not_err="waiting")
        self.course(again)  # keeps the command's own compiled modules, for which there was no folder before
        before = seconds()
        self.course(again)
        self.assertLess(seconds() - before, 0.5)  # of the processors' time, whatever else runs here
        self.assertEqual([call.split()[0] for call in self.calls.splitlines()], ["cmake", "a_step", "python3"])
        self.course(again, at="course/steps", code=0, no_calls="--fresh")
        time.sleep(0.02)
        self.put("course/CMakePresets.json", "{ }")
        self.course(again, calls="--fresh")
        self.edit("course/build/interpreter/.configured", f"^{self.S}", "/old")  # as in a folder that has moved
        self.course(again, calls="--fresh")


class Results(Whole):
    def results(self, name="ladder.json"):
        return self.text(f"course/build/results/{name}")

    def test_results(self):
        """With the real report."""
        self.make_document("interpreter")
        self.course("run --on interpreter", code=0, not_out=["the note of", "--shape"])
        self.assertRegex(self.out, r"\n10_last [^\n]*$")
        self.assertEqual(sum(line[:2].isdigit() for line in self.out.splitlines()), 4)
        self.assertIn("01_naive: running ...\ncourse: 02_tiled: running ...", self.err)
        self.assertIn(f"results: {self.build}/results/ladder.json", self.err)
        self.course("run --on interpreter --all-tiles", at="course", out="10_last: –\n  1x1", not_err="plot")
        self.assertTrue(self.err.endswith("\ncourse: results: build/results/ladder.json"))
        self.assertFalse((self.S / "course/tools/report/__pycache__").exists())
        self.assertEqual(self.text("commit"), "\n")  # outside a checkout
        before = self.results()
        self.assertEqual(before.count('"step"'), 4)

        self.course("run --on interpreter --json 1 02_tiled 02_tiny 10", at="course", is_out=before.rstrip("\n"))
        self.course("run --on interpreter 1", at="course", out=["01_naive --shape", "01_naive: –\n  1x1"], err="results: build/results/part.json")
        self.assertEqual([each["step"] for each in json.loads(self.results("part.json"))["results"]], ["01_naive"])
        self.assertEqual(self.results(), before)

        self.put("exit-02_tiled", "1")
        for name in ("ladder.json", "02_tiled.json"):
            self.put(f"course/build/results/{name}", "precious")
        self.course("run --on interpreter", code=1, err=["02_tiled --shape", "ladder.json was not written"], not_out="02_tiled")
        self.assertRegex(self.out, "(?m)^10_last ")
        self.assertEqual((self.results(), self.results("02_tiled.json")), ("precious", "precious"))
        self.course("run --on interpreter 02_tiled", code=1)  # nothing verified, nothing shown
        self.remove("exit-02_tiled")

        self.course("run --on interpreter 1 --out 'a folder/below'", at="", code=0)
        for name in ("part.json", "01_naive.json"):
            self.assertTrue(self.text(f"a folder/below/{name}"))
        self.course("run --on interpreter 1", most=100 << 10, code=2, err="make room on its disk", no_calls="cmake")
        self.assertEqual(list(self.build.glob("results/.*probe*")), [])

        (self.S / "course/.git").mkdir()
        self.stand_in("git", "echo 0123456789ab-dirty")
        self.course("run --on interpreter 1")
        self.assertEqual(self.text("commit"), "0123456789ab-dirty\n")

        part = "$S/course/build/results/part.json"
        self.put("other.json", self.results("part.json").replace("96", "128"))
        self.course(f"compare '{part}' '{part}'", code=0, out="0 changes beyond the noise")
        self.course(f"compare --fail-beyond 3 '{part}' $S/other.json", code=1, out="+33.33%")
        self.course(f"compare '{part}' $S/missing", code=2, lines=1)
        self.assertTrue(self.err)

    def test_plots(self):
        self.put("course/tools/plot", """#!/bin/bash
echo "plot $*" >>"$SCRATCH/calls"
[[ ! -f $SCRATCH/plot-fails ]] || { echo 'nothing to draw' >&2; exit 2; }
printf '%s\\n' "${*: -1}"/{ladder,roofline}.svg
""").chmod(0o755)
        run, there = "run --on interpreter 1 --as h200", "$S/course/build/results"
        self.course(run, no_calls="^plot", err=f"tools/plot {there}/part.json")
        (self.build / "plot-venv").mkdir()  # with the matplotlib of tools/plot
        self.course(run, calls=f"^plot {there}/part.json --out {there}/plots/part$")
        (self.build / "plot-venv").rmdir()
        self.put("matplotlib", "0")
        self.course("run --on interpreter --as h200", calls=f"^plot {there}/ladder.json --out {there}/plots$")
        self.assertEqual(self.err.splitlines()[-1], f"course: plot: {self.build}/results/plots/ladder.svg")
        self.put("plot-fails")
        self.course(run, code=0, err="nothing to draw", not_err="plot:")

    def test_bench(self):
        """Its own tests are test_benchmark.py: what becomes of the arguments, and one from end to end."""
        bench, out = "bench --suite transformer --dtype f16 --mode hot 1 10", "course/build/results/bench"
        self.put("reports")
        # What is installed here must not matter.
        self.put("course/tools/peers/triton_matmul.py", 'raise SystemExit("peer_triton: there is no PyTorch")\n')
        self.course(bench + " --plan", code=0, out=["01_naive      2             8", "transformer: 8 shapes"], no_calls="cmake|a_step")
        self.assertFalse((self.S / out).exists())

        self.make_gpu()
        self.steps_are_python(MEASURES)
        self.course(bench, code=0,
            calls="^a_step --shape 1x4096x4096,.*,4096x4096x11008 --dtype f16 --layout nn --mode hot --first --seconds 0.2 "
              f"--json $S/{out}/parts/unfinished.json --ceilings $S/course/build/ceilings.json$",
            err=["peer_cutlass is left out: it was not built", "peer_triton is left out: there is no PyTorch."])
        self.assertRegex(self.err, r"(?m)^course: \[3/4\] 10_last .* \.\.\. [0-9.]+ s, about [0-9]+ s left$")
        self.assertRegex(self.out, r"(?m)^  10_last +25\.0 +25\.0 +1x4096x4096")
        self.assertEqual(self.text(f"{out}/bench-f16-hot.json").count('"step"'), 16)

        # A peer that the build knows is built and runs, too.
        self.edit("bin/cmake", r"'--target help'\) ", "\\g<0>echo 'peer_cutlass: phony' ")
        (self.S / "course/steps/peer_cutlass").mkdir()
        self.course(bench + " --no-peers", no_calls="peer_cutlass", err="4 of 4 parts are kept")
        self.course(bench, code=0, calls="cmake --build --preset gpu --target peer_cutlass")
        self.assertEqual(self.text(f"{out}/bench-f16-hot.json").count('"step":"peer_cutlass"'), 8)
        self.course(f"compare --fail-beyond 3 $S/{out}/bench-f16-hot.json $S/{out}/bench-f16-hot.json", out="24 compared; 0 changes")
        self.course("bench --plan --no-peers --suite transformer --dtype f16 --mode hot 1", out="2 of the parts lie in")
        self.course("bench --dtype f32 --suite transformer --fresh --mode hot 1", code=1)  # other results than were asked for
        self.assertFalse((self.S / out / "parts/01_naive-f16-hot-nt-transformer-2048x2048x128.json").exists())


class OnGpu(Whole):
    def test_gpu(self):
        self.make_gpu()
        there = "--ceilings $S/course/build/ceilings.json --json $S/course/build/results/01_naive.json"
        self.course("run 1", is_out=f"01_naive --shape 4096x4096x4096 --dtype f32 --layout nn {there}")
        self.course("run 1 --mode cold", out=" --mode cold ")
        self.remove("course/build")
        self.refused(
            ("--as is about the interpreter", "run --as h200", "run --on gpu --as h200"),
            ("--order is about the interpreter", "run --order random"),
        )
        self.course("run 1 --as h200 --on interpreter", out=" --as h200 ")

    def test_steps_that_the_gpu_cannot_run(self):
        """That is said on every command, and stops none that did not name it."""
        reason = "10_last needs compute capability 9.0, no other: wgmma. This GPU, NVIDIA A100, has 8.0"
        self.make_gpu('[[ $* != *compute_cap* ]] || cat "$SCRATCH/gpus"')
        self.put("gpus", "NVIDIA A100, 8.0\n")
        (self.S / "course/steps/06_tuned").mkdir()
        steps = "01_naive NEEDS 75", "02_tiled", "02_tiny", '06_tuned TUNED NEEDS 80 "cp.async"', '10_last NEEDS 90a "wgmma"'
        self.declare_steps(*steps)
        self.refused((f"{reason}. Run it on the interpreter: --on interpreter", "run 10"), (reason, "run 1 10_last --on gpu"))
        self.course("bench 1 10", code=2, err=reason)
        self.course("run 10 --on interpreter", code=0)
        self.make_document("gpu")
        self.course("run", code=0, no_calls="--build.*10_last",
            err=["course: 10_last is unavailable: needs compute capability 9.0", "results: $S/course/build/results/ladder.json"],
            out="10_last: –\n  unavailable: needs compute capability 9.0, no other: wgmma.")
        self.assertEqual(self.steps_run(), "01_naive 02_tiled 02_tiny 06_tuned")
        self.remove("reports", "document.json")
        self.course("test", code=0, err="10_last is unavailable, its test is skipped: needs")
        self.course("bench --plan --suite transformer --dtype f16 --mode hot", err="10_last is unavailable")
        self.course("tune --on gpu", out="06_tuned --ceilings")
        self.course("profile 10 --on gpu", code=2, err=f"course: --on gpu: {reason}. Or run with --on interpreter.")
        self.put("gpus", "Tesla T4, 7.5\n")
        why = "06_tuned needs compute capability 8.0 or higher: cp.async. This GPU, Tesla T4, has 7.5; using"
        self.course("tune", err=why, calls="cmake --build --preset interpreter --target 06_tuned")
        self.remove("course/build")
        self.refused(("--on gpu: 06_tuned needs compute capability 8.0", "tune --on gpu"))
        self.put("gpus", "Tesla V100, 7.0\n")
        self.course("run 1", code=0, err="this machine's GPU, Tesla V100, is too old", calls="cmake --build --preset interpreter")
        self.put("gpus", "NVIDIA H200, 9.0\n")
        self.course("run 10", code=0)


class Interpret(Whole):
    def test_interpret(self):
        self.put("my program.cu")
        cu = "'$S/my program.cu'"
        self.course(f"interpret --count --order reverse -I $S -DN=3 --as=a100 {cu} --count -x 'a b'", code=0,
            calls=["cmake --build --preset interpreter --target interpreter interpret_prelude$",
              "python3 .*$S/course/tools/interpret/interpret.py --build .*/build/interpreter --cache .*/build/interpret "
              "--count --order reverse -I $S -D N=3 --as a100 -- ", "-- $S/my program.cu --count -x a b$"])
        self.course(
            "interpret -O3 -g -G -arch=sm_90 -arch sm_90a -std=c++17 -o my -lineinfo -Xcompiler -Wall -lcublas -l cudart "
              f"-gencode arch=compute_90,code=sm_90 --use_fast_math -I $S -I/x -Dx=y {cu} -lcublas x",
            code=0,
            err=["-O3, -g, -G, -arch=sm_90, -arch sm_90a, -std=c++17, -o my, -lineinfo, -Xcompiler -Wall, -lcublas, -l cudart, "
              "-gencode arch=compute_90,code=sm_90, --use_fast_math: nvcc's, ignored here",
              "-lcublas: behind $S/my program.cu, so the program gets it"],
            calls="interpret -I $S -I /x -D x=y -- $S/my program.cu -lcublas x$")
        self.course(f"interpret nvcc -std=c++23 {cu} -o my -O3", calls=r"interpret --std gnu\+\+23 -- $S/my program.cu$")
        self.put("build-fails")
        self.course(f"interpret {cu}", code=1, no_calls="interpret.py")


class Tests(Whole):
    def test_running_ctest(self):
        there = "ctest --test-dir $S/course/build/interpreter --output-on-failure --no-tests=error -j[0-9]*$"
        self.course("test --on interpreter", code=0, calls=["cmake --build --preset interpreter$", there])
        self.course("test --on=interpreter -- -R 'one two' --verbose", calls="ctest .* -R one two --verbose$")
        clang = "cmake --fresh --preset interpreter-clang -DCMAKE_CXX_COMPILER=.*/clang[+][+] "
        self.course("test --compiler clang", calls=[clang, "ctest --test-dir .*/build/interpreter-clang "])
        self.put("ctest-fails")
        self.course("test --on interpreter", code=1)

    def test_some_tests(self):
        """What they need is built, and nothing else."""
        self.put("course/LICENSE")
        self.refused(("there is no such file", "test --near nosuch.cpp"), ("no test is about it", "test --near $S/course/LICENSE"))
        tests = self.put(
            "course/build/dev/CTestTestfile.cmake",
            f'add_test(table "python3" "x.py")\nadd_test(first_01_naive_nn "python3" "{self.build}/dev/bin/01_naive_first_f16")\n',
        )
        built = ["cmake --fresh --preset dev ", "cmake --build --preset dev --target bin/01_naive_first_f16$"]
        self.course("test naive", code=0, calls=[*built, r"ctest --test-dir .*/build/dev .* -R \^\(first_01_naive_nn\)\$$"])
        self.course("test table", no_calls="cmake .*--target bin", calls=r"ctest .* -R \^\(table\)\$$")
        why = "no test is called 'nosuch', or has it in its name. There are: first_01_naive_nn table."
        self.course("test nosuch", code=2, err=why)
        tests.write_text(tests.read_text().replace("table", "learnt"))
        self.put("course/steps/01_naive/gemm.cuh")
        self.course("test --near $S/course/steps/01_naive/gemm.cuh", calls=r"ctest .* -R \^\(first_01_naive_nn\|learnt\)\$$",
            err=["running first_01_naive_nn learnt", "tools/course test test_01_naive lessons_edits"])


@unittest.skipUnless(shutil.which("git"), "no git")
class Git(Whole):
    def git(self, folder, *words):
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", self.S / folder, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def commit(self, folder):
        self.git(folder, "init", "-b", "main")
        self.git(folder, "add", ".")
        self.git(folder, "commit", "-m", "x")

    def test_a_clone_by_git_for_windows(self):
        """Git for Windows writes CR LF by default, and what it has cloned is used in WSL2."""
        shutil.copytree(REPOSITORY / "tools", self.S / "theirs/tools")
        self.put("theirs/.gitattributes", (REPOSITORY / ".gitattributes").read_text())
        self.commit("theirs")
        self.git("", "-c", "core.autocrlf=true", "clone", self.S / "theirs", self.S / "mine")
        texts = [path for path in (self.S / "mine/tools").rglob("*") if path.is_file() and b"\0" not in path.read_bytes()]
        self.assertEqual([path for path in texts if b"\r" in path.read_bytes()], [])
        self.command = self.S / "mine/tools/course"
        self.course("help", out="Usage: tools/course COMMAND")

    def test_new_exercises(self):
        self.put("theirs/.gitignore", (REPOSITORY / ".gitignore").read_text())
        self.make_exercise("01_first", folder="theirs")
        self.commit("theirs")
        self.git("", "clone", self.S / "theirs", self.S / "mine")
        self.put("mine/exercises/my/01_first/gemm.cuh", "mine")
        self.put("mine/exercises/my/progress.json", "{}")
        self.make_exercise("02_second", folder="theirs")
        self.put("theirs/exercises/01_first/gemm.cuh", "theirs")
        self.commit("theirs")
        self.git("mine", "pull")
        self.assertTrue((self.S / "mine/exercises/02_second/gemm.cuh").exists())
        self.assertEqual(self.text("mine/exercises/01_first/gemm.cuh"), "theirs")
        self.assertEqual(self.text("mine/exercises/my/01_first/gemm.cuh"), "mine")
        self.assertEqual(self.git("mine", "status", "--porcelain"), "")  # what is mine is not seen


if __name__ == "__main__":
    unittest.main()
