"""Tests of the page of several GPUs. With COURSE_BUILD, of plans that are recorded."""

import copy
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from see import cost, ranks_page
from see.test_see import PROGRAMS


def operation(work, begin, end, **more):
    return {"work": work, "copies": work in ("gather", "exchange"), "line": 7, "rows": [0, 4], "operations": 1e9, "bytes": 2e6, "waits": [], "from": begin * 1e-6, "to": end * 1e-6, **more}


def said(*rank, races=(), chunks=1, **more):
    plan = {"overlapped": True, "chunks": chunks, "seconds": 100e-6, "piece_rows": 4, "ranks": [{"operations": list(rank), "races": list(races)}] * 2}
    like = {"tokens": 8, "model": 8, "hidden": 128, "ranks": 2, "seconds": {"overlapped, 1, copy engines": 110e-6}}
    return {"like": like, "plans": [copy.deepcopy(plan), copy.deepcopy(plan)], "few": 64, "slowed": 0.55, "gap": 4e-6, "memory": 3.9e12, **more}


PIECES = (operation("gather", 0, 30), operation("first", 4, 40), operation("second", 50, 80, waits=[0], rows=[4, 8]), operation("add", 80, 100))


class Page(unittest.TestCase):
    def test_gaps_and_their_sums(self):
        self.assertEqual(ranks_page.gaps([{"from": 2, "to": 5}, {"from": 1, "to": 3}, {"from": 7, "to": 8}], 9), [(0.0, 1), (5, 7), (8, 9)])
        self.assertEqual(ranks_page.sums_of(said(*PIECES)["plans"][0]), ["Each GPU: tensor cores idle 34 µs of 100 µs, the link 70 µs."])
        drawn = ranks_page.document_of(said(*PIECES)["plans"][0], None)
        self.assertEqual([gap for gap in drawn["gaps"] if gap[0] in (2, 3)], [(2, 0, 4), (2, 40, 50), (3, 30, 100)])

    def test_who_waits_for_whom(self):
        drawn = ranks_page.document_of(said(*PIECES)["plans"][0], 110e-6)
        self.assertEqual([each["lane"] for each in drawn["ops"]], [1, 3, 0, 2, 0, 2, 0, 2])
        self.assertEqual([each["waits"] for each in drawn["ops"]], [[], [], [], [], [0], [1], [], []])
        self.assertEqual([each["together"] for each in drawn["ops"][:3]], [[1], [0], []])
        self.assertEqual([each["s"] for each in drawn["ops"]], [1, 0, 0, 0, 1, 1, 0, 1])  # whose tokens
        texts = [each["text"] for each in drawn["ops"]]
        self.assertEqual(texts[0], "All-gather: receives 2 MB, the X of the others' tokens. It waits for nothing. All GPUs do it together.")
        self.assertEqual(texts[4], "Hidden · W2 of tokens of GPU 1, 4 rows: 1 GFLOP. An event holds it until all-gather (line 7) is over. Before it on its stream: X · W1 (line 7).")
        self.assertIn("X · W1 of its own tokens, 4 rows: 1 GFLOP. It waits for nothing. A copy is under way for 26 µs of it, and slows it down.", texts)
        self.assertEqual(drawn["measured"], 110)

    def test_on_one_stream_the_order_is_what_is_waited_for(self):
        plan = said(*(dict(each, copies=False) for each in PIECES))["plans"][0]
        self.assertEqual([each["waits"] for each in ranks_page.document_of(plan, None)["ops"][2:4]], [[0], [1]])

    def test_what_the_heading_says(self):
        text = " ".join(ranks_page.facts(said(*PIECES), (8, 8, 128), 2))
        self.assertIn("its products are as fast as those of 8×8×128 on 2 H200s", text)
        self.assertIn("64 rows or fewer", text)
        self.assertNotIn("between two GPUs", text)
        self.assertIn("between two GPUs", " ".join(ranks_page.facts(said(*PIECES), (8, 8, 128), 4)))
        self.assertNotIn("64 rows", " ".join(ranks_page.facts(said(operation("first", 0, 9, rows=[0, 65])), (8, 8, 128), 2)))
        self.assertTrue(ranks_page.measured_of(said(), (8, 8, 128), 2))
        self.assertFalse(ranks_page.measured_of(said(), (8, 8, 256), 2))

    def test_what_nothing_orders(self):
        found = said(*PIECES, races=[[0, 2]])
        self.assertTrue(ranks_page.is_racing(found))
        self.assertFalse(ranks_page.is_racing(said(*PIECES)))
        drawn = ranks_page.document_of(found["plans"][0], None)["ops"]
        self.assertEqual([bool(each["race"]) for each in drawn], [True, True, False, False, True, True, False, False])
        self.assertEqual(drawn[4]["race"], "Nothing orders it and all-gather (line 7): one of them writes what the other one reads or writes.")
        self.assertIn("Red frames", " ".join(ranks_page.facts(found, (8, 8, 128), 2)))

    def test_amounts(self):
        self.assertEqual([ranks_page.amount(value, "B") for value in (0, 999, 1872, 16777216, 92341796864)], ["0 B", "999 B", "1.87 kB", "16.8 MB", "92.3 GB"])
        self.assertEqual([ranks_page.micros(value) for value in (0, 4e-6, 649.4e-6, 12.09e-3)], ["0.0 µs", "4.0 µs", "649 µs", "12,090 µs"])


@unittest.skipUnless(os.path.isdir(PROGRAMS), "needs COURSE_BUILD, the interpreter's")
class Recorded(unittest.TestCase):
    def record(self, *words, code=0):
        command = [os.path.join(PROGRAMS, "timeline"), os.path.join(cost.ROOT, ranks_page.RESULTS), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def test_the_measured_block(self):
        found = self.record(2, 4096, 4096, 11008)
        formula = self.record(4096)
        for plan, name in ((found["plans"][0], "plain"), (found["plans"][1], "overlapped")):
            self.assertAlmostEqual(plan["seconds"], formula[name][-1]["to"], delta=1e-9)
        page = ranks_page.page_of(found, (4096, 4096, 11008), 2)
        self.assertNotRegex(page, r"@[A-Z]+@")
        self.assertIn("<td>overlapped, 1 chunk</td><td>649 µs</td><td>679 µs</td>", page)

    def test_other_blocks(self):
        for words in ((3, 37, 72, 200), (8, 16384, 8192, 28672), (5, 1, 13, 8)):
            with self.subTest(words):
                found = self.record(*words)
                self.assertFalse(ranks_page.is_racing(found))
                self.assertEqual({len(plan["ranks"]) for plan in found["plans"]}, {words[0]})
                page = ranks_page.page_of(found, words[1:], words[0])
                self.assertNotIn("<th>measured</th>", page)

    def test_lines_are_those_of_the_page(self):
        with open(os.path.join(cost.ROOT, ranks_page.SOURCE), encoding="utf-8") as file:
            source = file.read().splitlines()
        calls = {"first": "multiply_in(", "second": "multiply_out(", "add": "add_parts_("}
        for plan in self.record(3, 37, 72, 200)["plans"]:
            for each in plan["ranks"][1]["operations"]:
                if each["work"] in calls:
                    self.assertIn(calls[each["work"]], source[each["line"] - 1])

    def test_what_is_no_block(self):
        self.assertIn("usage", self.record(2, 3, code=2))
        self.assertIn("no block of 5 tokens", self.record(5, code=2))


if __name__ == "__main__":
    unittest.main()
