"""What .ci/run skips has passed, and its lists leave nothing out. 'python3 -B .ci/gates_test.py'."""

import os
import re
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.split("\0") if path and os.path.exists(os.path.join(ROOT, path))]


class Tree(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = os.path.join(scratch.name, "a tree")
        self.environment = dict(os.environ, COURSE_CI_CACHE=os.path.join(scratch.name, "cache"))
        os.makedirs(os.path.join(self.tree, "common"))
        self.write("common/kernel.h", "1")
        self.write("README.md", "1")
        subprocess.run(["git", "init", "-q"], cwd=self.tree, check=True)
        subprocess.run(["git", "add", "-A"], cwd=self.tree, check=True)

    def write(self, path, content):
        with open(os.path.join(self.tree, path), "w", encoding="utf-8") as file:
            file.write(content)


class Gates(Tree):
    def stage(self, result="true", also=""):
        """'ran' or 'skipped'; RESULT is the stage's command. As .ci/run has it: what fails ends the run."""
        script = f"""set -euo pipefail; . '{HERE}/gates.sh'
            if passed_before stage common ':(exclude,glob)**/*.md' {also}; then echo skipped; else echo ran; {result}; has_passed stage; fi"""
        ran = subprocess.run(["bash", "-c", script], cwd=self.tree, env=self.environment, capture_output=True, text=True)
        self.assertEqual(ran.stderr, "")
        return ran.stdout.strip()

    def test_red_stays_red(self):
        for _ in range(3):
            self.assertEqual(self.stage("false"), "ran")
        self.assertEqual(self.stage(), "ran")
        self.assertEqual(self.stage("false"), "skipped")  # the very same files have passed

    def test_what_differs_runs(self):
        self.stage()
        changes = {
            "a file that is not committed": lambda: self.write("common/kernel.h", "2"),
            "a new file": lambda: self.write("common/new.h", ""),
            "a file less": lambda: os.remove(os.path.join(self.tree, "common/kernel.h")),
            "another name": lambda: os.rename(os.path.join(self.tree, "common/new.h"), os.path.join(self.tree, "common/newer.h")),
        }
        for what, change in changes.items():
            change()
            self.assertEqual((what, self.stage()), (what, "ran"))
            self.assertEqual((what, self.stage()), (what, "skipped"))

    def test_what_a_stage_does_not_read_does_not_matter(self):
        self.stage()
        self.write("README.md", "2")
        self.write("common/page.md", "2")
        self.assertEqual(self.stage(), "skipped")

    def test_what_passed_once_is_still_known(self):
        self.stage()
        self.write("common/kernel.h", "2")
        self.stage()
        self.write("common/kernel.h", "1")
        self.assertEqual(self.stage(), "skipped")


    def test_what_is_built_is_compared_itself(self):
        self.write(".gitignore", "build/")
        os.makedirs(os.path.join(self.tree, "build"))
        for content, result in (("1", "ran"), ("1", "skipped"), ("2", "ran"), ("1", "skipped")):
            self.write("build/a program", content)
            self.assertEqual(self.stage(also="'build/a program'"), result)


class Tests(Tree):
    """run_tests, with a stand-in for ctest that runs what it is not told to leave out."""

    CTEST = """#!/usr/bin/env bash
        while (($#)); do [[ $1 != -E ]] || without=$2; [[ $1 != -R ]] || wanted=$2; shift; done
        code=0
        for name in test_01_naive interpreter_bugs interpreter_fuzz_right tables; do
          [[ $name =~ $wanted && ! $name =~ $without ]] || continue
          program=build/x/bin/$name
          if [[ -e $program ]] && ! bash "$program"; then code=8 result='***Failed  '; else result='   Passed  '; fi
          echo " 1/3 Test  #1: $name ........$result  0.1 sec"
        done
        exit $code
        """

    def setUp(self):
        super().setUp()
        self.write(".gitignore", "build/")
        for folder in ("tools", "build/x/bin", "common/interpreter/tests"):
            os.makedirs(os.path.join(self.tree, folder))
        self.write("tools/course", "#!/usr/bin/env bash\necho build/ctest")
        self.write("build/ctest", self.CTEST)
        os.chmod(os.path.join(self.tree, "tools/course"), 0o755)
        os.chmod(os.path.join(self.tree, "build/ctest"), 0o755)
        lines = ['add_test([=[tables]=] "python3" "tables.py")\n']
        for name in ("test_01_naive", "interpreter_bugs", "interpreter_fuzz_right"):
            lines.append(f'add_test([=[{name}]=] "{self.tree}/build/x/bin/{name}")\n')
            self.write(f"build/x/bin/{name}", "true")
        self.write("build/x/CTestTestfile.cmake", "".join(lines))

    def ran(self, fails=False, wanted=""):
        """The tests that run_tests runs, of those that WANTED names."""
        script = f". '{HERE}/gates.sh'; set -euo pipefail; run_tests build/x {wanted}"
        done = subprocess.run(["bash", "-c", script], cwd=self.tree, env=self.environment, capture_output=True, text=True)
        self.assertEqual((done.returncode != 0, done.stderr), (fails, ""), done.stdout)
        return re.findall(r"Test +#1: (\S+)", done.stdout)

    def test_a_program_that_has_passed_is_not_run_again(self):
        always = ["interpreter_fuzz_right", "tables"]
        for _ in range(2):
            self.assertEqual(self.ran(wanted="'^tables$'"), ["tables"])
        self.assertEqual(self.ran(wanted="'^interpreter_bugs$'"), ["interpreter_bugs"])
        self.assertEqual(self.ran(wanted="'^interpreter_bugs$'"), [])
        self.assertEqual(self.ran(), ["test_01_naive", *always])
        self.assertEqual(self.ran(), always)
        self.write("build/x/bin/test_01_naive", "false")
        self.assertEqual(self.ran(fails=True), ["test_01_naive", *always])
        self.assertEqual(self.ran(fails=True), ["test_01_naive", *always])  # red stays red
        self.write("common/interpreter/tests/bugs.cpp", "what it quotes")
        self.assertEqual(self.ran(fails=True), ["test_01_naive", "interpreter_bugs", *always])
        self.write("build/x/bin/test_01_naive", "true")
        self.assertEqual(self.ran(), always)


class Lists(unittest.TestCase):
    """A file that no list names is never compiled, run or read."""

    def test_every_source_is_built(self):
        # Steps, exercises and solutions are found by their folders.
        everywhere = {path: text(path) for path in tracked("*CMakeLists.txt", "*.cmake")}
        for path in tracked("*.cpp", "tools/interpret/programs/*.cu"):
            if re.match(r"(steps|exercises|solutions)/\d", path):
                continue
            name = os.path.splitext(os.path.basename(path))[0]
            # By its name in a list above it, or by its whole path.
            named = any(
                re.search(rf"\b{re.escape(name)}\b", said) if path.startswith(os.path.dirname(where)) else path in said
                for where, said in everywhere.items()
            )
            self.assertTrue(named, f"{path} stands in no CMakeLists.txt")

    def test_every_test_of_python_runs(self):
        lists = "".join(text(each) for each in tracked("*CMakeLists.txt", ".ci/run"))
        for path in tracked("*_test.py", "*test_*.py", "*_test.sh"):
            folder = os.path.dirname(path)
            by_name = re.search(rf"\b{re.escape(os.path.basename(path))}\b", lists)
            by_folder = os.path.basename(path).startswith("test_") and re.search(
                rf"discover -s (\$\{{CMAKE_SOURCE_DIR\}}/{folder}\b|\$\{{CMAKE_CURRENT_SOURCE_DIR\}}\))", lists
            )
            self.assertTrue(by_name or by_folder, f"{path} is run by nothing")

    def test_every_step_has_all_that_a_step_has(self):
        declared = re.findall(r"^course_step\((\w+)", text("steps/CMakeLists.txt"), re.MULTILINE)
        folders = sorted({path.split("/")[1] for path in tracked(":(glob)steps/[0-9]*/*")})
        self.assertEqual(sorted(declared), folders)
        for name in folders:
            for file in ("README.md", "gemm.cuh", "test.cpp", "sass.ini"):
                self.assertTrue(os.path.exists(os.path.join(ROOT, "steps", name, file)), f"steps/{name} has no {file}")

    def test_every_exercise_has_all_that_an_exercise_has(self):
        declared = re.findall(r"^course_exercise\((\w+)", text("exercises/CMakeLists.txt"), re.MULTILINE)
        for kind, files in (("exercises", ("README.md", "gemm.cuh", "test.cpp")), ("solutions", ("gemm.cuh",))):
            folders = sorted({path.split("/")[1] for path in tracked(f":(glob){kind}/[0-9]*/**")})
            self.assertEqual(sorted(declared), folders)
            for name in folders:
                for file in files:
                    self.assertTrue(os.path.exists(os.path.join(ROOT, kind, name, file)), f"{kind}/{name} has no {file}")


if __name__ == "__main__":
    unittest.main()
