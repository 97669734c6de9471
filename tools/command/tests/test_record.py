"""Tests of recording what ncu measures, with a stand-in for ncu."""

import contextlib
import csv
import io
import os
import re
import stat
import tempfile
import unittest
from unittest import mock

from command.places import ROOT
from command.profiling import ncu
from command.scripts import record

# Prints FOLDER/raw.csv after what the program printed; complains of a metric that FOLDER/unknown names; fails where 'fails' is asked for.
FAKE = """#!/bin/sh
echo "$*" >>"{folder}/calls"
case "$*" in
  *fails*) echo "==ERROR== The application returned an error code (1)."; exit 1 ;;
esac
unknown=$(cat "{folder}/unknown")
case "$*" in
  *"${{unknown:-none of these}}"*) echo "==ERROR== Failed to find metric $unknown"; exit 1 ;;
esac
echo "==PROF== Connected"
echo "profiled: 128x64x32-f16"
cat "{folder}/raw.csv"
"""
LOADS = ncu.METRICS.index(ncu.LOADS)


class Recording(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.out = os.path.join(self.folder, "out")
        tool = self.write("ncu", FAKE.format(folder=self.folder))
        os.chmod(tool, stat.S_IRWXU)
        self.write("unknown", "")
        self.write_table([("add_kernel(int)", 5), ("gemm_kernel(int)", 90), ("gemm_kernel(int)", 90)])
        patch = mock.patch.object(ncu, "find", return_value=tool)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def write_table(self, launches, last="1"):
        text = io.StringIO()
        rows = csv.writer(text, quoting=csv.QUOTE_ALL)
        rows.writerow(["ID", "Kernel Name", *ncu.METRICS])
        rows.writerow(["", "", *["byte"] * len(ncu.METRICS)])
        for index, (kernel, loads) in enumerate(launches):
            values = ["1"] * (len(ncu.METRICS) - 1) + [last]
            values[LOADS] = str(loads)
            rows.writerow([index, kernel, *values])
        self.write("raw.csv", text.getvalue() + "passed word\n")

    def record(self, *words):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = record.main([self.out, *words])
        return code, said.getvalue()

    def test_of_a_solution_the_first_launch_of_the_kernel_that_loads_most(self):
        code, said = self.record("solutions/19_long_k")
        self.assertEqual(code, 0, said)
        ((kernel, counted),) = ncu.rows(os.path.join(self.out, "solution_19_long_k-128x64x32-f16.csv"))
        self.assertEqual((kernel, counted[ncu.LOADS]), ("gemm_kernel(int)", 90))
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
            answer = re.escape(os.path.join(ROOT, "solutions/19_long_k/gemm.cuh"))
            self.assertRegex(file.read(), rf"--profile-from-start off .*/solution_19_long_k {answer} word largest\n")

    def test_of_a_step_one_launch_in_the_shape_that_is_asked_for(self):
        self.write_table([("gemm_kernel(int)", 7)])
        _, kernel, words = record.subject("steps/03_tensor_core", "4096x4096x4096")
        self.assertEqual(words[1:], ["--once", "--first", "--shape", "4096x4096x4096", "--dtype", "f16"])
        self.assertIn("--launch-count", record.command("ncu", kernel, words))
        self.assertEqual(record.subject("steps/01_naive/", None)[0], "01_naive-256x256x256-f32")

    def test_one_that_fails_does_not_stop_the_others(self):
        code, said = self.record("solutions/fails", "solutions/19_long_k")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"solutions/fails: NOT MEASURED [^\n]*\n==ERROR== The application returned")
        self.assertEqual(os.listdir(self.out), ["solution_19_long_k-128x64x32-f16.csv"])

    def test_a_metric_that_this_ncu_lacks_is_left_empty(self):
        self.write("unknown", ncu.METRICS[-1])
        self.write_table([("gemm_kernel(int)", 7)], last="n/a")
        code, said = self.record("solutions/19_long_k")
        self.assertEqual(code, 0, said)
        self.assertIn("does not have " + ncu.METRICS[-1], said)
        ((_, counted),) = ncu.rows(os.path.join(self.out, "solution_19_long_k-128x64x32-f16.csv"))
        self.assertNotIn(ncu.METRICS[-1], counted)

    def test_no_launch(self):
        self.write_table([])
        code, said = self.record("solutions/19_long_k")
        self.assertEqual(code, 1)
        self.assertIn("ncu saw no launch", said)


if __name__ == "__main__":
    unittest.main()
