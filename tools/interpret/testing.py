"""What the tests share: a folder of their own, and programs that the interpreter runs there."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("COURSE_BUILD")  # CMake's folder; without it only what needs no compiler is tested


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="interpret test.")
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def run_program(self, path, *arguments, options=(), typed=""):
        command = self.command(path, *arguments, options=options)
        return subprocess.run(command, capture_output=True, text=True, cwd=self.folder, input=typed)

    def command(self, path, *arguments, options=()):
        folders = ["--build", BUILD, "--cache", os.path.join(self.folder, "cache")]
        return [sys.executable, "-B", os.path.join(HERE, "interpret.py"), *folders, *options, "--", path, *arguments]

    def interpret(self, text, *arguments, options=(), name="x.cu", typed=""):
        return self.run_program(self.write(name, text), *arguments, options=options, typed=typed)
