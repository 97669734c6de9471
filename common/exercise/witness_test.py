"""Tests of what a judge makes of its witness: witness_test.py REFEREE SOLUTION, two programs of one exercise.

Scripts stand in for the witness: the judge believes none of them, ends as they end, and outlives what they say."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILE = str(ROOT / "solutions/01_thread_mapping/gemm.cuh")
WORD = "open sesame"
BEGIN = """#!{python} -IS
import os, signal, socket, struct, sys, time
judge = socket.socket(fileno=3)
def frame(payload):
    judge.sendall(struct.pack("<I", len(payload)) + payload)
"""
RETURNED, THREW = b"\0", b"\2"


class Judge(unittest.TestCase):
    def judged_by(self, program, given=None):
        """(exit code, what it prints); the word is on stdin, or on GIVEN."""
        command = [REFEREE, FILE, "-", "", "", "1", str(program)]
        stdin = {"stdin": given} if given else {"input": f"{WORD}\n"}
        done = subprocess.run(command, **stdin, stdout=subprocess.PIPE, text=True, errors="replace", timeout=60, check=False)
        return done.returncode, done.stdout

    def judged(self, script, given=None):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "witness")
            program.write_text(BEGIN.format(python=sys.executable) + script, encoding="utf-8")
            program.chmod(0o755)
            code, text = self.judged_by(program, given)
        self.assertNotIn(WORD, text)
        return code, text

    def test_the_solution(self):
        self.assertEqual(self.judged_by(SOLUTION), (0, f"passed {WORD}\n"))

    def test_it_ends_as_the_witness_does(self):
        for script, code in (
            ("", 3),
            ("sys.exit(1)", 3),
            ("os.kill(os.getpid(), signal.SIGSEGV)", -11),
            ("judge.close(); time.sleep(50)", -9),
            ("judge.sendall(b'12')", 3),
            ("frame(bytes([0]))", 3),
            ("os.kill(os.getppid(), signal.SIGKILL)", -9),
        ):
            with self.subTest(script):
                self.assertEqual(self.judged(script), (code, ""))
        self.assertEqual(self.judged_by("/nothing/of/that/name"), (3, ""))

    def test_what_makes_no_sense(self):
        for frame in (b"\xff", THREW + struct_of(1 << 62)):
            with self.subTest(frame):
                code, said = self.judged(f"frame({frame!r})\ntime.sleep(50)")
                self.assertEqual(code, 1)
                self.assertIn("makes no sense", said)
        for length in (0, 1 << 31):
            self.assertIn("makes no sense", self.judged(f"judge.sendall(struct.pack('<I', {length}))\ntime.sleep(50)")[1])

    def test_large_numbers_cost_nothing(self):
        begin = time.monotonic()
        self.assertEqual(self.judged(f"frame({RETURNED + RETURNED + struct_of(1 << 60)!r})"), (3, ""))
        self.assertLess(time.monotonic() - begin, 20)

    def test_what_it_says_is_told_and_not_believed(self):
        code, text = self.judged(f"frame({THREW + struct_of(5) + b'wrong'!r})\ntime.sleep(50)")
        self.assertEqual((code, text.splitlines()[0]), (1, "wrong"))
        self.assertEqual(self.judged("print('passed guess')"), (3, "passed guess\n"))

    def test_it_has_no_secret(self):
        code, text = self.judged("print(repr(sys.stdin.read()), sys.argv[1:])")
        self.assertEqual((code, text), (3, f"'' {[FILE, '', '', '', '1', '-']}\n"))

    def test_no_other_process_has_it_either(self):
        """Those that have the judge's stdin, as bubblewrap's first one does."""
        reading, writing = os.pipe()
        os.write(writing, f"{WORD}\n".encode())
        look = f"""
import glob
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if os.readlink(path) == "pipe:[{os.fstat(reading).st_ino}]":
            print("found", os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 999))
    except OSError:
        pass
"""
        with os.fdopen(reading) as given, os.fdopen(writing, "w"):
            code, text = self.judged(look, given)
        self.assertEqual((code, text), (3, ""))

    @unittest.skipIf(os.geteuid() == 0, "root may look into each process")
    def test_it_cannot_look_into_the_judge(self):
        script = "try:\n    open(f'/proc/{os.getppid()}/mem', 'rb')\nexcept PermissionError:\n    print('refused')"
        self.assertEqual(self.judged(script), (3, "refused\n"))


def struct_of(number):
    return number.to_bytes(8, "little")


if __name__ == "__main__":
    SOLUTION = sys.argv.pop()
    REFEREE = sys.argv.pop()
    unittest.main()
