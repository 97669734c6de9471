"""Tests of what is installed: all that pip installs is pinned, and docs/licences.md names everything."""

import glob
import os
import re
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from command import files
from command.machine import toolchain
from command.places import ROOT
from command.scripts import wheels

REQUIREMENT = re.compile(r"([a-z0-9-]+)==[0-9][0-9a-z.]*(?: ; python_version [<>]= \"3\.\d+\"(?: and python_version <= \"3\.\d+\")?)?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def requirements(name):
    """[[requirement, hash, ...], ...] of a file of pins."""
    text = files.text(toolchain.pins(name)).replace(" \\\n", "")
    return [re.split(r" {2,}", line) for line in text.splitlines() if not line.startswith("#")]


def pinned(name):
    return {REQUIREMENT.fullmatch(requirement)[1] for requirement, *_ in requirements(name)}


def debian():
    """The packages that the command, the container and the course's own checks install."""
    command, container, checks = (files.text(os.path.join(ROOT, name)) for name in ("tools/course", ".devcontainer/Dockerfile", ".ci/run"))
    words = [line.replace("\\\n", " ") for line in re.findall(r"^  all='([^']*)'", command, re.MULTILINE)]
    words += re.findall(r"apt-get install -y --no-install-recommends (.*)$", container, re.MULTILINE)
    words += re.findall(r"tools/course install ((?:[a-z0-9+-]+ ?)+)", container + checks)
    words += re.findall(r"for command in (.*); do", checks) + re.findall(r"missing\+?=\(([a-z0-9-]+)\)", checks)
    found = {name for line in words for name in line.split()}
    found.update(name for line in re.findall(r"--with ([a-z0-9,]+)", container) for name in line.split(","))
    for path in glob.glob(os.path.join(ROOT, "tools", "command", "**", "*.py"), recursive=True):
        if f"{os.sep}tests{os.sep}" not in path:
            calls = re.findall(r"(?:install|missing_commands|want_commands|missing\.append)\(\[?((?:\"[^\"]+\",? ?)+)\]?\)", files.text(path))
            found.update(re.findall(r'"([^"]+)"', " ".join(calls)))
    for compiler in ("g++", "clang++"):
        with mock.patch.object(toolchain.shutil, "which", lambda name: name in ("g++", "cmake") and f"/usr/bin/{name}"):
            found.add(toolchain.compiler_package(compiler))
        with mock.patch.object(toolchain, "find_compiler", lambda _: ""), mock.patch.object(toolchain.shutil, "which", lambda _: None):
            found.update(toolchain.missing_packages("interpreter", compiler, []))
    return found


class Pins(unittest.TestCase):
    def test_every_file_has_a_hash(self):
        self.assertEqual(sorted(wheels.WANTED), sorted(name[: -len(".txt")] for name in os.listdir(toolchain.PINS)))
        for name, wanted in wheels.WANTED.items():
            with self.subTest(name):
                for requirement, *hashes in requirements(name):
                    self.assertRegex(requirement, f"^{REQUIREMENT.pattern}$")
                    self.assertTrue(hashes and all(map(HASH.fullmatch, hashes)), requirement)
                self.assertLessEqual({re.match(r"[a-z-]+", each)[0] for each in wanted}, pinned(name))

    def test_they_are_what_pip_is_given(self):
        log = []
        progress = mock.Mock(run=lambda words: log.append(words))
        toolchain.make_venv(progress, "/nowhere", ["cmake", "headers"])
        (words,) = log[1:]
        self.assertIn("--require-hashes", words)
        self.assertEqual(words[-4:], ["--requirement", toolchain.pins("cmake"), "--requirement", toolchain.pins("headers")])

    def test_how_they_are_written(self):
        found = {python: {"a": ("1", ["x", "xx"]), "b": ("2" if python == "3.9" else "3", [f"y{python}"])} for python in wheels.PYTHONS}
        found["3.10"]["c"] = ("4", ["z"])
        head, *lines = wheels.pinned(found).replace(" \\\n   ", "").splitlines()
        self.assertTrue(head.startswith("#"))
        newer = "".join(f" --hash=sha256:y{python}" for python in wheels.PYTHONS[1:])
        self.assertEqual(
            lines,
            [
                "a==1 --hash=sha256:x --hash=sha256:xx",
                'b==2 ; python_version <= "3.9" --hash=sha256:y3.9',
                f'b==3 ; python_version >= "3.10"{newer}',
                'c==4 ; python_version >= "3.10" and python_version <= "3.10" --hash=sha256:z',
            ],
        )


class Licences(unittest.TestCase):
    def test_the_page_names_all_that_is_installed_and_nothing_else(self):
        installed = debian().union(*map(pinned, wheels.WANTED))
        self.assertGreater(len(installed), 40)
        page = files.text(os.path.join(ROOT, "docs", "licences.md"))
        rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) + re.findall(r"`libjs-mathjax`", page)
        named = set(re.findall(r"`([^`]+)`", " ".join(rows)) + ["libjs-mathjax"])
        self.assertEqual(sorted(installed - named), [], "installed, and not in docs/licences.md")
        self.assertEqual(sorted(named - installed), [], "in docs/licences.md, and not installed")


if __name__ == "__main__":
    unittest.main()
