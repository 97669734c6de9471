"""What lessons have taught is here word for word as in their own files: learnt_test.py. A reader who knows the lesson knows the rest.

Each file says which lesson explains it: steps/NN_name/README.md. What it declares stands in that step's gemm.cuh or tiles.h too,
comments included, and in no later step's.
"""

import pathlib
import re
import shutil
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LESSON = re.compile(r"Explained by lesson (\d\d), steps/(\1_\w+)/README\.md; word for word as there\.")
NAME = re.compile(r"^(?:struct|class|enum class) (\w+)|^__(?:host|device)__ .*?(\w+)\(|^constexpr \w+ (\w+) =|^\w+ (\w+)\(", re.MULTILINE)


def declarations(text):
    """What TEXT declares in namespace learnt, each with its comment; 'using' aside."""
    inside = re.search(r"^namespace learnt \{\n(.*)^\}  // namespace learnt$", text, re.MULTILINE | re.DOTALL)
    if not inside:
        return []
    found, lines = [], []
    for line in inside[1].split("\n"):
        if not lines and (not line or line.startswith("using ")):
            continue
        lines.append(line)
        if re.match(r"\};?$|constexpr .*;( *///<.*)?$|enum .*;$", line):  # the end of a function, or of a struct; a constant
            found.append("\n".join(lines))
            lines = []
    return found + (["\n".join(lines)] if lines else [])


def code_of(step):
    """The text of a step's own files."""
    return "".join(path.read_text(encoding="utf-8") for path in (step / "gemm.cuh", step / "tiles.h") if path.exists())


def problems(root):
    """What is wrong, a sentence each."""
    wrong = []
    files = sorted((root / "common/device/learnt").glob("*.cuh"))
    if not files:
        return ["nothing has been learnt"]
    steps = sorted(path.parent.name for path in (root / "steps").glob("*/gemm.cuh"))
    for path in files:
        text = path.read_text(encoding="utf-8")
        lesson = LESSON.search(text)
        if not lesson or lesson[2] not in steps:
            wrong.append(f"{path.name} does not say which lesson explains it")
            continue
        blocks = declarations(text)
        if not blocks:
            wrong.append(f"{path.name} declares nothing")
        taught = code_of(root / "steps" / lesson[2])
        for block in blocks:
            name = next(filter(None, NAME.search(block).groups()))
            if block not in taught:
                wrong.append(f"{path.name}: {name} is not as in {lesson[2]}")
            for later in steps[steps.index(lesson[2]) + 1 :]:
                own = code_of(root / "steps" / later)
                # Another kind of kernel has another Tile.
                if block in own or name != "Tile" and any(name in found.groups() for found in NAME.finditer(own)):
                    wrong.append(f"{later} has a {name} of its own")
    return wrong


class Learnt(unittest.TestCase):
    def test_it_is_what_the_lessons_say(self):
        self.assertEqual(problems(ROOT), [])

    def test_names(self):
        found = {path.name: [NAME.search(block) for block in declarations(path.read_text(encoding="utf-8"))] for path in LEARNT}
        names = {name: [next(filter(None, each.groups())) for each in blocks] for name, blocks in found.items()}
        self.assertEqual(
            names,
            {
                "fragment_load.cuh": ["FragmentLoad"],
                "panels.cuh": ["kPanel", "panel_map", "copy_panels", "RingPlace"],
                "ping_pong.cuh": ["Schedule", "Tile"],
                "registers.cuh": ["Registers"],
                "ring.cuh": ["Ring"],
                "store_later.cuh": ["store_panel"],
                "store_panels.cuh": ["store_panels"],
                "swizzle.cuh": ["swizzled"],
                "tile.cuh": ["Tile"],
                "tile_copy.cuh": ["copy_whole_tile", "copy_tile"],
                "tile_order.cuh": ["TileIndex", "TileOrder"],
                "wgmma_slice.cuh": ["kWarpgroup", "kWgmmaK", "slice_descriptor"],
            },
        )


LEARNT = sorted((ROOT / "common/device/learnt").glob("*.cuh"))


class Changed(unittest.TestCase):
    """A copy of the course in which something is not as it should be."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path in [*LEARNT, *(ROOT / "steps").glob("*/gemm.cuh"), *(ROOT / "steps").glob("*/tiles.h")]:
            copy = self.root / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)

    def change(self, path, old, new):
        text = (self.root / path).read_text(encoding="utf-8")
        self.assertIn(old, text)
        (self.root / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    def test_unchanged(self):
        self.assertEqual(problems(self.root), [])

    def test_a_lesson_that_has_changed(self):
        self.change("steps/03_tensor_core/gemm.cuh", "chunk ^ (row", "chunk ^ (1 + row")
        self.assertEqual(problems(self.root), ["swizzle.cuh: swizzled is not as in 03_tensor_core"])

    def test_a_copy_that_has_changed(self):
        self.change("common/device/learnt/ring.cuh", "/// The stage of the next tile.", "/// The next stage.")
        self.assertEqual(problems(self.root), ["ring.cuh: Ring is not as in 04_pipelined_num_stages"])

    def test_no_lesson(self):
        self.change("common/device/learnt/tile_order.cuh", "lesson 05", "lesson 06")
        self.assertEqual(problems(self.root), ["tile_order.cuh does not say which lesson explains it"])

    def test_a_step_that_repeats_it(self):
        self.change("steps/06_autotune/gemm.cuh", "/// One block,", "template <int kStages>\nstruct Ring {};\n\n/// One block,")
        self.assertEqual(problems(self.root), ["06_autotune has a Ring of its own"])

    def test_nothing(self):
        shutil.rmtree(self.root / "common")
        self.assertEqual(problems(self.root), ["nothing has been learnt"])


if __name__ == "__main__":
    unittest.main()
