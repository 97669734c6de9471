"""Exercises: finding them, progress, limits, and what learners are told. Nothing is compiled."""

import contextlib
import functools
import io
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
from unittest import mock

from command import files, places
from command.cli.options import SEED
from command.exercises import answers, checking, exercise, grading, judging, progress, symbols
from command.machine import needs
from command.messages import Failed, Refused
from command.subcommands import check, grade, hint, interpret, reset, see, solution, start, watch
from command.subcommands import list as list_

STUB = "one\n// >>> Your turn\nhole\n// <<<\ntwo\n"
SOLUTION = STUB.replace("hole", "filled")
README = """# 01 First

**Task.** Fill [the hole](gemm.cuh).

## Hints

""" + "".join(f"<details>\n<summary>Hint {n}</summary>\n\nHint number {n}.\n\n</details>\n\n" for n in (1, 2, 3))


class Made(unittest.TestCase):
    """Two exercises in folders of their own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name
        for name in ("01_first", "02_second_one"):
            self.write(f"exercises/{name}/gemm.cuh", STUB)
            self.write(f"exercises/{name}/README.md", README)
            self.write(f"exercises/{name}/test.cpp", "")
            self.write(f"solutions/{name}/gemm.cuh", SOLUTION)
        self.declare("01_first", "02_second_one")
        folder = os.path.join(self.root, "exercises")
        for target, value in (
            ("command.exercises.exercise.EXERCISES", folder),
            ("command.exercises.exercise.SOLUTIONS", os.path.join(self.root, "solutions")),
            ("command.exercises.answers.SOLUTIONS", os.path.join(self.root, "solutions")),
            ("command.exercises.progress.EXERCISES", folder),
            ("command.exercises.progress.FILE", os.path.join(folder, "my", "progress.json")),
        ):
            patch = mock.patch(target, value)
            patch.start()
            self.addCleanup(patch.stop)
        exercise.all_exercises.cache_clear()
        self.addCleanup(exercise.all_exercises.cache_clear)
        self.first, self.second = exercise.all_exercises()

    def declare(self, *names):
        self.write("exercises/CMakeLists.txt", "".join(f"course_exercise({name} NEEDS 75)\n" for name in names))
        needs.declared.cache_clear()

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def progress(self):
        with open(progress.FILE, encoding="utf-8") as file:
            return json.load(file)["exercises"]

    def run_command(self, command, *words):
        """(exit code, stdout)"""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = command.COMMAND.run(command.COMMAND.parse(words))
        return code, out.getvalue()


class Finding(Made):
    def test_what_a_killed_command_left_is_removed(self):
        left = os.path.join(self.root, "exercise-abc")
        other = judging.cleared(self.root)
        os.mkdir(left)
        lock = judging.cleared(self.root)
        self.assertTrue(os.path.exists(left))  # another command judges there
        os.close(other)
        os.close(lock)
        os.close(judging.cleared(self.root))
        self.assertFalse(os.path.exists(left))

    def test_names(self):
        for word in ("1", "01", "01_first", "first", "exercises/01_first/", "exercises/my/01_first/gemm.cuh", "./exercises/01_first"):
            self.assertEqual(exercise.named(word), self.first, word)
        self.assertEqual(exercise.named("sec"), self.second)
        for word in ("3", "third", "", "irst"):
            with self.assertRaisesRegex(Refused, "no exercise"):
                exercise.named(word)
        self.write("exercises/03_second_two/test.cpp", "")
        self.write("solutions/03_second_two/gemm.cuh", "")
        self.declare("01_first", "02_second_one", "03_second_two")
        exercise.all_exercises.cache_clear()
        with self.assertRaisesRegex(Refused, "could be any of: 02_second_one 03_second_two"):
            exercise.named("second")

    def folders(self):
        """(names, what is said)"""
        exercise.all_exercises.cache_clear()
        with contextlib.redirect_stderr(io.StringIO()) as said:
            names = [each.name for each in exercise.all_exercises()]
            exercise.all_exercises()  # says it once
        return names, said.getvalue()

    def test_folders_that_a_learner_has_copied_renamed_or_removed(self):
        def path(name):
            return os.path.join(self.root, "exercises", name)

        shutil.copytree(path("01_first"), path("01_first copy"))
        copied = "course: exercises/01_first copy is left out: the course has no exercise of that name.\n"
        self.assertEqual(self.folders(), (["01_first", "02_second_one"], copied))
        self.assertEqual(exercise.named("1"), self.first)
        for added in ("exercises/04_mine/test.cpp", "solutions/04_mine/gemm.cuh", "exercises/my/01_first old/gemm.cuh"):
            self.write(added, "")
        names, said = self.folders()
        self.assertEqual(names, ["01_first", "02_second_one"])
        self.assertIn("exercises/04_mine is left out: exercises/CMakeLists.txt has no line course_exercise(04_mine NEEDS ...).", said)
        self.assertIn("exercises/my/01_first old is left out: there is no exercise of that name.", said)
        os.rename(path("01_first"), path("01_mine"))
        names, said = self.folders()
        self.assertEqual(names, ["02_second_one"])
        self.assertIn("exercises/01_mine is left out", said)
        self.assertIn("exercises/01_first is left out: its test.cpp is not there. Rename the folder back", said)
        shutil.rmtree(os.path.join(self.root, "solutions"))
        self.assertEqual(self.folders(), ([], ""))
        with self.assertRaisesRegex(Refused, "is the folder solutions/ complete"):
            self.run_command(list_)
        shutil.rmtree(os.path.join(self.root, "exercises"))
        self.assertEqual(self.folders(), ([], ""))
        for command, *words in ((list_,), (check,), (hint,), (solution, "1"), (watch,)):
            with self.assertRaisesRegex(Refused, "there are no exercises here"):
                self.run_command(command, *words)

    def test_what_files_say(self):
        self.assertEqual(self.first.hints(), ["Hint number 1.", "Hint number 2.", "Hint number 3."])
        self.assertEqual(self.first.task(), "Fill the hole.")
        self.assertEqual(exercise.without_holes(STUB), exercise.without_holes(SOLUTION))
        self.assertNotEqual(exercise.without_holes(STUB), exercise.without_holes(SOLUTION + "more"))


class ProgressFile(Made):
    def test_states(self):
        self.assertEqual(progress.Progress().state(self.first), "not begun")
        progress.begin(self.first)
        self.assertEqual(progress.Progress().state(self.first), "not begun")
        self.write("exercises/my/01_first/gemm.cuh", SOLUTION)
        self.assertEqual(progress.Progress().state(self.first), "begun")
        progress.remember_pass(self.first)
        self.assertRegex(progress.Progress().state(self.first), r"^passed \d{4}-\d\d-\d\d$")
        self.write("exercises/my/01_first/gemm.cuh", STUB)
        self.assertEqual(progress.Progress().state(self.first), "passed, changed since")
        self.assertEqual(progress.Progress().next(), self.second)
        self.assertEqual(checking.bar(), "[##########..........] 1 of 2 passed")

    def test_a_file_that_is_gone(self):
        progress.begin(self.second)
        progress.remember_pass(self.second)
        os.remove(self.second.file)
        code, shown = self.run_command(list_)
        self.assertEqual(code, 0)
        self.assertIn("02 second one                passed, its file is gone", shown)
        self.assertIn("1 of 2 passed", shown)

    def test_where_progress_cannot_be_written(self):
        progress.begin(self.first)
        with mock.patch("os.replace", side_effect=OSError(30, "Read-only file system")):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                shown = self.run_command(hint, "1")[1]
                self.assertIn("filled", self.run_command(solution, "1", "--give-up")[1])
                progress.remember_pass(self.first)
            self.assertIn("hint 3 of 3", shown)
            self.assertEqual(said.getvalue().count("cannot write exercises/my/progress.json: Read-only file system. So this is not rem"), 3)
            self.write("exercises/my/progress.json", "damaged")
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(progress.Progress().count(), 0)
            self.assertIn("was damaged: it cannot be moved aside", said.getvalue())

    def test_a_pass_that_cannot_be_remembered_is_told(self):
        progress.begin(self.first)
        workshop = mock.Mock()
        workshop.judge.return_value = judging.Verdict(judging.PASSED, "", 1.5)
        full = OSError(28, "No space left on device")
        with mock.patch("command.subcommands.check.Workshop", return_value=workshop), mock.patch("os.replace", side_effect=full):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                code, shown = self.run_command(check, "1")
        self.assertEqual(code, 0)
        self.assertIn("01 first: passed", shown)
        self.assertIn("No space left on device. So this is not remembered.", said.getvalue())

    def test_a_damaged_file_is_kept(self):
        of_hints = ('{"exercises": {"01_first": {"hints": %s}}}' % each for each in ("null", '"1"', "-1"))
        for damaged in ('{"exercises": {"01_first": {"passed"', '{"exercises": [3]}', "[]", "[" * 100000, *of_hints):
            self.write("exercises/my/progress.json", damaged)
            self.assertEqual(progress.Progress().count(), 0)
        kept = [name for name in os.listdir(os.path.join(self.root, "exercises/my")) if name.startswith("progress-")]
        self.assertEqual(len(kept), 7)

    def test_many_at_the_same_time(self):
        def count_up(which):
            for number in range(20):
                progress.change(which, **{f"hints{number}": number})

        threads = [threading.Thread(target=count_up, args=(each,)) for each in (self.first, self.second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([len(self.progress()[each]) for each in ("01_first", "02_second_one")], [20, 20])

    def test_backups_have_names_of_their_own(self):
        progress.begin(self.first)
        kept = {progress.back_up(self.first.file) for _ in range(3)}
        self.assertEqual(len(kept), 3)
        self.assertTrue(all(exercise.read(path) == STUB for path in kept))


class Mine(Made):
    """The learner's files, in exercises/my/."""

    def git(self, *words):
        command = ["git", "-C", self.root, "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
        return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout

    def commit(self):
        if not shutil.which("git"):
            self.skipTest("there is no git")
        self.write(".gitignore", "/exercises/my/\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "1")

    def said_by(self, function, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            function(*arguments)
        return said.getvalue()

    def text(self, path):
        return exercise.read(os.path.join(self.root, path))

    def test_the_first_check_or_start_makes_the_file(self):
        code, shown = self.run_command(start, "2")
        self.assertEqual((code, self.text("exercises/my/02_second_one/gemm.cuh")), (0, STUB))
        self.assertIn("02 second one: Fill the hole.", shown)
        self.assertIn("then 'tools/course check 02'", shown)
        self.write("exercises/my/02_second_one/gemm.cuh", "mine")
        self.run_command(start, "2")
        self.assertEqual(self.text("exercises/my/02_second_one/gemm.cuh"), "mine")
        self.assertFalse(os.path.exists(self.first.file))
        with self.assertRaisesRegex(Refused, "start is about one exercise"):
            self.run_command(start, "1", "2")

    def test_what_was_edited_in_the_courses_folder(self):
        """A learner did so by mistake, and goes on in the other file; who works on the course meant it, and finds it as it was."""
        for is_there in (False, True):  # one that is untouched is replaced
            with self.subTest(is_there=is_there):
                if not is_there:
                    self.commit()
                self.write("exercises/02_second_one/gemm.cuh", "mine")
                for _ in range(2):
                    said = " ".join(self.said_by(self.run_command, list_).split())
                    self.assertIn("/my/02_second_one/gemm.cuh, which has all that you wrote there. 'git checkout", said)
                    self.assertEqual(self.text("exercises/my/02_second_one/gemm.cuh"), "mine")
                    self.assertEqual(self.text("exercises/02_second_one/gemm.cuh"), "mine")
                self.assertEqual(self.git("status", "--porcelain"), " M exercises/02_second_one/gemm.cuh\n")
                self.assertEqual(progress.Progress().state(self.second), "begun")
                self.git("checkout", "exercises/02_second_one/gemm.cuh")
                self.assertEqual(self.said_by(self.run_command, list_), "")
                self.assertEqual(progress.Progress().state(self.second), "begun")
                self.write("exercises/my/02_second_one/gemm.cuh", STUB)

    def test_nothing_is_lost_where_both_were_edited(self):
        self.commit()
        self.write("exercises/01_first/gemm.cuh", "here")
        self.write("exercises/my/01_first/gemm.cuh", "there")
        self.assertIn("was edited, and is not what is checked: that is", self.said_by(self.run_command, list_))
        self.assertEqual((self.text("exercises/01_first/gemm.cuh"), self.text("exercises/my/01_first/gemm.cuh")), ("here", "there"))

    def test_an_earlier_version_of_the_course(self):
        for has_git in (True, False):
            with self.subTest(has_git=has_git):
                shutil.rmtree(os.path.join(self.root, "exercises/my"), ignore_errors=True)
                if has_git:
                    self.commit()
                else:
                    shutil.rmtree(os.path.join(self.root, ".git"))
                self.write("exercises/01_first/gemm.cuh", SOLUTION)
                self.write("exercises/01_first/gemm-2026-01-01-000000.cuh", "old")
                passed = {"passed": "2026-01-01", "text": progress.fingerprint(self.first.stub), "hints": 2}
                self.write("exercises/progress.json", json.dumps({"exercises": {"01_first": passed}}))
                self.assertIn("lies in exercises/my/ now", self.said_by(self.run_command, list_))
                self.assertEqual(progress.Progress().state(self.first), "passed 2026-01-01")
                self.assertEqual(self.text("exercises/my/01_first/gemm.cuh"), SOLUTION)
                self.assertEqual(self.text("exercises/my/01_first/gemm-2026-01-01-000000.cuh"), "old")
                self.assertEqual([name for name in os.listdir(os.path.join(self.root, "exercises")) if "progress" in name], [])
                self.assertFalse(os.path.exists(self.second.file))

    def test_a_stub_that_has_changed_since(self):
        progress.begin(self.first)
        self.write("exercises/01_first/gemm.cuh", STUB + "more\n")
        self.assertTrue(progress.Progress().is_untouched(self.first))
        verdict = judging.Verdict(judging.NOT_YET, "it is so", 1.5)
        self.assertIn("has changed since you began", checking.report(self.first, verdict))
        progress.begin(self.first)
        self.assertEqual(self.text("exercises/my/01_first/gemm.cuh"), STUB)
        self.run_command(reset, "1")
        self.assertEqual(self.text("exercises/my/01_first/gemm.cuh"), STUB + "more\n")
        self.assertNotIn("has changed since you began", checking.report(self.first, verdict))

    def test_an_exercise_that_is_part_of_another_now(self):
        passed = {"passed": "2026-01-01", "text": "0"}
        with mock.patch.dict("command.exercises.exercise.MERGED", {"01_first_half": "01_first", "03_other_half": "01_first"}, clear=True):
            for before, state in (
                ({"01_first_half": passed, "03_other_half": {**passed, "passed": "2026-01-02"}}, "passed 2026-01-02, before it was merged"),
                ({"01_first_half": passed, "03_other_half": {"hints": 1}}, "not begun"),
                ({"03_other_half": passed}, "not begun"),
                ({"01_first": {"hints": 1}, "01_first_half": passed, "03_other_half": passed}, "not begun"),
            ):
                self.write("exercises/my/progress.json", json.dumps({"exercises": before}))
                self.assertEqual(progress.Progress().state(self.first), state)
            self.write("exercises/my/progress.json", json.dumps({"exercises": {"01_first_half": passed, "03_other_half": passed}}))
            progress.begin(self.first)
            self.assertEqual(progress.Progress().state(self.first), "passed, changed since")
            self.run_command(reset, "1")
            self.assertEqual(progress.Progress().state(self.first), "not begun")
            self.assertEqual(self.progress()["03_other_half"], passed)
            for word in ("3", "03", "003", "03_other_half", "exercises/my/03_other_half/gemm.cuh", "01_first_half"):
                with self.assertRaisesRegex(Refused, "0[13]_.*_half is part of exercise 01_first now: give 01."):
                    exercise.named(word)
            self.assertEqual(exercise.named("1"), self.first)
            self.write("exercises/my/03_other_half/gemm.cuh", "")
            exercise.all_exercises.cache_clear()
            with contextlib.redirect_stderr(io.StringIO()) as said:
                exercise.all_exercises()
            self.assertIn("exercises/my/03_other_half is left out: its task is part of 01_first.", said.getvalue())

    def test_what_stands_in_the_way(self):
        self.write("exercises/my", "a file")
        self.assertEqual(self.run_command(list_)[0], 0)
        with self.assertRaisesRegex(Refused, "cannot write .*my/01_first/gemm.cuh: "):
            self.run_command(start)
        os.remove(os.path.join(self.root, "exercises/my"))
        os.makedirs(self.first.file)
        with self.assertRaisesRegex(Refused, "cannot write .*my/01_first/gemm.cuh: Is a directory"):
            self.run_command(check, "1")
        self.assertEqual(os.listdir(os.path.dirname(self.first.file)), ["gemm.cuh"])


class Commands(Made):
    def test_a_missing_file_of_the_course(self):
        os.remove(self.first.readme)
        with self.assertRaisesRegex(Refused, "README.md: No such file or directory. Copy it from the course anew, with 'git checkout "):
            self.run_command(hint)

    def test_hints_come_one_by_one(self):
        for shown in (1, 2, 3, 3):
            code, text = self.run_command(hint)
            self.assertEqual((code, text.count("Hint number")), (0, shown))
        self.assertIn("solution 01 --give-up", text)

    def test_solution(self):
        with self.assertRaisesRegex(Refused, "has not passed yet"):
            self.run_command(solution, "1")
        self.assertEqual(self.run_command(solution, "1", "--give-up"), (0, SOLUTION))
        self.assertEqual(self.progress()["01_first"], {"gave_up": True})
        progress.begin(self.first)
        progress.remember_pass(self.first)
        self.assertEqual(self.run_command(solution, "1"), (0, SOLUTION))

    def test_reset_keeps_what_was_written(self):
        self.write("exercises/my/01_first/gemm.cuh", "mine")
        progress.remember_pass(self.first)
        code, text = self.run_command(reset, "1")
        self.assertEqual((code, exercise.read(self.first.file)), (0, STUB))
        kept = [name for name in os.listdir(os.path.dirname(self.first.file)) if name.startswith("gemm-")]
        self.assertEqual(len(kept), 1)
        self.assertIn(kept[0], text)
        self.assertEqual(exercise.read(os.path.join(os.path.dirname(self.first.file), kept[0])), "mine")
        self.assertEqual(list(self.progress()["01_first"]), ["stub"])
        self.run_command(reset, "1")  # nothing to keep
        self.assertEqual(len([name for name in os.listdir(os.path.dirname(self.first.file)) if name.startswith("gemm-")]), 1)
        os.remove(self.first.file)
        self.run_command(reset, "1")
        self.assertEqual(exercise.read(self.first.file), STUB)

    def workshop(self, *kinds):
        """One whose verdicts are these."""
        made = mock.Mock()
        made.judge.side_effect = [judging.Verdict(kind, "it is so", 1.5) for kind in kinds]
        patch = mock.patch("command.subcommands.check.Workshop", return_value=made)
        patch.start()
        self.addCleanup(patch.stop)
        return made

    def test_one_that_was_handed_in(self):
        self.workshop(judging.PASSED)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(self.run_command(check, "1", "--of", os.path.join(self.root, "exercises"))[0], 0)
        self.assertEqual(said.getvalue(), "course: checking 01 first ...\n")

    def test_check(self):
        self.workshop(judging.NOT_YET, judging.PASSED, judging.PASSED)
        code, text = self.run_command(check)
        self.assertEqual(code, 1)
        self.assertIn("01 first: not yet (1.5 s).\n\n  it is so\n\nYou have not changed it so far. Task: Fill the hole.", text)
        code, text = self.run_command(check)
        self.assertEqual(code, 0)
        self.assertIn("01 first: passed", text)
        self.assertIn("Next: 02 second one.", text)
        self.assertEqual(self.run_command(check)[0], 0)  # the second
        code, text = self.run_command(check)  # nothing is left
        self.assertEqual((code, "All exercises have passed." in text), (0, True))

    def test_check_for_a_program(self):
        self.workshop(judging.PASSED, judging.PASSED, judging.STOPPED)
        progress.begin(self.first)
        code, text = self.run_command(check, "--all", "--json")
        self.assertEqual([each["state"] for each in json.loads(text)["exercises"]], ["passed", "missing"])  # that was not begun
        self.assertEqual((code, os.path.exists(self.second.file)), (1, False))
        progress.begin(self.second)
        code, text = self.run_command(check, "--all", "--json")
        self.assertEqual(code, 1)
        document = json.loads(text)
        self.assertEqual((document["passed"], document["total"]), (1, 2))
        self.assertEqual([each["state"] for each in document["exercises"]], ["passed", "stopped"])
        self.assertEqual([name for name, each in self.progress().items() if "passed" in each], ["01_first"])

    def test_of_many_launches_one_is_read(self):
        path = os.path.join(self.root, "events")
        self.assertEqual(see.read_chosen(path), ([], None))
        lines = [json.dumps({"kernel": ',"diagnosis":{', "n": i, "events": [0] * count}, separators=(",", ":")) for i, count in enumerate((2, 50, 3))]
        with mock.patch.object(see.replay, "Launch", lambda document: document["n"]):
            self.write("events", "\n".join(lines))
            self.assertEqual(see.read_chosen(path), ([1], (1, 3)))  # the one in which most happens
            ended = lines[2].replace(',"events"', ',"diagnosis":{},"events"')
            self.write("events", "\n".join([*lines[:2], ended, ended]))
            self.assertEqual(see.read_chosen(path), ([2], (2, 4)))  # the first that a check has ended

    def test_check_that_is_seen(self):
        made = self.workshop(judging.NOT_YET, judging.NOT_YET)
        path = os.path.join(self.root, "a page.html")
        for launches, line in (([], "course: no page of it: exercise 01 first: no kernel has done anything that could be shown.\n"), (["one"], f"course: page: {path}\n")):
            with contextlib.ExitStack() as stack:
                stack.enter_context(mock.patch.object(see, "read_chosen", return_value=(launches, (0, 1))))
                if launches:
                    stack.enter_context(mock.patch.object(see, "draw", return_value=(mock.Mock(), [])))
                    stack.enter_context(mock.patch.object(see.page, "page", return_value="a page"))
                said = stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
                code, text = self.run_command(check, "1", "--see", path)
            self.assertEqual((code, "01 first: not yet" in text, "page" in text), (1, True, False))
            self.assertTrue(said.getvalue().endswith(line), said.getvalue())
            self.assertEqual(os.path.basename(made.judge.call_args.args[2]), "events")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "a page")
        for words, why in ((["--all", f"--see={path}"], "a page of one exercise"), (["1", "--on", "gpu", "--see"], "about the interpreter"), (["1", "--see=x.txt"], "no page")):
            with mock.patch("command.subcommands.check.choose_backend", lambda on: on), self.assertRaisesRegex(Refused, why):
                self.run_command(check, *words)
        os.mkdir(os.path.join(self.root, "folder.html"))
        with self.assertRaisesRegex(Refused, "it is a folder. Name a file with --see"):
            self.run_command(check, "1", "--see", os.path.join(self.root, "folder.html"))

    def test_check_of_what_was_handed_in(self):
        self.write("handed in/01_first/gemm.cuh", SOLUTION)
        made = self.workshop(judging.PASSED)
        folder = os.path.join(self.root, "handed in")
        code, text = self.run_command(check, "--all", "--json", "--of", folder)
        self.assertEqual(code, 1)
        self.assertEqual([each["state"] for each in json.loads(text)["exercises"]], ["passed", "missing"])
        made.judge.assert_called_once_with(self.first, os.path.join(folder, "01_first", "gemm.cuh"), "")
        self.assertFalse(os.path.exists(progress.FILE))
        self.write("handed in/my/01_first/gemm.cuh", SOLUTION)  # a whole exercises/: the other one is the stub
        made.judge.side_effect = [judging.Verdict(judging.PASSED, "", 1.5)]
        self.run_command(check, "1", "--of", folder)
        made.judge.assert_called_with(self.first, os.path.join(folder, "my", "01_first", "gemm.cuh"), "")
        with self.assertRaisesRegex(Refused, "there is no such folder"):
            self.run_command(check, "--all", "--of", os.path.join(self.root, "nobody"))
        with self.assertRaisesRegex(Refused, "--all checks every exercise"):
            self.run_command(check, "--all", "1")


class Class(Made):
    """tools/course grade"""

    def setUp(self):
        super().setUp()
        self.folder, self.out = os.path.join(self.root, "class"), os.path.join(self.root, "out")
        for path in ("anna/01_first", "anna/exercises/my/02_second_one", "<b>ob/exercises/01_first", "=cem/01_first"):
            self.write(f"class/{path}/gemm.cuh", STUB.replace("hole", path))
        self.write("class/=cem/02_second_one/gemm.cuh", STUB)  # as it was handed out
        os.symlink("../anna/01_first", os.path.join(self.folder, "<b>ob", "02_second_one"))
        os.symlink("anna", os.path.join(self.folder, "dora"))

    def verdict(self, exercise, path):
        if "anna" in path:
            return judging.Verdict(judging.PASSED, "", 1)
        if "=cem" in path:
            raise OSError("no room")
        return judging.Verdict(judging.NOT_YET, "The result is right, the way to it is not yet: <script>", 1, right=True)

    def grade(self, *words):
        workshop = mock.Mock()
        workshop.judge.side_effect = self.verdict
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            self.made = stack.enter_context(mock.patch("command.subcommands.grade.Workshop", return_value=workshop))
            code, text = self.run_command(grade, self.folder, "--out", self.out, *words)
        return code, [json.loads(line) for line in text.splitlines()]

    def test_verdicts_and_points(self):
        code, lines = self.grade("--weights", "01=3", "--jobs", "2")
        self.assertEqual(code, 0)
        told = {(each["student"], each["exercise"]): (each["state"], each["credit"]) for each in lines}
        self.assertEqual(told, {
            ("anna", "01_first"): ("passed", 1), ("anna", "02_second_one"): ("passed", 1),
            ("<b>ob", "01_first"): ("not yet", 0.5), ("<b>ob", "02_second_one"): ("missing", 0),
            ("=cem", "01_first"): ("not judged", 0), ("=cem", "02_second_one"): ("missing", 0),
        })  # fmt: skip
        messages = {(each["student"], each["exercise"]): each["message"] for each in lines}
        self.assertIn("no file of its own, but a link", messages["<b>ob", "02_second_one"])
        self.assertIn("as it was handed out", messages["=cem", "02_second_one"])
        self.assertEqual(messages["=cem", "01_first"], "OSError: no room")
        self.assertEqual(files.text(os.path.join(self.out, "grades.csv")).split(), [
            "student,01_first,02_second_one,passed,percent", "<b>ob,0.5,0,0,37.5", "'=cem,0,0,0,0.0", "anna,1,1,2,100.0"
        ])  # fmt: skip
        page = files.text(os.path.join(self.out, "grades.html"))
        self.assertIn("<pre>The result is right, the way to it is not yet: &lt;script&gt;</pre>", page)
        self.assertNotIn("<b>ob", page)
        self.assertEqual(self.made.call_args.kwargs["hidden"], [self.folder])

    def test_files_that_cannot_be_read(self):
        self.write("class/emil/01_first/gemm.cuh", "")
        os.truncate(os.path.join(self.folder, "emil/01_first/gemm.cuh"), 1 << 40)
        self.write("class/emil/02_second_one/gemm.cuh", "secret")
        read = grading.read

        def unreadable(path):
            if "emil/02" in path:
                raise Refused("cannot read it")
            return read(path)

        with mock.patch("command.exercises.grading.read", unreadable):
            code, lines = self.grade()
        told = {each["exercise"]: (each["state"], each["message"]) for each in lines if each["student"] == "emil"}
        self.assertEqual((code, told["02_second_one"]), (0, ("not judged", "Refused: cannot read it")))
        self.assertEqual(told["01_first"][0], "not yet")  # a workshop says that it is too large
        self.assertEqual(len(lines), 8)
        self.assertTrue(os.path.exists(os.path.join(self.out, "grades.html")))

    def test_alike(self):
        long = STUB.replace("hole", "\n".join(f"x{n} = y{n % 3} + {n} * f(z);" for n in range(9)))
        other = STUB.replace("hole", "\n".join(f"if (a{n}) while (b) {{ c->d(e, '{n}'); }}" for n in range(9)))
        for who, text in (("anna", long), ("=cem", long.replace("y", "sum").replace("z", "row")), ("<b>ob/exercises", other)):
            self.write(f"class/{who}/01_first/gemm.cuh", text)
        with mock.patch("shutil.which", return_value=None):
            self.assertIn("similarity-tester", grading.alike(self.folder, ["anna"], [self.first]))
        if not shutil.which("sim_c++"):
            self.skipTest("sim_c++ is not there")
        found = grading.alike(self.folder, ["<b>ob", "=cem", "anna"], [self.first])
        self.assertIn((100, "01_first", "=cem", "anna"), found)
        self.assertEqual({each[2] for each in found} | {each[3] for each in found}, {"=cem", "anna"})

    def test_refused(self):
        os.mkdir(os.path.join(self.root, "empty"))
        for words, said in (((), "needs one folder"), (("a", "b"), "needs one folder"), ((self.root + "/none",), "there is no folder"),
                            ((self.root + "/empty",), "has no folders"), (("x", "--jobs", "0"), "no number from 1 to 64"),
                            (("x", "--weights", "1"), "no list of weights"), ((self.folder, "--out", self.first.stub), "cannot write to .* --out")):  # fmt: skip
            with self.assertRaisesRegex(Refused, said):
                self.run_command(grade, *words)


class Watching(Made):
    """In a terminal, and without one."""

    def watch(self, *words, kinds):
        """Of a process of its own: (its number, its terminal)."""
        pid, terminal = pty.fork()
        if pid:
            self.addCleanup(os.close, terminal)
            return pid, terminal
        code = 99
        with contextlib.suppress(BaseException), mock.patch("command.subcommands.watch.Workshop") as made:
            made.return_value.judge.side_effect = [judging.Verdict(kind, "it is so", 1.5) for kind in kinds]
            code = watch.COMMAND.run(watch.COMMAND.parse(words))
        sys.stdout.flush()
        os._exit(code)

    def type(self, terminal, typed, expected):
        """TYPED, after which EXPECTED is shown."""
        os.write(terminal, typed.encode())
        shown, begin = "", time.monotonic()
        while expected not in shown:
            self.assertLess(time.monotonic() - begin, 20, shown)
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65536).decode()
        return shown

    def test_keys(self):
        edited = f"cp {self.first.solution}"
        with mock.patch.dict(os.environ, {"EDITOR": edited, "VISUAL": ""}):
            pid, terminal = self.watch(kinds=[judging.NOT_YET, judging.PASSED] + [judging.NOT_YET] * 3)
        shown = self.type(terminal, "", "q quit.")
        self.assertIn("01 first: not yet", shown)
        self.assertNotIn("Hint number 2", self.type(terminal, "h", "Hint number 1."))
        self.type(terminal, "h", "Hint number 2.")
        self.type(terminal, "l", "-> 01 first")
        self.type(terminal, "?", "Keys: h hint")
        self.type(terminal, "rn", "y/n")
        shown = self.type(terminal, "e", "q quit.")  # saves the solution
        self.assertIn("01 first: passed", shown)
        self.assertIn("02 second one: not yet", shown)
        self.write("exercises/my/02_second_one/gemm.cuh", "mine")
        self.type(terminal, "", "q quit.")
        self.type(terminal, "r", "y/n")
        self.assertIn("Yours is kept", self.type(terminal, "y", "q quit."))
        self.assertEqual(exercise.read(self.second.file), STUB)
        self.type(terminal, "q", "")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(exercise.read(self.first.file), SOLUTION)

    def test_the_next_exercise(self):
        with mock.patch.dict(os.environ, {"EDITOR": "", "VISUAL": ""}):
            pid, terminal = self.watch("1", kinds=[judging.NOT_YET] * 3)
        self.type(terminal, "", "q quit.")
        self.type(terminal, "e", "no editor is known: set EDITOR")
        self.assertIn("02 second one: not yet", self.type(terminal, "n", "q quit."))
        self.assertIn("01 first: not yet", self.type(terminal, "n", "q quit."))
        os.write(terminal, b"q")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ICANON)  # the terminal is as it was

    def test_an_editor_that_cannot_be_started(self):
        for editor in ("/no/such/editor", "'unbalanced"):
            with mock.patch.dict(os.environ, {"VISUAL": editor}), contextlib.redirect_stderr(io.StringIO()) as said:
                watch.edit(self.first)
            self.assertIn("cannot start the editor", said.getvalue())

    def test_without_a_terminal(self):
        kinds = iter([judging.NOT_YET, judging.PASSED, judging.PASSED])

        def judge(one, file, _):
            if one == self.first:
                threading.Timer(0.5, self.write, ["exercises/my/01_first/gemm.cuh", SOLUTION]).start()
            return judging.Verdict(next(kinds), "it is so", 1.5)

        with mock.patch("command.subcommands.watch.Workshop") as made, contextlib.redirect_stderr(io.StringIO()):
            made.return_value.judge = judge
            with mock.patch("sys.stdin", None):
                code, shown = self.run_command(watch)
        self.assertEqual(code, 0)
        self.assertIn("Ctrl-C ends this.", shown)
        self.assertIn("All exercises have passed.", shown)


class Limits(unittest.TestCase):
    def limited(self, script, seconds=20, **more):
        return judging.limited([sys.executable, "-c", script], "/", seconds, **more)

    def assert_ended(self, pid):
        """Within a moment: init may have to reap it."""
        for _ in range(100):
            state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE, encoding="ascii", check=False)
            if state.stdout.strip()[:1] in ("", "Z"):
                return
            time.sleep(0.05)
        self.fail(f"{pid} still runs")

    def test_an_end(self):
        done = self.limited("print('so'); raise SystemExit(7)")
        self.assertEqual((done.code, done.output, done.reason), (7, "so\n", ""))
        self.assertEqual(self.limited("import os; os.kill(os.getpid(), 11)").code, 128 + signal.SIGSEGV)
        self.assertIn("cannot start /nothing", judging.limited(["/nothing"], "/", 20).output)

    def test_what_it_is_given(self):
        self.assertEqual(self.limited("print(input() * 2)", text="so").output, "soso\n")

    def test_what_it_does_not_see(self):
        with mock.patch.dict(os.environ, {"SECRET_TOKEN": "s3cret"}):
            self.assertEqual(self.limited("import os; print(os.environ.get('SECRET_TOKEN'), os.environ.get('HOME'))").output, "None None\n")

    def test_time(self):
        begin = time.monotonic()
        done = self.limited("print('begun', flush=True)\nwhile True: pass", 1)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertIn("had not ended after 1 s", done.reason)
        self.assertEqual(done.output, "begun\n")

    def test_memory(self):
        """Of a child in a session of its own, too."""
        script = "x = bytearray(400 << 20)\ntime.sleep(20)"
        for before in ("import time\n", "import os, time\nif os.fork(): time.sleep(20)\nos.setsid()\n"):
            with mock.patch.object(judging, "BYTES", 200 << 20):
                self.assertIn("of memory, and was stopped", self.limited(before + script).reason)

    def test_processes(self):
        with mock.patch.object(judging, "MOST_PROCESSES", 10):
            done = self.limited("import os, time\nfor _ in range(20):\n    if not os.fork(): break\ntime.sleep(20)")
        self.assertIn("more than 10 processes", done.reason)

    def test_output(self):
        with mock.patch.object(judging, "FILE_BYTES", 1 << 20):
            self.assertIn("printed more than 1 MB", judging.limited(["yes"], "/", 20).reason)

    def test_nothing_outlives_it(self):
        for options in ("", ", start_new_session=True"):
            done = self.limited(f"import subprocess\nprint(subprocess.Popen(['sleep', '60']{options}).pid)")
            self.assertEqual((done.code, done.left), (0, 1))
            self.assert_ended(int(done.output))
        twice = "import os, time\nif os.fork(): os.wait(); raise SystemExit\nos.setsid()\nif os.fork(): os._exit(0)\n"
        done = self.limited(twice + "print(os.getpid(), flush=True)\ntime.sleep(60)")
        self.assert_ended(int(done.output or 0))

    def test_it_cannot_end_the_command(self):
        done = self.limited("import os, time\nos.kill(os.getppid(), 9)\nprint('still here', flush=True)\ntime.sleep(60)", 5)
        self.assertIn("ended the program that watches over it", done.reason)

    def test_what_a_killed_command_leaves(self):
        """Nothing: neither the program, nor what that has started, nor its folder."""
        with tempfile.TemporaryDirectory() as scratch:
            folder, pids = os.path.join(scratch, "exercise-x"), os.path.join(scratch, "pids")
            os.mkdir(folder)
            inner = "import os, time\nos.fork() or os.setsid()\nprint(os.getpid(), file=open(%r, 'a'), flush=True)\ntime.sleep(60)" % pids
            tools = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            script = f"import sys\nsys.path.insert(0, {tools!r})\nfrom command.exercises import judging\n"
            script += f"judging.limited([sys.executable, '-c', {inner!r}], '/', 60, remove={folder!r})"
            command = subprocess.Popen([sys.executable, "-B", "-c", script])
            for _ in range(200):
                time.sleep(0.05)
                found = files.text(pids).split()
                if len(found) == 2:
                    break
            command.kill()
            command.wait()
            self.assertEqual(len(found), 2)
            for pid in found:
                self.assert_ended(pid)
            for _ in range(100):
                if not os.path.exists(folder):
                    break
                time.sleep(0.05)
            self.assertFalse(os.path.exists(folder))

    def test_interrupted(self):
        waits, wait = [], subprocess.Popen.wait

        def interrupted(child, timeout=None):
            waits.append(child)
            if len(waits) == 1:
                raise KeyboardInterrupt
            return wait(child, timeout)

        begin = time.monotonic()
        with mock.patch("subprocess.Popen.wait", interrupted), self.assertRaises(KeyboardInterrupt):
            self.limited("import time; time.sleep(20)")
        self.assertLess(time.monotonic() - begin, 5)
        self.assert_ended(waits[0].pid)


class Interpreted(unittest.TestCase):
    """tools/course interpret --limited"""

    def test_it(self):
        with tempfile.TemporaryDirectory() as scratch:
            file = os.path.join(scratch, "x.cu")
            files.write(file, "int main() {}\n")
            for done, code, said in (
                (judging.Done(3, "a\x1b[2J\n", ""), 3, ""),
                (judging.Done(0, "a\x1b[2J\n", "too long"), 1, "course: too long\n"),
            ):
                with contextlib.ExitStack() as stack:
                    limited = stack.enter_context(mock.patch.object(judging, "limited", return_value=done))
                    stack.enter_context(mock.patch("command.building.folder.prepare"))
                    stack.enter_context(mock.patch("command.subcommands.interpret.BUILD", scratch))
                    out, err = (stack.enter_context(redirect(io.StringIO())) for redirect in (contextlib.redirect_stdout, contextlib.redirect_stderr))
                    command = interpret.COMMAND
                    self.assertEqual(command.run(command.parse(["--limited", file, "7"])), code)
                self.assertEqual((out.getvalue(), err.getvalue()), ("a?[2J\n", said))
                self.assertEqual(limited.call_args.args[0][-3:], ["--", file, "7"])
            self.assertEqual(os.listdir(scratch), ["x.cu"])


class Walls(unittest.TestCase):
    def setUp(self):
        if not judging.can_build_walls() or not os.path.exists("/usr/bin/python3"):
            self.skipTest("bubblewrap is not there, or may not do it")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = os.path.realpath(scratch.name)
        for name in ("class/anna/01", "class/bob/01", "course", "scratch"):
            os.makedirs(os.path.join(self.root, name))

    def behind(self, script, writable=("scratch",)):
        at = functools.partial(os.path.join, self.root)
        hidden = [*judging.PRIVATE, at("class")]
        before = judging.wall(hidden, [at("course"), at("class/anna/01")], list(map(at, writable)))
        return judging.limited([*before, "/usr/bin/python3", "-c", script], "/", 20)

    def test_files(self):
        done = self.behind(f"""
import os
os.chdir({self.root!r})
print(os.listdir("class"), os.listdir("class/anna"), os.listdir("/root"), os.listdir("/home"))
open("scratch/x", "w").write("so")
for place in ("class/anna/01", "course", "/usr", "/etc"):
    try:
        open(place + "/x", "w")
        print("written", place)
    except OSError as error:
        pass
""")
        self.assertEqual(done.output, "['anna'] ['01'] [] []\n")
        self.assertTrue(os.path.exists(os.path.join(self.root, "scratch", "x")))

    def test_without_a_folder_to_write_to_there_is_none(self):
        script = """
for place in ("/tmp", "/dev/shm", "/home", "/run", "/dev", "/var/tmp"):
    try:
        open(place + "/x", "w")
        print(place)
    except OSError as error:
        pass
open("/dev/null", "w").write("x")
"""
        self.assertEqual(self.behind(script, ()).output, "")
        self.assertEqual(self.behind(script).output, "/tmp\n/dev/shm\n/home\n/run\n/dev\n/var/tmp\n")

    def test_network_and_processes(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            done = self.behind(f"""
import glob, os, socket, time
try:
    socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 2)
    print("connected")
except OSError:
    pass
print(max(int(path[6:]) for path in glob.glob("/proc/[0-9]*")) < 10)
if not os.fork():
    os.setsid()
    time.sleep(60)
try:
    os.kill(1, 9)
    os.kill(os.getppid(), 9)
except OSError:
    pass
raise SystemExit(7)
""")
        self.assertEqual((done.output, done.code, done.left), ("True\n", 7, 0))


class Symbols(Made):
    """What an answer's object file may define and use: compiled here, without the course's options."""

    def compiled(self, *sources):
        """Their object files."""
        paths = [os.path.join(self.root, f"{number}.cpp") for number in range(len(sources))]
        for path, source in zip(paths, sources):
            self.write(path, source)
            subprocess.run(["g++", "-std=c++20", "-w", "-c", path, "-o", f"{path}.o"], check=True)
        return [f"{path}.o" for path in paths]

    def refused(self, *sources):
        """What is said of an answer; the first one, linked with the others."""
        symbols.symbols_of_library.cache_clear()
        answer, *others = self.compiled(*sources)
        return symbols.refused(answer, symbols.Others(others), "gemm.cuh")

    def test_what_the_coach_throws(self):
        text = "namespace exercise { struct %s { int text; }; void f() { throw %s{1}; } }"
        self.assertIn("which the check has already", self.refused(text % ("NotYet", "NotYet")))
        self.assertEqual(self.refused(text % ("Mine", "Mine")), "")

    def test_what_is_not_for_an_answer(self):
        text = """
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <cstdlib>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
namespace interpreter { struct Options; struct GlobalMemory { void forget(); }; void clear_profiles(); Options& options(); int& teamwork(); }
namespace harness { int compare(); }
extern "C" void *_DYNAMIC[], *dlsym(void*, const char*);
extern "C" long ptrace(int, ...);
void f(char c) {
  interpreter::clear_profiles(), interpreter::options(), interpreter::GlobalMemory().forget(), ++interpreter::teamwork(), harness::compare();
  fork(), setsid(), kill(getppid(), 9), execl("x", "x", nullptr), read(0, &c, 1), syscall(1), std::atexit(nullptr);
  std::system("ls"), std::fopen("x", "r"), std::getchar(), mmap(0, 1, 0, 0, 0, 0), mprotect(0, 1, 0), dlsym(_DYNAMIC[0], "x"), ptrace(0);
  signal(11, nullptr), setenv("x", "y", 1);
  if (c) c > 1 ? _exit(0) : std::exit(0);
  std::ofstream("x") << 1, std::cin >> c, std::thread([] {}).detach(), std::filesystem::remove_all("/home");
}
"""
        names = symbols.foreign_of(symbols.symbols(self.compiled(text)))
        shown = subprocess.run(["c++filt"], input="\n".join(names), stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
        for name in (
            *("interpreter::clear_profiles()", "interpreter::options()", "interpreter::GlobalMemory::forget()", "interpreter::teamwork()"),
            "harness::compare()",
            *("fork", "setsid", "kill", "getppid", "execl", "read", "syscall", "_exit", "exit", "atexit", "system", "fopen", "getchar"),
            *("mmap", "mprotect", "dlsym", "_DYNAMIC", "ptrace", "signal", "setenv", "std::cin", "std::thread::detach()"),
        ):
            self.assertIn(f"\n{name}\n", f"\n{shown}\n")
        for name in ("basic_ofstream", "std::filesystem::remove_all", "std::thread::_M_start_thread"):
            self.assertIn(name, shown)
        said = self.refused("namespace interpreter { void copy_out(void*, const void*, unsigned long); } void f() { interpreter::copy_out(0, 0, 1); }")
        self.assertIn("gemm.cuh uses interpreter::copy_out(void*, void const*, unsigned long).\nNothing is copied to the host", said)
        self.assertIn("uses cudaMemcpy2D()", self.refused('extern "C" int cudaMemcpy2D(); int f() { return cudaMemcpy2D(); }'))
        to_gpu = 'extern "C" int cudaMemcpyToSymbol(); int f() { return cudaMemcpyToSymbol(); }'
        self.assertEqual(self.refused(to_gpu), "")
        said = self.refused("#include <unistd.h>\nint f() { return fork(); }")
        self.assertIn("gemm.cuh uses fork().\nAn answer may call CUDA's functions", said)

    def test_what_copies_unseen(self):
        for call in ("mempcpy(x, y, n)", "strncpy(x, y, n)", "strcat(x, y)", "wmemcpy((wchar_t*)x, (wchar_t*)y, n)", "stpcpy(x, y)", "strdup(y)"):
            said = self.refused(f"#include <cstring>\n#include <cwchar>\nvoid* f(char* x, char* y, int n) {{ return {call}; }}")
            self.assertIn(f"gemm.cuh uses {call.split('(')[0]}().\nThe interpreter does not see what it copies", said)
        for call in ("memcpy(x, y, n)", "memmove(x, y, n)", "strchr(y, n)", "strstr(x, y)", "memchr(x, n, n)"):
            self.assertEqual(self.refused(f"#include <cstring>\nvoid* f(char* x, char* y, int n) {{ return {call}; }}"), "", call)

    def test_what_others_have(self):
        posed = "namespace exercise { struct Posed { int verify(); }; int Posed::verify() { return 0; } }"
        self.assertIn("gemm.cuh defines exercise::Posed::verify()", self.refused(posed, posed))
        self.assertIn("defines strlen()", self.refused('extern "C" unsigned long strlen(const char*) { return 0; }'))
        uses = "extern \"C\" int answer(); int f() { return answer(); }"
        self.assertIn("defines answer()", self.refused('extern "C" int answer() { return 0; }', uses))
        with_test = "namespace exercise { int gemm(int); } int f() { return exercise::gemm(1); }"
        self.assertEqual(self.refused("namespace exercise { int gemm(int i) { return i; } }", with_test), "")

    def test_what_an_answer_may_do(self):
        self.assertEqual(self.refused("""
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
namespace interpreter { void synchronize(); struct Site; void warp_barrier(unsigned); void cp_async_wait_all(); }
namespace mine { std::map<std::string, int> cache; std::mutex lock; int helper(int i) { return i; } }
extern "C" void kernel(float* x) { *x = std::fma(std::sqrt(*x), std::exp2(*x), std::tgamma(*x)); }
std::string f(int n, double x) {
  const std::lock_guard guard(mine::lock);
  std::unordered_map<std::string, std::vector<double>> numbers;
  std::ostringstream out;
  out << std::setw(5) << n << x << std::chrono::steady_clock::now().time_since_epoch().count();
  std::cout << out.str() << std::endl;
  std::cerr << mine::helper(n);
  printf("%d\\n", n), std::fprintf(stderr, "x"), std::fflush(stdout);
  char text[20];
  std::snprintf(text, sizeof text, "%g", x), std::memset(text, 0, 3), std::memcpy(text, &x, 4);
  std::mt19937_64 random(n);
  auto shared = std::make_shared<std::string>(std::to_string(n) + std::to_string(x));
  std::function<int(int)> call = [&](int i) { return mine::cache.at(*shared) + i; };
  assert(n > 0);
  if (n > 5) throw std::runtime_error("no " + *shared);
  interpreter::warp_barrier(1), interpreter::cp_async_wait_all();
  numbers["x"].push_back(std::uniform_real_distribution<double>()(random) + std::lround(x) + __builtin_popcountll(n) + (__int128)n / 3);
  if (const char* set = std::getenv("DEBUG")) out << set << std::stoi(set) << std::strtod(set, nullptr);
  std::stable_sort(numbers["x"].begin(), numbers["x"].end());
  return out.str() + text + std::to_string(call(n));
}
"""), "")  # fmt: skip


class FullDisk(unittest.TestCase):
    def test_judging_goes_where_there_is_room(self):
        with tempfile.TemporaryDirectory() as build, tempfile.TemporaryDirectory() as other:
            with mock.patch.dict(os.environ, {"TMPDIR": other}), mock.patch.object(tempfile, "tempdir", None):
                self.assertEqual(judging.with_room(build), build)
                with mock.patch.object(judging, "disk_is_full", lambda path: path == build):
                    self.assertEqual((judging.with_room(build), tempfile.gettempdir()), (other, other))
                with mock.patch.object(judging, "disk_is_full", lambda path: True), self.assertRaisesRegex(Refused, "The disk is full"):
                    judging.with_room(build)

    def test_it_is_not_the_answer(self):
        said = "gemm.cuh:41: fatal error: closing dependency file answer.d: No space left on device\n"
        with mock.patch.object(judging, "disk_is_full", return_value=True):
            for tell in (judging.compiler_says, judging.linker_says):
                with self.assertRaisesRegex(Refused, "The disk is full"):
                    tell(said, "gemm.cuh")
        self.assertIn("No space left", judging.compiler_says(said, "gemm.cuh"))  # an answer may say so itself

    def test_python_keeps_no_modules_there(self):
        for room, options in ((places.ROOM + 1, "-X"), (places.ROOM, "-B")):
            with mock.patch("os.statvfs", return_value=mock.Mock(f_bavail=room, f_frsize=1)):
                self.assertEqual(places.script("x")[1], options)
        with mock.patch.object(places, "BUILD", "/no/such/folder"):
            self.assertEqual(places.script("x")[1], "-B")


class Telling(Made):
    def verdict(self, code, output, reason=""):
        return judging.verdict_of(judging.Done(code, output, reason), "secret")[:2]

    def test_only_the_coach_says_that_the_result_is_right(self):
        said = "The result is right, the way to it is not yet: x\n"
        for last, right in (("right secret\n", True), ("right\n", False), ("", False), ("right secret\nmore\n", False)):
            kind, text, told = judging.verdict_of(judging.Done(1, said + last, ""), "secret")
            self.assertEqual((kind, told), (judging.NOT_YET, right))
            self.assertEqual("right secret" in text, last.endswith("more\n"))
            self.assertEqual(grading.credit(judging.Verdict(kind, text, 1, told)), 0.5 if right else 0)

    def test_verdicts(self):
        self.assertEqual(self.verdict(0, "passed secret\n"), (judging.PASSED, ""))
        self.assertEqual(self.verdict(0, "passed\n")[0], judging.STOPPED)  # that could be anybody's
        self.assertEqual(self.verdict(1, "C[0, 1] is nan\n"), (judging.NOT_YET, "C[0, 1] is nan"))
        self.assertEqual(self.verdict(1, "interpreter: note: x\nC\n"), (judging.NOT_YET, "C"))
        kind, text = self.verdict(0, "")
        self.assertEqual(kind, judging.STOPPED)  # exit(0) is no pass
        self.assertIn("before its check was over", text)
        self.assertIn("SIGSEGV", self.verdict(128 + signal.SIGSEGV, "")[1])
        self.assertEqual(self.verdict(137, "line\n", "too long")[1], "line\ntoo long")
        left = judging.Done(0, "passed secret\n", "", 2)
        self.assertEqual(judging.verdict_of(left, "secret")[0], judging.STOPPED)
        for code, last in ((1, ""), (0, "passed secret\n")):
            self.assertEqual(self.verdict(code, "x\n" * 100 + last)[1].count("x"), judging.MOST_LINES)
        with self.assertRaisesRegex(Refused, "needs 11 TB"):
            self.verdict(2, "interpreter: needs 11 TB of address space\n")

    def test_a_terminal_obeys_nothing(self):
        self.assertEqual(judging.printable("a\x1b[2J\x1b]0;x\x07b\tc\u202e\x9b\né"), "a?[2J?]0;x?b\tc??\né")
        self.assertEqual(judging.printable("x" * 5000), "x" * judging.MOST_COLUMNS + " ...")

    def test_what_is_no_source(self):
        workshop = judging.Workshop("interpreter")
        for content, said in ((b"x" * 300000, "has 300,000 bytes, and an answer at most 262,144"), (b"int i;\0", "is no text")):
            os.makedirs(os.path.dirname(self.first.file), exist_ok=True)
            with open(self.first.file, "wb") as file:
                file.write(content)
            with mock.patch.object(judging, "limited") as limited:  # it would be the compiler
                self.assertIn(said, workshop.built(self.first, self.first.file, self.root).refused)
            limited.assert_not_called()
        self.write('an"na/gemm.cuh', "int i;")
        self.assertIn("rename the folder", judging.is_no_source(os.path.join(self.root, 'an"na/gemm.cuh')))
        self.assertEqual(judging.is_no_source(self.first.solution), "")

    def test_compile_errors(self):
        file = os.path.join(self.root, "handed", "gemm.cuh")
        text = judging.compiler_says(f"/usr/include/x.h:1:2: error: not this\n{file}:7:3: error: expected ';'\n  7 | x\n", file)
        self.assertIn(f"{file}:7: error: expected ';'", text)
        self.assertNotIn("not this", text)
        self.assertIn("1 more errors", text)

    def test_link_errors(self):
        text = judging.linker_says("test.cpp: undefined reference to `exercise::gemm(gemm::Matrix<float const>)'\n", self.first)
        self.assertIn("  gemm(Matrix<float const>)\n", text)
        text = judging.linker_says("/usr/bin/ld: libcoach.a(coach.cpp.o): in function `main':\nmultiple definition of `main'; answer.o", self.first)
        self.assertIn("01_first/gemm.cuh defines main(). The test has one already", text)

    def test_seeds(self):
        """Of a command's own, or another one for each judgement."""
        for wanted in (7, None):
            workshop = judging.Workshop("interpreter", wanted)
            with mock.patch("command.exercises.judging.limited", return_value=judging.Done(0, "", "")) as limited:
                for _ in range(20):
                    workshop.outcome(self.first, judging.Built("judge", ""), "gemm.cuh")
            seeds = {int(call.args[0][-2]) for call in limited.call_args_list}
            for call in limited.call_args_list:  # what is linked with the answer is another program than the one that has the word
                self.assertEqual([os.path.basename(call.args[0][-7]), call.args[0][-1]], ["referee_01_first", "judge"])
            words = [call.args[3] for call in limited.call_args_list]  # on stdin; a program's arguments are there for it to read
            self.assertFalse([call for call, word in zip(limited.call_args_list, words) if len(word) != 16 or word in " ".join(call.args[0])])
            self.assertTrue(seeds == {7} if wanted else len(seeds) > 10 and min(seeds) > 0 and max(seeds) <= judging.MOST_SEED)
        self.assertEqual(SEED.check("--seed", "999999"), 999999)
        for word in ("0", "-1", "1000000", "x", ""):
            with self.assertRaisesRegex(Refused, "no number from 1 to 999999"):
                SEED.check("--seed", word)


class Answers(Made):
    PATCH = "what: nothing is filled\nsays: so it  is\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n one\n-filled\n+empty\n"

    def answer(self, text, kind="wrong"):
        self.write(f"solutions/01_first/{kind}/empty.patch", text)
        return answers.answers(self.first)[0]

    def test_patches(self):
        text = self.PATCH.replace(" one\n", "")
        self.assertEqual(self.answer(text).text(), SOLUTION.replace("filled", "empty"))
        with self.assertRaisesRegex(Failed, "0 times"):
            self.answer(text.replace("-filled", "-full")).text()
        for bad in (text.replace("says: so it  is\n", ""), text.replace("what: nothing is filled\n", ""), "what: x\nsays: y\n"):
            with self.assertRaisesRegex(Failed, "a patch has"):
                self.answer(bad)
        os.remove(os.path.join(self.root, "solutions/01_first/wrong/empty.patch"))
        with self.assertRaisesRegex(Failed, "a patch has"):
            self.answer(text, "right")  # it says something

    def test_problems(self):
        workshop = mock.Mock(folder=self.root)
        wrong = self.answer(self.PATCH.replace(" one\n", ""))
        for kind, text, problem in (
            (judging.NOT_YET, "well, so\nit is", ""),
            (judging.NOT_YET, "something else", "is rejected, but not with 'so it  is'"),
            (judging.PASSED, "", "is wrong, and passes"),
            (judging.NO_PROGRAM, "so it is", "does not compile"),
        ):
            workshop.judge.return_value = judging.Verdict(kind, text, 1)
            found = answers.problem_of(workshop, wrong)
            self.assertTrue(problem in found and bool(problem) == bool(found), found)

    def test_a_compiler_cache_is_for_the_courses_own_answers(self):
        with mock.patch.dict(os.environ, {"CCACHE_DIR": "/there"}), mock.patch.object(judging, "limited") as limited:
            self.assertEqual((judging.environment().get("CCACHE_DISABLE"), judging.environment().get("CCACHE_DIR")), ("1", None))
            own = judging.environment(is_own=True)
            self.assertEqual((own.get("CCACHE_DISABLE"), own["CCACHE_DIR"]), (None, "/there"))
            for is_own in (False, True):
                judging.Workshop("interpreter", is_own=is_own).compile(["g++"], self.first.stub, os.path.join(self.root, "judge"))
                self.assertEqual(limited.call_args.kwargs["is_own"], is_own)
                self.assertEqual(limited.call_args.args[0][0] == "bwrap", judging.can_build_walls() and not is_own)

    def test_files(self):
        found = "\n".join(answers.problems_of_files(self.first))
        self.assertEqual(found, "01_first: it has 0 wrong answers, not 5.\n01_first: it has 0 right answers, not 2.")
        self.write("exercises/01_first/gemm.cuh", STUB + "more\n")
        self.write("exercises/01_first/README.md", README.replace("Hint 3", "No hint").replace("**Task.**", "Task."))
        found = "\n".join(answers.problems_of_files(self.first))
        for part in ("differ outside of the holes", "has 2 hints, not 3", "no paragraph '**Task.**'"):
            self.assertIn(part, found)
        self.write("exercises/01_first/gemm.cuh", "no hole")
        self.assertIn("its stub has no hole", "\n".join(answers.problems_of_files(self.first)))

    def test_stub_and_solution(self):
        workshop = mock.Mock()
        for kind, stub, solved in (
            (judging.PASSED, "the stub passes", ""),
            (judging.NOT_YET, "", "the solution does not pass"),
            (judging.NO_PROGRAM, "the stub does not compile", "the solution does not pass"),
        ):
            workshop.judge.return_value = judging.Verdict(kind, "", 1)
            self.assertIn(stub, answers.stub_problem(workshop, self.first))
            self.assertIn(solved, answers.solution_problem(workshop, self.first))


if __name__ == "__main__":
    unittest.main()
