"""Tests of single pieces: steps, memory, reasons, and what is shown while work goes on. tools/course_test.sh tests the whole."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

from command.cli import steps, values
from command.machine import causes, memory, processes, progress
from command.messages import Failed, Refused
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
        said = io.StringIO()
        with mock.patch.object(run_command.processes, "run", return_value=137), contextlib.redirect_stderr(said):
            with mock.patch.object(run_command.Run, "program", lambda *_: "x"):
                this.run_step("02_tiled", [])
        self.assertIn("02_tiled was killed, as the system does when memory runs out", said.getvalue())
        self.assertEqual(this.exit.worst, 1)


class SignsOfLife(unittest.TestCase):
    def run_quietly(self, command, patience):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(said):
            log = os.path.join(folder, "log")
            with progress.Progress("working", log) as work:
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
        self.assertEqual(self.run_quietly(["echo", "ninja: no work to do."], 10)[1], "")


if __name__ == "__main__":
    unittest.main()
