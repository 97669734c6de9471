"""Applies every edit that a lesson suggests and compares what happens with what the lesson says.

An edit is a patch, steps/NN_name/edits/NAME.patch, which the lesson links to and a learner applies with 'git apply'. Above the diff
stand lines that this test reads:

    tile: Tile<64, 128, 8, 8, 8>   what is compiled; without it, the step's first tile
    compile: common/harness/x.cpp  files beside the step that the edit needs compiled
    lesson: WORDS                  the outcome in the lesson's words, which must be there
    arguments: --dtype f16 ...     of a run of the step's program, as of 'tools/course run N'; for each run:
    exit: 1                        the exit code; 0 if the kernel is still right
    says: WORDS                    a part of what it prints, any number of times; blanks may differ

Each is compiled alone, one tile, one type, only the layouts that are run, by the command that compiles the step.

Usage: edits_test.py BUILD_FOLDER COMPILER MAIN_OBJECT LIBRARY... [-- unittest's arguments]
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from command.patches import BadPatch, applied, parse

FIELDS = ("tile", "compile", "lesson", "arguments", "exit", "says")
TYPES = {"f32": "float", "f16": "__half", "bf16": "__nv_bfloat16"}
CONTIGUOUS = {"n": ("kK", "kMN"), "t": ("kMN", "kK")}  # of A, of B
SOME_LAYOUTS = """
template <class In, class Launch>
void with_some_layouts(const Matrix<const In>& A, const Matrix<const In>& B, const Launch& launch) {
LAUNCHES}
"""
LAUNCH = """  if ((A.col_stride == 1) == (Contiguous::{0} == Contiguous::kK) && (B.row_stride == 1) == (Contiguous::{1} == Contiguous::kK))
    launch(std::integral_constant<Contiguous, Contiguous::{0}>{{}}, std::integral_constant<Contiguous, Contiguous::{1}>{{}});
"""
LAUNCHER = "template <class Tile, class In, class Out, class Epilogue>\nvoid gemm("
BUILD, COMPILER, LINKED = None, None, []


def words(text):
    return " ".join(text.split())


class Edit:
    """A patch: its fields, and from path to the (old, new) texts of its hunks."""

    def __init__(self, path):
        self.path, self.step = path, path.parent.parent.name
        self.tile, self.compiled, self.lesson, self.runs = None, [], [], []
        fields, self.hunks = parse(path.read_text(encoding="utf-8"), FIELDS)
        for name, value in fields:
            self.field(name, value)
        if not (self.hunks and self.lesson and self.runs and all("exit" in each for each in self.runs)):
            raise BadPatch(f"{path}: needs a diff, and above it the fields lesson, arguments and exit")

    def field(self, name, value):
        if name == "tile":
            self.tile = value
        elif name == "compile":
            self.compiled = value.split()
        elif name == "lesson":
            self.lesson.append(value)
        elif name == "arguments":
            self.runs.append({"arguments": shlex.split(value), "says": []})
        elif name == "exit":
            self.runs[-1]["exit"] = int(value)
        else:
            self.runs[-1]["says"].append(value)

    def options(self, name, otherwise):
        """What the runs have behind option NAME, each once."""
        every = (each["arguments"] for each in self.runs)
        return list(dict.fromkeys(each[each.index(name) + 1] if name in each else otherwise for each in every))

    def changed(self, file):
        """The text of FILE, edited."""
        return applied((ROOT / file).read_text(encoding="utf-8"), self.hunks.get(file, []), self.path.name, file)

    def compiled_alone(self, text):
        """TEXT of a gemm.cuh, or of a tiles.h, with one type, one tile, one layout."""
        first = re.search(r"using Tiles =\s*gemm::TypeList<(\w+(?:<[^<>]*>)?)", text)
        tile = self.tile or (first and first[1])
        (dtype,) = (TYPES[each] for each in self.options("--dtype", "f32"))
        text = re.sub(r"using Inputs = .*?;", f"using Inputs = gemm::TypeList<{dtype}>;", text, flags=re.S)
        text = re.sub(r"using Tiles =.*?;", "using Tiles = gemm::TypeList<>;", text, flags=re.S)
        text = re.sub(r"using MoreTiles =.*?;", f"using MoreTiles = gemm::TypeList<{tile}>;", text, flags=re.S)
        if "device::with_contiguous(" in text:
            text = text.replace("device::with_contiguous(", "with_some_layouts(")
            layouts = [(CONTIGUOUS[a][0], CONTIGUOUS[b][1]) for a, b in self.options("--layout", "nn")]
            launches = "".join(LAUNCH.format(*layout) for layout in layouts)
            text = text.replace(LAUNCHER, SOME_LAYOUTS.replace("LAUNCHES", launches) + LAUNCHER)
        return text

    @contextlib.contextmanager
    def folder(self):
        """An empty one, the same each time: a compiler cache looks at its name."""
        folder = BUILD / "edits" / self.step / self.path.stem
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def program(self, folder):
        """Compiles and links. Returns its path, or None, and what the compiler said."""
        copies = {f"steps/{self.step}/gemm.cuh", *self.hunks}
        if (ROOT / f"steps/{self.step}/tiles.h").exists():
            copies.add(f"steps/{self.step}/tiles.h")
        for file in copies:
            text = self.changed(file)
            if file.startswith("steps/"):
                text = self.compiled_alone(text)
            copy = folder / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
        objects, said = [], ""
        for number, file in enumerate([f"steps/{self.step}/entry.cpp", *self.compiled]):
            objects.append(folder / f"{number}.o")
            done = compile_again(file, folder, objects[-1])
            said += done.stderr
            if done.returncode:
                return None, said
        wrapped = "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset"
        done = run([COMPILER, wrapped, LINKED[0], *objects, *LINKED[1:], "-lpthread", "-o", folder / "program"], folder)
        return (None if done.returncode else folder / "program"), said + done.stderr


def compile_again(file, folder, output):
    """As FILE is compiled in the build folder, but with the headers, and its own copy, that FOLDER has."""
    with open(BUILD / "compile_commands.json", encoding="utf-8") as commands:
        found = [each for each in json.load(commands) if each["file"].endswith(f"/{file}")]
    found = [each for each in found if "COURSE_FIRST_OF" not in each["command"]]  # a short program has its own way to one tile
    if not found:
        raise BadPatch(f"{file} is not compiled in {BUILD}")
    command = shlex.split(found[0]["command"])
    command[command.index("-o") + 1] = str(output)
    if (folder / file).exists():
        command[command.index("-c") + 1] = str(folder / file)
    launcher = filter(None, [os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER")])
    return run([*launcher, command[0], f"-I{folder}", *command[1:]], found[0]["directory"])


def run(command, folder):
    return subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)


def problems(edit):
    """What is not as the patch says, a sentence each."""
    wrong = []
    try:
        with edit.folder() as folder:
            program, said = edit.program(folder)
            if program is None:
                return [f"{edit.path.name} does not compile:\n{said}"]
            for each in edit.runs:
                done = run([program, *each["arguments"]], folder)
                said, found = done.stdout + done.stderr, []
                if done.returncode != each["exit"]:
                    found.append(f"exit code {done.returncode}, not {each['exit']}")
                found += [f"does not say '{part}'" for part in each["says"] if words(part) not in words(said)]
                wrong += [f"{edit.path.name} {' '.join(each['arguments'])}: {what}; it says:\n{said}" for what in found]
    except BadPatch as error:
        return [str(error)]
    return wrong


def edits(root=ROOT):
    return [Edit(path) for path in sorted(root.glob("steps/*/edits/*.patch"))]


def without_chance(said):
    """Not how long it took, nor which of the blocks that run side by side was first."""
    return re.sub(r"of block \([\d,]+\)", "of some block", re.sub(r"[\d.]+ s$", "SECONDS", said, flags=re.M))


class Edits(unittest.TestCase):
    def test_lessons_and_patches_name_each_other(self):
        for lesson in sorted(ROOT.glob("steps/*/README.md")):
            linked = set(re.findall(r"\]\((edits/[^)]*)\)", lesson.read_text(encoding="utf-8")))
            there = {f"edits/{path.name}" for path in lesson.parent.glob("edits/*")}
            self.assertEqual(linked, there, lesson)
        for edit in edits():
            lesson = (edit.path.parent.parent / "README.md").read_text(encoding="utf-8")
            lesson = words(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", lesson))
            for outcome in edit.lesson:
                self.assertIn(words(outcome), lesson, edit.path.name)

    @unittest.skipUnless(shutil.which("git"), "there is no git")
    def test_git_takes_them(self):
        for edit in edits():
            done = run(["git", "apply", "--check", edit.path], ROOT)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_outcomes(self):
        all_edits = edits()
        self.assertTrue(all_edits)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = [each for found in pool.map(problems, all_edits) for each in found]
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_the_front_page_shows_what_is_said(self):
        """Of its first two runs, the kernel as it is and one that lacks a barrier. It leaves lines out, and the folder."""
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        for command, name in (("tools/course run naive", None), ("tools/course run tiled", "steps/02_tiled/edits/no-second-barrier.patch")):
            shown = re.search(rf"^{command}\n```\n\n.*?```\n(.*?)^```", text, re.S | re.M)
            self.assertTrue(shown, command)
            edit = Edit(ROOT / (name or "steps/02_tiled/edits/no-second-barrier.patch"))
            if name:
                self.assertIn(f"git apply {name}\n{command}\n", text)
            else:
                edit.step, edit.hunks = "01_naive", {}
            with tempfile.TemporaryDirectory() as folder:
                program, said = edit.program(pathlib.Path(folder))
                self.assertTrue(program, said)
                done = run([program], folder)
            said = without_chance((done.stdout + done.stderr).replace(f"{folder}/", "")).splitlines()
            for line in without_chance(shown[1]).splitlines():
                self.assertIn(line, said, command)

    def test_it_notices(self):
        """An outcome that is not what the patch says, and a patch that does not fit."""
        edit = edits()[0]
        edit.runs[0].update({"exit": 0, "says": ["nothing of the kind"]})
        found = problems(edit)
        self.assertIn("exit code 1, not 0", found[0])
        self.assertIn("does not say 'nothing of the kind'", found[1])
        edit.hunks = {f"steps/{edit.step}/gemm.cuh": [("nowhere\n", "")]}
        self.assertIn("0 times, not once", problems(edit)[0])


if __name__ == "__main__":
    arguments = sys.argv[1:]
    more = []
    if "--" in arguments:
        more = arguments[arguments.index("--") + 1 :]
        arguments = arguments[: arguments.index("--")]
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    BUILD, COMPILER, LINKED = pathlib.Path(arguments[0]), arguments[1], arguments[2:]
    unittest.main(argv=[sys.argv[0], *more])
