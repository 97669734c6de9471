"""Each room of the interpreter includes only what README.md's table has above it, and few sources see a block. 'python3 -B floors_test.py'."""

import os
import re
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_SEE_A_BLOCK = 8


def text(path):
    with open(os.path.join(HERE, path), encoding="utf-8") as file:
        return file.read()


def room_of(path):
    return path.split("/")[0] if "/" in path else ""


def read_includes():
    """Of each file, tests left out, what it includes of the interpreter."""
    found = {}
    for folder, folders, names in os.walk(HERE):
        folders[:] = [each for each in folders if each not in ("tests", "fuzz", "__pycache__")]
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), HERE)
            if not path.endswith((".py", ".md", ".txt")):
                found[path] = re.findall(r'#include\s+["<](?:common/)?interpreter/([^">]+)[">]', text(path))
    return found


def read_floors():
    """Rooms with their floor's number, the ground first; those in one row share one."""
    rows = [line.split("|")[1] for line in text("README.md").splitlines() if line.startswith("| [")]
    return {room: number for number, row in enumerate(rows) for room in re.findall(r"\((\w+)\)", row)}


class Floors(unittest.TestCase):
    def setUp(self):
        self.includes, self.floors = read_includes(), read_floors()
        self.assertGreater(len(self.includes), 150)

    def seen_from(self, path, seen):
        for each in self.includes.get(path, ()):
            if each not in seen:
                seen.add(each)
                self.seen_from(each, seen)
        return seen

    def test_every_room_has_a_floor(self):
        self.assertEqual({room_of(path) for path in self.includes} - {""}, set(self.floors))

    def test_includes_go_up_in_the_table(self):
        # What instructions/ declares for kernels is theirs, and sees nothing of the rest.
        kernels_own = {room for room, floor in self.floors.items() if floor == self.floors["language"]}
        declared = set()
        for path in self.includes:
            if room_of(path) in kernels_own:
                declared |= {each for each in self.seen_from(path, set()) if room_of(each) not in {*kernels_own, ""}}
        self.assertEqual({room_of(each) for each in declared}, {"instructions"})
        for path, includes in self.includes.items():
            for each in includes:
                if room_of(each) and each not in declared:
                    self.assertLessEqual(self.floors[room_of(each)], self.floors[room_of(path)], f"{path} includes {each}")

    def test_few_sources_see_a_block(self):
        seeing = sorted(path for path in self.includes if path.endswith(".cpp") and "block/block.h" in self.seen_from(path, set()))
        self.assertIn("block/block.cpp", seeing)
        self.assertLessEqual(len(seeing), MOST_SEE_A_BLOCK, f"a BlockContext does for most of them: {seeing}")


if __name__ == "__main__":
    unittest.main()
