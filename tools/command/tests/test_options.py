"""Tests of the options: each is described once, and a step's program agrees. With --program PROGRAM, PROGRAM is asked."""

import ast
import glob
import importlib
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from command import benchmark, main
from command.cli import arguments, options, steps, values
from command.messages import Refused
from command.places import ROOT
from command.scripts import options as page_of_options
from command.subcommands import bench

PROGRAM = None
if __name__ == "__main__" and "--program" in sys.argv:
    AT = sys.argv.index("--program")
    PROGRAM = sys.argv[AT + 1]
    del sys.argv[AT : AT + 2]

# What the command hands on, and what of a value the program's help has to name.
HANDED_ON = [
    (options.SHAPE, ["MxNxK"]),
    (options.DTYPE, values.DTYPES),
    (options.LAYOUT, values.LAYOUTS),
    (options.ACTIVATION, values.activation.choices),
    (options.BIAS, []),
    (options.TILE, []),
    (options.JSON.but(metavar="FILE"), []),
    (options.VERBOSE, []),
    (options.SHOW, []),
    (options.CLEAR, []),
    (options.CACHE, []),
]
ON_GPU = [(options.MODE, values.MODES), (options.ENERGY, [])]
ON_INTERPRETER = [
    (options.AS, values.GPUS),
    (options.ORDER, ["forward", "reverse", "random", "random:SEED"]),
    (options.FORCE, []),
]


def commands():
    return [importlib.import_module(main.module_of(name), "command").COMMAND for name in main.COMMANDS]


class Descriptions(unittest.TestCase):
    def test_every_command_is_described(self):
        for command in commands():
            text = arguments.help_of(command)
            self.assertIn(f"Usage: tools/course {command.name}", text)
            self.assertIn("Exit code: ", text)
            for option in command.options:
                self.assertIn(f"  {option.name}", text)
            self.assertLessEqual(max(map(len, text.splitlines())), arguments.WIDEST + 2)

    def test_choices_are_in_their_help(self):
        for command in commands():
            for option in command.options:
                if (command.name, option.name) == ("tune", "--dtype"):
                    continue  # f32 is refused by name, with the reason
                for choice in getattr(option.check, "choices", ()):
                    self.assertRegex(option.description(), rf"\b{choice}\b", f"{command.name} {option.name}")

    def test_the_page_has_them_all(self):
        page = page_of_options.text()
        for command in commands():
            section = page.split(f"\n## {command.name}\n")[1].split("\n## ")[0]
            for option in command.options:
                self.assertRegex(section, rf"\| `{re.escape(option.name)}[ `]")
        with open(page_of_options.PAGE, encoding="utf-8") as file:
            self.assertEqual(file.read(), page, "run 'tools/course options'")

    def test_old_python_can_read_it(self):
        for folder in ("command", "report"):
            for path in glob.glob(os.path.join(os.path.dirname(main.__file__), "..", folder, "**", "*.py"), recursive=True):
                with open(path, encoding="utf-8") as file:
                    ast.parse(file.read(), path, feature_version=(3, 9))


class Words(unittest.TestCase):
    def setUp(self):
        self.run = next(command for command in commands() if command.name == "run")

    def test_values(self):
        given = self.run.parse(["1", "--shape", "2x3x4,5x6x7", "--dtype=fp16", "02", "--bias"])
        self.assertEqual(given.positional, ["1", "02"])
        self.assertEqual(list(given.shape), [(2, 3, 4), (5, 6, 7)])
        self.assertEqual((given.dtype, given.bias, given.order), ("f16", True, None))
        self.assertEqual(given.to_pass(options.SHAPE, options.BIAS, options.ORDER), ["--shape", "2x3x4,5x6x7", "--bias"])

    def test_a_value_that_may_be_left_out(self):
        for words, see, positional in (
            (["4"], None, ["4"]), (["--see", "4"], "", ["4"]), (["4", "--see"], "", ["4"]), (["--see", "a.html", "4"], "a.html", ["4"]), (["--see=a.html", "4"], "a.html", ["4"]),
        ):  # fmt: skip
            given = self.run.parse(words)
            self.assertEqual((given.see, given.positional), (see, positional))
        interpret = next(command for command in commands() if command.name == "interpret")
        for words in (["--see", "-O3", "x.cu", "-a"], ["-O3", "--see", "x.cu", "-a"], ["--see", "a.html", "-O3", "x.cu", "-a"]):
            given = interpret.parse(words)
            self.assertEqual((given.see, given.ignored, given.everything), ("a.html" if "a.html" in words else "", ["-O3"], ["x.cu", "-a"]))
        for words, message in ((["--see=a.txt"], "--see 'a.txt' is no page"), (["--see", "--shap"], "unknown option '--shap'")):
            with self.assertRaisesRegex(Refused, re.escape(message)):
                self.run.parse(words)

    def test_bad_words(self):
        for words, message in (
            (["--bias=3"], "unknown option '--bias=3'"),
            (["--shap", "1x1x1"], "unknown option '--shap'"),  # no abbreviations: tomorrow they may mean something else
            (["--shape"], "--shape needs a value"),
            (["--shape", "-1x2x3"], "is not MxNxK"),
            (["-"], "unknown option '-'"),
        ):
            with self.assertRaisesRegex(Refused, re.escape(message)):
                self.run.parse(words)

    def test_what_is_no_macro(self):
        interpret = next(command for command in commands() if command.name == "interpret")
        self.assertEqual(interpret.parse(["-DN=1x", "-D", "_f(x)=x", "-DA", "x.cu"]).D, ["N=1x", "_f(x)=x", "A"])
        for words in (["-D=1"], ["-D", "1x"], ["-D", "a-b=1"], ["-D", "(x)"]):
            with self.assertRaisesRegex(Refused, "^-D '.*' begins with no name of a macro: NAME or NAME=VALUE.$"):
                interpret.parse([*words, "x.cu"])

    def test_a_file_that_cannot_be_read_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe, loop, file = (os.path.join(folder, name) for name in ("pipe", "loop", "file"))
            os.mkfifo(pipe)
            os.symlink(loop, loop)
            with open(file, "w", encoding="utf-8"):
                arguments.require_file(file, "name one.")
            for path, why in (
                (folder, "Is a directory"),
                (pipe, "No regular file"),
                (os.devnull, "No regular file"),
                (loop, "Too many levels of symbolic links"),
                (file + "s", "No such file or directory"),
                (file + "/x", "Not a directory"),
                ("x" * 300, "File name too long"),
            ):
                with self.assertRaisesRegex(Refused, f"^cannot read '{path}': {why}; name one.$"):
                    arguments.require_file(path, "name one.")
            with mock.patch("os.open", side_effect=PermissionError(13, "Permission denied")):  # root may read all
                with self.assertRaisesRegex(Refused, f"^cannot read '{file}': Permission denied; name one.$"):
                    arguments.require_file(file, "name one.")

    def test_help_wins_unless_it_is_no_option(self):
        with self.assertRaises(arguments.HelpWanted):
            self.run.parse(["1", "--help", "--nonsense"])
        self.assertEqual(self.run.parse(["--", "--help"]).after_dashes, ["--help"])


class Growing(unittest.TestCase):
    def test_a_subcommand_is_a_module_and_a_line(self):
        module = types.ModuleType("command.subcommands.greet")
        loud = options.Option("--loud", "with an exclamation mark")
        module.COMMAND = arguments.Command("greet", "NAME", "Greets.", (loud,), "", lambda given: 40 + given.loud)
        with mock.patch.dict(sys.modules, {module.__name__: module}), mock.patch.dict(main.COMMANDS, greet="greet somebody"):
            self.assertEqual(main.dispatch(["greet", "--loud"]), 41)
            self.assertIn("  greet      greet somebody\n", main.help_text())
            with self.assertRaisesRegex(Refused, "unknown option '--quiet'; 'tools/course greet --help' lists them"):
                main.dispatch(["greet", "--quiet"])


class Messages(unittest.TestCase):
    def test_a_command_that_is_shown_can_be_typed(self):
        """Wherever a text says 'course run', it is 'tools/course run'. Docstrings of modules are for those who read the code."""
        typed = re.compile(rf"(?<![\w/])course ({'|'.join([*main.COMMANDS, 'help', 'build', 'install'])})\b|'course $")
        for path in glob.glob(os.path.join(ROOT, "tools", "**", "*.py"), recursive=True):
            if "test" in os.path.basename(path) or "/tests/" in path:
                continue
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read())
            documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
            docstrings = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and isinstance(node.body[0], ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                    self.assertIsNone(typed.search(node.value), f"{path}:{node.lineno}")
        for path in glob.glob(os.path.join(ROOT, "common", "**", "*.cpp"), recursive=True):
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    code = line.split("//")[0]
                    self.assertFalse('"' in code and typed.search(code), f"{path}:{number}")

    def test_the_command_takes_what_the_program_takes(self):
        with open(os.path.join(ROOT, "common/harness/program/arguments.cpp"), encoding="utf-8") as file:
            self.assertIn(f'"([0-9]{{1,{values.MOST_DIGITS}}})x', file.read())
        self.assertEqual(list(values.shapes("--shape", "9999999999x1x0")), [(9999999999, 1, 0)])
        with self.assertRaisesRegex(Refused, "'10000000000x1x0' is too large: an extent has 10 digits at most"):
            values.shapes("--shape", "1x1x1,10000000000x1x0")

    def test_the_help_of_bench_says_what_its_plan_says(self):
        parts = benchmark.plan(steps.all_steps(), benchmark.SUITES, benchmark.DTYPES, benchmark.MODES)
        expected = benchmark.duration(sum(benchmark.expected_seconds(parts, steps.tuned_steps())))
        self.assertIn(f"about {expected} on", " ".join(arguments.help_of(bench.COMMAND).split()))


@unittest.skipUnless(PROGRAM, "no --program")
class Program(unittest.TestCase):
    def test_the_program_agrees(self):
        text = subprocess.run([PROGRAM, "--help"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
        described = dict(re.findall(r"^ +(--[a-z-]+)((?: .*)?(?:\n {10,}.*)*)$", text, re.MULTILINE))
        on_gpu = "--once" in described
        for option, choices in HANDED_ON + (ON_GPU if on_gpu else ON_INTERPRETER):
            self.assertIn(option.name, described)
            takes_value = bool(re.match(r" (TEXT|FLOAT|INT)\b", described[option.name]))
            self.assertEqual(takes_value, bool(option.metavar), option.name)
            words = " ".join(described[option.name].split())
            for choice in choices:
                self.assertRegex(words, rf"\b{choice}\b", option.name)

    def test_the_program_knows_what_the_command_knows_and_no_more(self):
        """Each choice is accepted, and something else is not: by --check-memory, which runs nothing."""
        for option in (options.DTYPE, options.LAYOUT):
            for choice in option.check.choices:
                self.assertEqual(self.code(option.name, choice), 0, f"{option.name} {choice}")
            self.assertEqual(self.code(option.name, "nonesuch"), 2)

    @staticmethod
    def code(*words):
        command = [PROGRAM, "--check-memory", "--shape", "1x1x1", *words]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    unittest.main()
