"""Runs cases/mended.cu by cases.py: right cases pass, wrong ones are told where they should be. The other files there take a minute:
`tools/interpret/cases.py` runs all."""

import pathlib
import unittest

import cases
from testing import BUILD, Folder, HERE


class Judging(unittest.TestCase):
    CASE = cases.Case("3", False, {"racecheck"}, {"tile"}, {7}, "")

    def judge(self, output, code=1, case=CASE):
        return cases.judge(case, "x.cu", output, code)[:2]

    def test_wrong_case(self):
        self.assertEqual(self.judge("interpreter: racecheck: race on s: read at /a/x.cu:7, then"), ("told", "line"))
        self.assertEqual(self.judge("interpreter: racecheck: race on tile: read at /a/x.cu:8, then"), ("told", "variable"))
        self.assertEqual(self.judge("interpreter: racecheck: race on tiles: read at /a/x.cu:70, then"), ("told", "ELSEWHERE"))
        self.assertEqual(self.judge("right result", 0), ("silent", ""))
        self.assertEqual(self.judge("interpreter: note: at /a/x.cu:7", 0), ("silent", ""))
        self.assertEqual(self.judge("WRONG RESULT", 7), ("wrong result only", ""))
        thrown = self.CASE._replace(checks={"message"}, variables=set(), lines=set())
        self.assertEqual(self.judge("terminate called after throwing an instance of 'X'", -6, thrown), ("told", "unmarked"))

    def test_right_case(self):
        right = self.CASE._replace(right=True)
        self.assertEqual(self.judge("right result", 0, right), ("passes", ""))
        self.assertEqual(self.judge("interpreter: note: much", 0, right), ("passes", ""))
        self.assertEqual(self.judge("interpreter: racecheck: race on tile", 1, right), ("FALSE ALARM", ""))
        self.assertEqual(self.judge("WRONG RESULT", 7, right), ("FALSE ALARM", ""))


@unittest.skipUnless(BUILD, "needs a build")
class Cases(Folder):
    def test_mended(self):
        path = pathlib.Path(HERE) / "cases" / "mended.cu"
        found = list(cases.run(path, BUILD, self.folder))
        self.assertEqual(len(found), 24)
        for case, verdict in found:
            with self.subTest(f"{case.number}: {case.text}"):
                self.assertTrue(cases.is_good(case, verdict), verdict.report)


if __name__ == "__main__":
    unittest.main()
