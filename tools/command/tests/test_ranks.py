"""course run and see tensor_parallel: what is handed to the program, and what is refused before anything is built."""

import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest
from unittest import mock

from command import ranks
from command.cli import steps
from command.messages import Failed, Refused
from command.subcommands import run, see


def course_run(*words, backend="interpreter", code=0):
    """(exit code, the program's arguments, what was built)."""
    with (
        mock.patch.object(ranks, "choose_backend", lambda _: backend),
        mock.patch.object(ranks.folder, "prepare") as prepare,
        mock.patch.object(ranks, "export_commit"),
        mock.patch.object(ranks.run, "require_writable"),
        mock.patch.object(ranks.run, "lock_results"),
        mock.patch.object(ranks.processes, "run", return_value=code) as program,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        ended = run.run(run.COMMAND.parse(words))
    command = program.call_args.args[0]
    return ended, [command[0].split("/build/")[1], *command[1:]], prepare.call_args.args


def course_see(*words, code=0, operations=(), races=()):
    """(exit code, the arguments of the program that records, the page's file, what was said)."""
    plan = {"overlapped": False, "chunks": 1, "seconds": 1e-6, "piece_rows": 1, "ranks": [{"operations": list(operations), "races": list(races)}]}
    found = {"like": {"tokens": 1, "model": 1, "hidden": 1, "ranks": 2, "seconds": {}}, "plans": [plan, plan], "few": 64, "slowed": 0.5, "gap": 4e-6, "memory": 1e12}
    with (
        tempfile.TemporaryDirectory() as out,
        mock.patch.object(ranks.folder, "prepare") as prepare,
        mock.patch.object(ranks.subprocess, "run", return_value=subprocess.CompletedProcess([], code, json.dumps(found), "it says why")) as program,
        contextlib.redirect_stdout(io.StringIO()) as said,
    ):
        ended = see.run(see.COMMAND.parse([*words, "--out", out]))
        assert prepare.call_args.args == ("interpreter", ["python3"], ["timeline"])
        return ended, program.call_args.args[0][2:], os.listdir(out), said.getvalue()


class Names(unittest.TestCase):
    def test_a_step_without_a_number(self):
        self.assertEqual(steps.of_several_gpus(), ["tensor_parallel"])
        for word in ("tensor_parallel", "tensor-parallel", "parallel", "steps/tensor_parallel/"):
            self.assertEqual(steps.any_named(word), "tensor_parallel")
        self.assertEqual(steps.any_named("tensor"), "03_tensor_core")  # of the ladder, as before
        self.assertNotIn("tensor_parallel", steps.all_steps())

    def test_other_commands_say_who_takes_it(self):
        with self.assertRaisesRegex(Refused, "'tools/course run tensor_parallel' takes it"):
            steps.named("parallel")

    def test_who_mistypes_it_sees_it(self):
        with self.assertRaisesRegex(Refused, "20_fewer_requests tensor_parallel"):
            steps.any_named("tensor_paralel")


class Run(unittest.TestCase):
    def test_the_program_gets_what_was_typed(self):
        self.assertEqual(
            course_run("parallel", "--ranks", "3", "--shape", "37x72x200,64", "--dtype", "bfloat16"),
            (0, ["interpreter/bin/tensor_parallel", "--ranks", "3", "--shape", "37x72x200,64x64x64", "--dtype", "bf16"], ("interpreter", [], ["tensor_parallel"])),
        )

    def test_on_gpus_there_are_results(self):
        ended, command, built = course_run("parallel", "--out", "/tmp", "--shape", "4096x4096x11008", backend="gpu")
        self.assertEqual((ended, command[1:], built[0]), (0, ["--shape", "4096x4096x11008", "--json", "/tmp/tensor_parallel.json"], "gpu"))

    def test_what_is_slow_needs_force(self):
        slow = ("parallel", "--shape", "4096x4096x11008")
        with self.assertRaisesRegex(Refused, r"about 1\d\d minutes"):
            course_run(*slow)
        self.assertEqual(course_run(*slow, "--force")[1][-2:], ["--patience", "600"])

    def test_exit_codes(self):
        self.assertEqual([course_run("parallel", code=code)[0] for code in (0, 1, 2, 134)], [0, 1, 2, 1])

    def test_what_is_refused(self):
        for words, said in (
            (("parallel", "--ranks", "0"), "--ranks '0' is no number from 1 to 64"),
            (("parallel", "--ranks", "65"), "--ranks '65' is no number from 1 to 64"),
            (("parallel", "--ranks", "-1"), "--ranks '-1' is no number from 1 to 64"),
            (("parallel", "--shape", "0x8x8"), "--shape 0x8x8: tensor_parallel has TOKENSxMODELxHIDDEN, each from 1"),
            (("parallel", "--shape", "8x8x1048577"), "each from 1 to 1048576"),
            (("parallel", "--dtype", "f32"), "f16 or bf16"),
            (("parallel", "--layout", "tn"), "--layout is not for tensor_parallel, which takes --ranks --shape"),
            (("parallel", "--see"), "--see is not for tensor_parallel"),
            (("parallel", "12"), "tensor_parallel runs alone"),
            (("12", "--ranks", "2"), "--ranks is about tensor_parallel"),
            (("--ranks", "2"), "--ranks is about tensor_parallel"),
        ):
            with self.subTest(words), self.assertRaisesRegex(Refused, said):
                course_run(*words)


class See(unittest.TestCase):
    def test_the_program_gets_what_was_typed(self):
        ended, words, pages, said = course_see("parallel")
        self.assertEqual((ended, words), (0, ["2", "4096", "4096", "11008"]))
        self.assertIn("tensor_parallel-4096x4096x11008-2-ranks.html", pages)
        self.assertIn("page: ", said)
        self.assertEqual(course_see("tensor_parallel", "--ranks", "3", "--shape", "37x72x200")[1], ["3", "37", "72", "200"])

    def test_exit_codes(self):
        each = {"work": "first", "copies": False, "line": 1, "rows": [0, 1], "operations": 1, "bytes": 0, "waits": [], "from": 0, "to": 1e-6}
        self.assertEqual([course_see("parallel", operations=[each, each], races=races)[0] for races in ([], [[0, 1]])], [0, 1])
        with self.assertRaisesRegex(Failed, "no plan was recorded. it says why"):
            course_see("parallel", code=2)

    def test_what_is_refused_before_a_build(self):
        for words, said in (
            (("parallel", "--ranks", "1"), "--ranks 1: one GPU copies nothing"),
            (("parallel", "--ranks", "65"), "no number from 1 to 64"),
            (("parallel", "--shape", "0x8x8"), "each from 1"),
            (("parallel", "--shape", "37x72x200,64"), "name one --shape"),
            (("parallel", "--shape", "65536x65536x8"), "more than 2,147,483,648 elements"),
            (("parallel", "--dtype", "f16"), "--dtype is not for tensor_parallel, which takes --ranks --shape --out"),
            (("parallel", "--grid"), "--grid is not for tensor_parallel"),
            (("parallel", "--tile", "s3"), "--tile is not for"),
            (("parallel", "--show-block", "1"), "--show-block is not for"),
            (("parallel", "-D", "N=1"), "-D is not for"),
            (("parallel", "4"), "tensor_parallel runs alone"),
            (("4", "parallel"), "tensor_parallel runs alone"),
            (("4", "--ranks", "2"), "--ranks is about tensor_parallel"),
            (("solutions/36", "--ranks", "2"), "--ranks is about tensor_parallel"),
        ):
            with self.subTest(words), self.assertRaisesRegex(Refused, said):
                course_see(*words)


if __name__ == "__main__":
    unittest.main()
