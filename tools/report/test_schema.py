"""Tests of docs/results/schema.json: the README says what it says, and every committed result is what it says.

With --program PROGRAM, also that a step's program writes what it says, with and without what is optional.
"""

import copy
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report import results, schema

PROGRAMS = []
while __name__ == "__main__" and "--program" in sys.argv:
    AT = sys.argv.index("--program")
    PROGRAMS.append(sys.argv[AT + 1])
    del sys.argv[AT : AT + 2]
FOLDER = os.path.join(schema.ROOT, "docs", "results")


def committed():
    for path in sorted(glob.glob(os.path.join(FOLDER, "**", "*.json"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if document.get("schema") == results.SCHEMA:
            yield path, document


def structure(value):
    """What the schema can object to, apart from single values: those the reader checks too, in a fraction of the time."""
    if isinstance(value, dict):
        return tuple((name, structure(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(sorted(set(map(structure, value)), key=repr))
    return type(value)


def one_of_each_structure(found):
    return list({structure(each): each for each in found}.values())


class Uses(unittest.TestCase):
    def test_each_is_used(self):
        """By a page, a test or a plot: what nobody reads is weight."""
        read = ""
        for pattern in ("README.md", "docs/**/*.md", "steps/*/*", "tools/**/test_*.py", "common/**/*.cpp", "common/**/*.h", ".ci/run"):
            for path in glob.glob(os.path.join(schema.ROOT, pattern), recursive=True):
                if os.path.isfile(path):
                    with open(path, encoding="utf-8") as file:
                        read += file.read()
        plotted = re.findall(r"docs/results/(\S+)-\*\.json", read)  # h200/{ladder,bench}
        families = {place + name for each in plotted for place, names in [each.rsplit("/", 1)] for name in names.strip("{}").split(",")}
        for path, _ in committed():
            place, name = os.path.split(os.path.relpath(path, FOLDER)[: -len(".json")])
            known = place + name.split("-")[0] in families
            self.assertTrue(known or re.search(rf"{'repeat/' * place.endswith('repeat')}\b{name}\b(?!-)", read), f"{place}/{name}: no page, test or plot uses it")


class Readme(unittest.TestCase):
    def test_the_tables_are_current(self):
        with open(schema.README, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(schema.with_tables(text, schema.schema()), text, "run 'python3 tools/report schema'")
        self.assertEqual([match[2] for match in schema.MARKED.finditer(text)], ["document", "ceilings", "result", "baselines"])

    def test_another_schema_gives_another_table(self):
        changed = schema.schema()
        changed["definitions"]["result"]["properties"]["news"] = {"type": "number", "description": "what is new"}
        self.assertIn("| `news` | what is new |", schema.table(changed, "result"))

    def test_the_readers_names_are_in_it(self):
        fields = schema.schema()["definitions"]["result"]["properties"]
        for names in (fields["baselines"], fields["ratio"]):
            self.assertEqual(set(names["properties"]), {*results.BASELINES, *results.FUSED_BASELINES})
        self.assertEqual(set(fields["bytes"]["properties"]), set(results.MODELS))


class SeveralGpus(unittest.TestCase):
    def test_what_tensor_parallel_has_measured(self):
        for path in glob.glob(os.path.join(FOLDER, "*", "tensor_parallel.json")):
            text = pathlib.Path(path).read_text(encoding="utf-8")
            self.assertNotRegex(text, r'"/\w', "a path of somebody's machine")
            document = json.loads(text)
            self.assertEqual((document["schema"], document["version"]), ("gemm-course-tensor-parallel", 1))
            self.assertEqual(set(document), {"schema", "version", "created", "commit", "nccl", "ranks", "cublas", "cuda", "link", "results"})
            self.assertRegex(document["commit"], "^[0-9a-f]{12}$")
            for rank in document["ranks"]:
                self.assertEqual(set(rank), {"host", "gpu", "uuid", "driver", "peers"})
            for each in document["link"]:
                self.assertEqual(set(each), {"movers", "call", "bytes", "seconds"})
                self.assertGreater(each["seconds"], 0)
            for result in document["results"]:
                self.assertEqual(set(result) - {"chosen"}, {"tokens", "model", "hidden", "type", "ranks", "verified", "rounds", "graph", "times"})
                self.assertIs(result["verified"], True)
                self.assertEqual(result["ranks"], len(document["ranks"]))
                for time in result["times"]:
                    self.assertEqual(set(time), {"name", "seconds", "efficiency", "hidden"})
                    seconds = time["seconds"]
                    self.assertTrue(0 < seconds["q20"] <= seconds["median"] <= seconds["q80"], time)


class Lines(unittest.TestCase):
    def test_a_result_a_line(self):
        for path, document in committed():
            lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
            begin = lines.index(' "results": [')
            self.assertEqual(lines.index(" ]", begin) - begin - 1, len(document["results"]), f"{path}: results.dump() writes a line for each")


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.check = schema.validator()
        if not cls.check:
            print("\nNOT CHECKED, jsonschema is missing: result files against docs/results/schema.json", file=sys.stderr)
            raise unittest.SkipTest("jsonschema is missing; Debian: apt-get install python3-jsonschema")

    def test_committed_results(self):
        count = 0
        for path, document in committed():
            results.load(path)
            document["results"] = one_of_each_structure(document["results"])
            count += len(document["results"])
            self.assertEqual(schema.problems(self.check, document)[:5], [], path)
        self.assertGreater(count, 0)

    def test_what_is_wrong_is_found(self):
        _, good = next(committed())
        for change in (
            lambda each: each.update(backend="tpu"),
            lambda each: each.update(surprise=1),
            lambda each: each.pop("host"),
            lambda each: each["ceilings"].update(source="guessed"),
            lambda each: each["results"][0].update(m=-1),
            lambda each: each["results"][0].update(verified=False),
            lambda each: each["results"][0].pop("layout"),
            lambda each: each["results"][0]["bytes"].update(of_a_fourth_model=1),
        ):
            document = copy.deepcopy(good)
            change(document)
            self.assertNotEqual(schema.problems(self.check, document), [])

    @unittest.skipUnless(PROGRAMS, "no --program")
    def test_what_programs_write(self):
        for program in PROGRAMS:
            for more in (["--shape", "16x16x16"], ["--shape", "16x16x16,0x4x4", "--as", "a100", "--layout", "tn"]):
                with self.subTest(program=program, more=more), tempfile.TemporaryDirectory() as folder:
                    out = os.path.join(folder, "results.json")
                    command = [program, *more, "--dtype", "f16", "--json", out]
                    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stdout)
                    self.assertEqual(schema.problems(self.check, results.load(out)), [])


if __name__ == "__main__":
    unittest.main()
