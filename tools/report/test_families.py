"""Tests of the table of several processes."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report import families

HEADER = "m,n,k,layout,call,cublasGemmEx,cublasLt\n"


class Families(unittest.TestCase):
    def run_with(self, *texts):
        out, err = io.StringIO(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            paths = []
            for i, text in enumerate(texts):
                paths.append(os.path.join(folder, f"{i}.csv"))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text)
            return families.main(paths), out.getvalue(), err.getvalue()

    def test_medians_and_the_share_within_a_process(self):
        rows = [f"{HEADER}8,16,32,nn,{times}\n" for times in ("2,4,3", "2,5,3", "4,5,9")]
        code, out, _ = self.run_with(*rows)
        self.assertEqual(code, 0)
        self.assertEqual(out.splitlines()[1], "8,16,32,nn,2,5,3,2,1.25,2.5")

    def test_what_is_refused(self):
        row = f"{HEADER}8,16,32,nn,2,4,3\n"
        for texts, said in (
            ((row, f"{HEADER}8,16,32,nt,2,4,3\n"), "different problems"),
            ((row, HEADER), "different problems"),
            ((row, "m,n,k,layout,one\n8,16,32,nn,2\n"), "no files of"),
            ((row,), "Usage"),
        ):
            code, out, err = self.run_with(*texts)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(said, err)


if __name__ == "__main__":
    unittest.main()
