"""Tests of what steps and exercises need of a GPU, with stand-ins for the GPUs."""

import contextlib
import io
import os
import re
import types
import unittest
from unittest import mock

from command.cli import steps
from command.exercises import checking
from command.exercises.exercise import all_exercises
from command.machine import gpu, needs
from command.messages import Refused
from command.subcommands import profile as profile_command

T4, A100, RTX_4090, H200 = ("Tesla T4", 75), ("NVIDIA A100", 80), ("NVIDIA GeForce RTX 4090", 89), ("NVIDIA H200", 90)
B200, RTX_5090 = ("NVIDIA B200", 100), ("NVIDIA GeForce RTX 5090", 120)
DECLARED = {
    "01_naive": needs.Needs(75, False, ""),
    "03_tensor_core": needs.Needs(80, False, "mma.sync"),
    "09_tma": needs.Needs(90, False, "TMA"),
    "10_wgmma": needs.Needs(90, True, "wgmma"),
}


class WithGpus(unittest.TestCase):
    """Of a machine that has some, and of a course with four steps."""

    def setUp(self):
        self.patch("command.machine.needs.declared", return_value=DECLARED)
        self.patch("command.machine.gpu.has_gpu", return_value=True)
        self.patch("command.machine.gpu.reason_against", return_value="")
        self.patch_environment()

    def patch_environment(self, **variables):
        kept = {name: value for name, value in os.environ.items() if name != "COURSE_GPU_ARCHITECTURES"}
        patcher = mock.patch.dict(os.environ, {**kept, **variables}, clear=True)
        patcher.start()
        self.addCleanup(patcher.stop)

    def patch(self, name, **behaviour):
        patcher = mock.patch(name, **behaviour)
        patcher.start()
        self.addCleanup(patcher.stop)

    def have(self, *gpus):
        self.patch("command.machine.gpu.capabilities", return_value=list(gpus))

    def available(self, *gpus, backend="gpu", are_named=False):
        """What can run on GPUS; said is kept."""
        self.have(*gpus)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            kept, reasons = needs.available("steps", list(DECLARED), backend, are_named)
        self.said = said.getvalue()
        self.assertEqual(sorted([*kept, *reasons]), sorted(DECLARED))
        return kept


class Steps(WithGpus):
    def test_which_can_run(self):
        every = list(DECLARED)
        for machine, expected in (
            (T4, every[:1]),
            (A100, every[:2]),
            (RTX_4090, every[:2]),
            (H200, every),
            (B200, every[:3]),
            (RTX_5090, every[:3]),
        ):
            with self.subTest(machine):
                self.assertEqual(self.available(machine), expected)
                self.assertEqual(self.said.count("is unavailable"), len(every) - len(expected))

    def test_on_the_interpreter_all_can(self):
        self.assertEqual(self.available(T4, backend="interpreter", are_named=True), list(DECLARED))

    def test_where_nobody_says_what_the_gpu_has_the_program_does(self):
        self.assertEqual(self.available(), list(DECLARED))

    def test_the_reason(self):
        # The step's own program says the same: common/harness/program/availability_test.cpp.
        self.have(A100)
        with self.assertRaisesRegex(
            Refused,
            r"^10_wgmma needs compute capability 9\.0, no other: wgmma\. This GPU, NVIDIA A100, has 8\.0\. Run it on the interp",
        ):
            needs.available("steps", ["01_naive", "10_wgmma"], "gpu", True)
        self.available(T4)
        said = "course: 03_tensor_core is unavailable: needs compute capability 8.0 or higher: mma.sync. This GPU, Tesla T4, "
        self.assertIn(said, self.said)

    def test_one_of_several_gpus_will_do(self):
        self.assertEqual(self.available(T4, H200), list(DECLARED))
        self.available(T4, A100)
        self.assertIn("No GPU here has it: Tesla T4, has 7.5; NVIDIA A100, has 8.0.", self.said)

    def test_a_build_for_other_architectures(self):
        self.patch_environment(COURSE_GPU_ARCHITECTURES="80-real;90-real")
        self.assertEqual(self.available(H200), ["01_naive", "03_tensor_core", "09_tma"])
        self.assertIn("COURSE_GPU_ARCHITECTURES=80-real;90-real has no such GPU", self.said)
        self.patch_environment(COURSE_GPU_ARCHITECTURES="native")
        self.assertEqual(self.available(H200), list(DECLARED))

    def test_none_is_left(self):
        self.have(T4)
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaisesRegex(Refused, "none of these can run on the GPU here"):
            needs.available("steps", ["09_tma", "10_wgmma"], "gpu", False)

    def test_tuning_goes_to_the_interpreter(self):
        self.have(T4)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(needs.choose_backend_for("03_tensor_core", None), "interpreter")
        self.assertIn("has 7.5; using the interpreter.", said.getvalue())
        with self.assertRaisesRegex(Refused, "^--on gpu: 03_tensor_core needs compute capability 8.0 or higher"):
            needs.choose_backend_for("03_tensor_core", "gpu")
        self.assertEqual(needs.choose_backend_for("01_naive", None), "gpu")

    def test_a_profile_is_not_measured(self):
        self.have(A100)
        self.patch("command.profiling.ncu.find", return_value="ncu")
        for step, expected in (("10_wgmma", "10_wgmma needs compute capability 9.0, no other"), ("01_naive", "")):
            subject = types.SimpleNamespace(declared=("steps", step))
            self.assertRegex(profile_command.reason_against_measuring(None, subject), f"^{expected}" + ("" if expected else "$"))


class Exercises(WithGpus):
    def test_which_can_be_checked(self):
        exercises = [types.SimpleNamespace(name=name) for name in DECLARED]
        self.have(T4)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(checking.able(exercises, "gpu", False), exercises[:1])
        self.assertEqual(checking.able(exercises, "interpreter", True), exercises)
        with self.assertRaisesRegex(Refused, "^03_tensor_core needs compute capability 8.0"):
            checking.able(exercises, "gpu", True)


class Declarations(unittest.TestCase):
    """Of this course."""

    def test_every_step_and_exercise_says_what_it_needs(self):
        with open(os.path.join(needs.ROOT, "steps", "CMakeLists.txt"), encoding="utf-8") as file:
            calls = re.findall(r"^ *course_step\((\w+)", file.read(), re.MULTILINE)
        self.assertEqual(list(needs.declared("steps")), calls)
        self.assertLessEqual({"01_naive", "07_fused_leaky_relu"}, set(calls))
        self.assertEqual(sorted(needs.declared("exercises")), [each.name for each in all_exercises()])
        self.assertEqual(needs.declared("nowhere"), {})

    def test_the_first_two_steps_run_on_turing(self):
        able = [step for step in steps.all_steps() if step in needs.declared("steps") and needs.declared("steps")[step].met_by(75)]
        self.assertEqual(able, ["01_naive", "02_tiled"])
        self.assertEqual(min(each.least for each in needs.declared("steps").values()), gpu.OLDEST)

    def test_the_page_says_the_same(self):
        with open(os.path.join(needs.ROOT, "docs", "platforms.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| (\d\d)(?:–(\d\d))? \| (\d+)\.(\d)( or higher| only) \|", file.read(), re.MULTILINE)
        said = {
            f"{number:02}": (10 * int(major) + int(minor), kind == " only")
            for first, last, major, minor, kind in rows
            for number in range(int(first), int(last or first) + 1)
        }
        self.assertEqual(said, {step[:2]: (each.least, each.only) for step, each in needs.declared("steps").items()})

    def test_tuned_steps(self):
        self.assertEqual(steps.tuned_steps()[:1], ["06_autotune"])


class Capabilities(unittest.TestCase):
    def capabilities(self, said):
        gpu.capabilities.cache_clear()
        self.addCleanup(gpu.capabilities.cache_clear)
        with mock.patch("command.machine.processes.ask", return_value=(0, said)):
            return gpu.capabilities()

    def test_what_nvidia_smi_says(self):
        self.assertEqual(self.capabilities("NVIDIA H200, 9.0\nTesla T4, 7.5\n"), [H200, T4])
        self.assertEqual(self.capabilities("NVIDIA GeForce RTX 5090, 12.0\n"), [RTX_5090])
        for nothing in ("", "Field \"compute_cap\" is not a valid field to query.\n", "NVIDIA H200, [N/A]\n"):
            self.assertEqual(self.capabilities(nothing), [])

    def test_too_old_for_the_course(self):
        for found, expected in ((("Tesla V100", 70), "Tesla V100, is too old: the course needs compute capability 7.5"), (T4, "^$")):
            with mock.patch.multiple(
                "command.machine.gpu",
                has_gpu=lambda: True,
                find_nvcc=lambda: "nvcc",
                find_toolkit_headers=lambda: "include",
                capabilities=lambda found=found: [found],
            ):
                self.assertRegex(gpu.reason_against(), expected)


if __name__ == "__main__":
    unittest.main()
