"""Tests of single pieces: steps, memory, reasons, and what is shown while work goes on. whole/ tests the command from end to end."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from command import files, main, messages
from command.building import folder
from command.cli import steps, values
from command.exercises import judging
from command.machine import causes, memory, packages, processes, progress, toolchain
from command.messages import Failed, Refused
from command.places import ROOT
from command.subcommands import run as run_command


class Patience(unittest.TestCase):
    def test_a_lessons_size_is_refused_without_a_build(self):
        with mock.patch("os.sched_getaffinity", return_value={0, 1}):
            with self.assertRaisesRegex(Refused, r"02_tiled would take about \d+ minutes .* or add --force"):
                steps.check_patience(["02_tiled"], "f32", values.Shapes("4096x4096x4096"))
            steps.check_patience(["02_tiled"], "f32", values.Shapes("256x256x256,512x512x512"))

    def test_nothing_is_known_of_a_new_step(self):
        self.assertIsNone(steps.expected_seconds("99_new", "f16", [(1, 1, 1)]))


class Memory(unittest.TestCase):
    def test_sizes_stop_where_numbers_end(self):
        self.assertEqual(memory.matrix_bytes((2, 3, 4), 4), 4 * (8 + 12 + 6))
        self.assertEqual(memory.matrix_bytes((10**18, 10**18, 10**18), 4), memory.LARGEST)


class Causes(unittest.TestCase):
    def test_reasons(self):
        for line, reason in (
            ("E: You don't have enough free space in /var/cache/apt/archives/.", "disk is full"),
            ("write error: No space left on device", "disk is full"),
            ("SSLCertVerificationError: CERTIFICATE_VERIFY_FAILED", "certificate"),
            ("Certificate verification failed: The certificate is NOT trusted.", "certificate"),
            ("E: Unable to locate package libdw-dev", "Ubuntu 22.04"),
        ):
            self.assertIn(reason, causes.cause_of(["something", line, "more"]))
        self.assertEqual(causes.cause_of(["E: Failed to fetch x  Could not resolve 'deb.debian.org'"]), "")

    def test_a_compiler_that_was_killed(self):
        self.assertTrue(causes.ran_out_of_memory(["g++: fatal error: Killed signal terminated program cc1plus"]))
        self.assertFalse(causes.ran_out_of_memory(["gemm.cuh:3: error: killed was not declared"]))


class Processes(unittest.TestCase):
    def test_codes(self):
        self.assertEqual(processes.run(["sh", "-c", "exit 3"]), 3)
        self.assertEqual(processes.run(["sh", "-c", "kill -9 $$"]), 137)
        with self.assertRaisesRegex(Failed, "cannot start /nonesuch"):
            processes.run(["/nonesuch"])

    def test_a_step_that_was_killed(self):
        this = run_command.Run.__new__(run_command.Run)
        this.out, this.quiet, this.exit, this.made = "/tmp", False, run_command.Exit(), []
        this.given = mock.Mock(see=None)
        said = io.StringIO()
        with mock.patch.object(run_command.processes, "run", return_value=137), contextlib.redirect_stderr(said):
            with mock.patch.object(run_command.Run, "program", lambda *_: "x"):
                this.run_step("02_tiled", [])
        self.assertIn("02_tiled was killed, as the system does when memory runs out", said.getvalue())
        self.assertEqual(this.exit.worst, 1)


# A command whose work is the CODE, with signals as main() takes them.
COMMAND = """
import os, subprocess, sys, threading, time
from command import main
from command.exercises import judging
from command.machine import processes
from command.machine.progress import Progress
def dispatch(words):
    main.processes.take_signals()
    CODE
    return 0
main.dispatch = dispatch
sys.exit(main.main([]))
"""
# Two levels below a command: what 'kill' does not reach by itself. The file says that it is there.
BELOW = ["sh", "-c", 'trap "" INT; sh -c "touch $0/there; sleep 40" & wait', "FOLDER"]
IGNORES = ["sh", "-c", 'trap "" TERM; touch $0/there; while :; do sleep 1; done', "FOLDER"]
CLEANS_UP = ["sh", "-c", 'trap "sleep 0.5; touch $0/clean; exit" INT; touch $0/there; while :; do sleep 0.1; done', "FOLDER"]
INSTALLS = ["sh", "-c", 'touch $0/there; sleep 1; touch $0/installed', "FOLDER"]


class Signals(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def ended(self, code, number, to=os.kill):
        """(exit code, seconds until then, stderr) of the command CODE, which gets the signal NUMBER."""
        text = COMMAND.replace("CODE", code.replace("FOLDER", self.folder))
        command = [sys.executable, "-c", text]
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
        with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "tools")}, **options) as process:
            deadline = time.monotonic() + 60
            while not os.path.exists(os.path.join(self.folder, "there")) and time.monotonic() < deadline:
                time.sleep(0.02)
            begin = time.monotonic()
            to(process.pid, number)
            errors = process.communicate(timeout=60)[1]
        left = subprocess.run(["ps", "-o", "stat=,args=", "-s", str(process.pid)], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual([line for line in left.stdout.splitlines() if not line.startswith("Z")], [])
        self.assertNotIn("Traceback", errors)
        os.remove(os.path.join(self.folder, "there"))
        return process.returncode, time.monotonic() - begin, errors

    def test_all_that_was_started_ends(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)):
            for work in (
                f"processes.run({BELOW})",
                f"processes.listen({BELOW}, print, int)",
                f"processes.run({IGNORES})",
            ):
                with self.subTest(work, number=number):
                    found, seconds, _ = self.ended(work, number)
                    self.assertEqual(found, code)
                    self.assertLess(seconds, 25)

    def test_ctrl_c_that_reaches_the_command_alone(self):
        command = ["sh", "-c", "touch $0/there; exec sleep 40", "FOLDER"]
        for to in (os.kill, os.killpg):
            found, seconds, _ = self.ended(f"processes.run({command})", signal.SIGINT, to)
            self.assertEqual(found, 130)
            self.assertLess(seconds, 25)

    def test_ctrl_c_before_anybody_waits_lets_it_clean_up(self):
        found, seconds, _ = self.ended(f"processes.start({CLEANS_UP}); time.sleep(40)", signal.SIGINT, os.killpg)
        self.assertEqual((found, os.path.exists(os.path.join(self.folder, "clean"))), (130, True))
        self.assertLess(seconds, 25)
        self.assertEqual(self.ended(f"processes.start({IGNORES}); time.sleep(40)", signal.SIGINT, os.killpg)[0], 130)

    def test_dpkg_comes_to_its_end(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            found, _, _ = self.ended(f"processes.run({INSTALLS}, is_protected=True)", number)
            self.assertEqual(found, code)
            self.assertTrue(os.path.exists(os.path.join(self.folder, "installed")))
            os.remove(os.path.join(self.folder, "installed"))

    def test_what_another_thread_waits_for_ends_too(self):
        command = ["sh", "-c", "touch $0/there; sleep 40", "FOLDER"]
        work = f"thread = threading.Thread(target=judging.limited, args=({command}, '/', 50)); thread.start(); time.sleep(40)"
        found, seconds, _ = self.ended(work, signal.SIGTERM)
        self.assertEqual(found, 143)
        self.assertLess(seconds, 25)

    def test_a_second_signal_disturbs_nothing(self):
        def twice(pid, number):
            os.kill(pid, number)
            time.sleep(0.1)
            os.kill(pid, number)

        self.assertEqual(self.ended(f"processes.run({IGNORES})", signal.SIGTERM, twice)[0], 143)

    def test_where_python_swallows_exceptions(self):
        work = "\n".join(
            [
                "class Swallows:",
                "        def __del__(self):",
                "            open('FOLDER/there', 'w').close()",
                "            time.sleep(20)",
                "    thing = Swallows()",
                "    del thing",
                "    time.sleep(20)",
            ]
        )
        found, seconds, _ = self.ended(work, signal.SIGINT)
        self.assertEqual(found, 130)
        self.assertLess(seconds, 25)

    def test_what_cannot_be_told_ends_what_tells_it(self):
        """A full disk, for the log."""
        command = ["sh", "-c", "touch $0/there; while :; do echo x; sleep 0.1; done", "FOLDER"]
        work = f"with Progress('x', '/dev/full') as progress: progress.run({command})"
        found, _, errors = self.ended(work, 0)
        self.assertEqual(found, 2)
        self.assertIn("cannot write to /dev/full: No space left on device", errors)


class Surroundings(unittest.TestCase):
    def test_programs_that_are_read_speak_english(self):
        said = ["sh", "-c", "echo $LC_ALL $LANGUAGE."]
        with mock.patch.dict(os.environ, {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"}):
            self.assertEqual(processes.ask(said)[1], "C.UTF-8 .\n")
            heard = []
            processes.listen(said, heard.append, int)
            self.assertEqual(heard, [b"C.UTF-8 .\n"])
            self.assertEqual(judging.limited(said, "/", 20).output, "C.UTF-8 .\n")

    def test_variables_that_would_change_the_build_are_said_to_be_ignored(self):
        theirs = dict.fromkeys((*toolchain.IGNORED, *toolchain.IGNORED_ON_GPU), "")  # this machine may set some of them
        with mock.patch.dict(os.environ, theirs | {"CXX": "clang++", "CUDAARCHS": "90"}):
            for preset, names in (("interpreter", "CXX: ignored"), ("gpu", "CXX CUDAARCHS: ignored.*COURSE_GPU_ARCHITECTURES")):
                said = io.StringIO()
                with contextlib.redirect_stderr(said):
                    toolchain.say_what_is_ignored(preset)
                self.assertRegex(said.getvalue(), f"^course: {names}")
            self.assertFalse({"CXX", "CUDAARCHS"} & set(toolchain.environment()))
            changed = toolchain.stamp_key()
        self.assertNotEqual(changed, toolchain.stamp_key())

    def test_who_sits_at_a_terminal_may_say_no_to_sudo(self):
        for typed, is_allowed in (("\n", True), ("y\n", True), ("Yes\n", True), ("n\n", False), ("what\n", False), ("", False)):
            stdin, stderr = io.StringIO(typed), io.StringIO()
            stdin.isatty = stderr.isatty = lambda: True
            with mock.patch.object(sys, "stdin", stdin), mock.patch.object(sys, "stderr", stderr):
                self.assertEqual(packages.is_allowed("gdb"), is_allowed, typed)
            self.assertIn("install Debian's packages gdb with sudo? [Y/n]", stderr.getvalue())
        with mock.patch.object(sys, "stdin", io.StringIO("n\n")):  # nobody is there
            self.assertTrue(packages.is_allowed("gdb"))

    def test_a_long_line_to_type_can_be_pasted(self):
        line = packages.line_to_type(["libsomething-dev"] * 20)
        self.assertLess(max(map(len, line.split("\n"))), 200)
        self.assertEqual(line.count("libsomething-dev"), 20)
        self.assertTrue(all(part.endswith(" \\") for part in line.split("\n")[:-1]))

    def test_what_was_typed_does_nothing_to_a_terminal(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            messages.say("no step '\x1b[31m\r\udcff': give\n  \u00e9")
            messages.say(f"no step '{'x' * 100_000}': give a number.")
        first, second, *_ = said.getvalue().split("\n")
        self.assertEqual((first, second), (r"course: no step '\x1b[31m\r\udcff': give", "  \u00e9"))
        self.assertLess(len(said.getvalue()), messages.MOST_CHARACTERS)
        self.assertTrue(" ".join(said.getvalue().split()).endswith("xxx': give a number."))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            main.say_what_failed(OSError(2, "No such file", "\x1b[31m"))
        self.assertEqual(said.getvalue(), "course: \\x1b[31m: No such file.\n")

    def test_long_messages_have_several_lines(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            messages.say("words " * 60 + "\n  " + "x" * 300)
        lines = said.getvalue().splitlines()
        self.assertLess(max(map(len, lines[:-1])), 161)
        self.assertEqual(lines[-1], "  " + "x" * 300)

    def test_a_systems_error_has_the_files_name(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "file")
            files.write(path, "before")
            with mock.patch("os.replace", side_effect=OSError(28, "No space left on device")):
                with self.assertRaises(OSError) as raised:
                    files.write(path, "after")
            self.assertEqual(raised.exception.filename, path)
            self.assertEqual((files.text(path), os.listdir(place)), ("before", ["file"]))


class BuildFolder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root, self.said = scratch.name, io.StringIO()
        for target, value in (
            ("command.building.folder.ROOT", self.root),
            ("command.building.folder.BUILD", os.path.join(self.root, "build")),
            ("command.building.folder.LOCK", os.path.join(self.root, "build/lock")),
            ("command.building.folder.LOGS", os.path.join(self.root, "build/logs")),
            ("command.machine.toolchain.BUILD", os.path.join(self.root, "build")),
        ):
            patch = mock.patch(target, value)
            patch.start()
            self.addCleanup(patch.stop)

    def make(self, path, ahead):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        files.write(path, "")
        os.utime(path, (time.time() + ahead,) * 2)
        return path

    def mend(self):
        self.said = io.StringIO()
        with contextlib.redirect_stderr(self.said):
            folder.mend_times("interpreter")
        return self.said.getvalue()

    def test_files_from_the_future(self):
        paths = [self.make(path, 86400) for path in ("CMakePresets.json", "steps/01_naive/gemm.cuh")]
        self.make("common/old.h", -86400)
        self.make("mine/other.h", 86400)
        self.assertRegex(self.mend(), r"^course: .*, and 1 more, is of \d{4}-.*, which is to come: is this machine's clock right\? They count as")
        self.assertTrue(all(os.stat(path).st_mtime <= time.time() for path in paths))
        self.assertEqual(self.mend(), "")

    def test_a_build_of_the_future_is_made_anew(self):
        log = self.make("build/interpreter/.ninja_log", 3600)
        stamp = self.make("build/interpreter/.configured", -3600)
        self.assertRegex(self.mend(), r"^course: build/interpreter was built at .* It is built anew\.$")
        self.assertFalse(os.path.exists(log) or os.path.exists(stamp))
        self.assertEqual(self.mend(), "")

    def test_who_waits_is_told_for_whom(self):
        with folder.locked(), mock.patch.object(sys, "argv", ["x", "check", "--of", "a b"]):
            lock = os.open(folder.LOCK, os.O_RDWR)
            self.assertRegex(folder.holder(lock), rf"building since \d\d:\d\d:\d\d: 'tools/course .*', process {os.getpid()}$")
            self.assertEqual(folder.this_command(), "tools/course check --of 'a b'")
            os.ftruncate(lock, 0)
            self.assertEqual(folder.holder(lock), "another course command that is building")
            os.pwrite(lock, b"999999999 1700000000 tools/course run\n", 0)
            self.assertRegex(folder.holder(lock), "since 2023-11-1.*'tools/course run', process 999999999, which was ended")
            os.close(lock)

    @unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja") and shutil.which("g++"), "no cmake, ninja or g++")
    def test_a_folder_that_has_moved(self):
        """Nothing is compiled again, but for what has debug information."""
        top = "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\ninclude_directories(${CMAKE_SOURCE_DIR})\nadd_subdirectory(common)\n"
        below = "add_library(x STATIC x.cpp)\nadd_library(y STATIC y.cpp)\ntarget_compile_options(y PRIVATE -g)\n"
        texts = {"CMakeLists.txt": top, "common/CMakeLists.txt": below, "common/x.h": "", "common/x.cpp": '#include "common/x.h"\n', "common/y.cpp": ""}
        before, after = (os.path.join(self.root, name) for name in ("the course", "moved"))
        for name, text in texts.items():
            files.write(self.make(os.path.join("the course", name), -3600), text)
        for place, compiled in ((before, {"x.cpp.o", "y.cpp.o"}), (before, set()), (after, {"y.cpp.o"})):
            if place == after:
                os.rename(before, after)
            build = os.path.join(place, "build", "interpreter")
            subprocess.run(["cmake", "--fresh", "-G", "Ninja", "-S", place, "-B", build], check=True, capture_output=True)
            with mock.patch.object(folder, "ROOT", place):
                folder.make_moveable(build)
            said = subprocess.run(["ninja", "-C", build], check=True, capture_output=True, encoding="utf-8").stdout
            self.assertEqual({name for name in ("x.cpp.o", "y.cpp.o") if name in said}, compiled, said)
        self.assertIn(f"&& {place}/tools/course moveable {build}\n", files.text(f"{build}/CMakeFiles/rules.ninja"))

    def test_presets_are_those_of_cmake(self):
        with open(os.path.join(ROOT, "CMakePresets.json"), encoding="utf-8") as file:
            self.assertEqual([each["name"] for each in json.load(file)["buildPresets"]], list(folder.PRESETS))


class SignsOfLife(unittest.TestCase):
    def run_quietly(self, command, patience, may_be_idle=False):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(said):
            log = os.path.join(folder, "log")
            with progress.Progress("working", log, may_be_idle) as work:
                work.ticker.patience = patience
                code = work.run(command)
            with open(log, encoding="utf-8") as file:
                return code, said.getvalue(), file.read()

    def test_a_line_now_and_then(self):
        command = [sys.executable, "-c", "import time; print('[1/2] one', flush=True); time.sleep(2.5); print('[2/2] two')"]
        code, said, log = self.run_quietly(command, 0.5)
        self.assertEqual((code, log), (0, "[1/2] one\n[2/2] two\n"))
        self.assertTrue(said.startswith("course: working\ncourse: working: "), said)
        self.assertRegex(said, r"working: [12] s \.\.\. \[1/2\]")

    def test_nothing_to_do_shows_nothing(self):
        self.assertEqual(self.run_quietly(["echo", "ninja: no work to do."], 10, may_be_idle=True)[1], "")

    def test_a_title_comes_before_the_first_line(self):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(said):
            with progress.Progress("working", os.path.join(folder, "log")):
                self.assertEqual(said.getvalue(), "course: working\n")
        # Where nobody knows whether there is something to do, after a second.
        self.assertEqual(self.run_quietly(["sleep", "1.5"], 10, may_be_idle=True)[1], "course: working\n")

    def test_a_files_name_says_more_than_its_folders(self):
        line = "[3/70] Building CXX object common/interpreter/CMakeFiles/interpreter.dir/schedule/cluster.cpp.o"
        self.assertEqual(progress.fitting("building, 7 s: ", "[3/70] ", line, 200), "building, 7 s: " + line)
        self.assertEqual(progress.fitting("building, 7 s: ", "[3/70] ", line, 60), "building, 7 s: [3/70] cluster.cpp.o")
        self.assertEqual(progress.fitting("building, 7 s: ", "", "x" * 100, 20), "building, 7 s: xxxxx")


if __name__ == "__main__":
    unittest.main()
