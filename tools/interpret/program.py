"""A user's program: its file and the headers of his own that it includes, rewritten so that g++ compiles them."""

import hashlib
import os
import re

import refusals
from rewrite import DEVICE, HOST, File, launches
from structure import marking_macros

_INCLUDE = re.compile(r'[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')


class NotText(Exception):
    """A file, by its path, that no compiler can read."""


class Program:
    def __init__(self, path, include_folders, own_root, shown_path=None):
        """`own_root`: the course's checkout, whose headers are C++ already."""
        self.path = path
        self.include_folders = include_folders
        self.own_root = os.path.realpath(own_root)
        self.files = {}  # by real path: (File, name for messages); in the order in which they are found
        self._read(path, shown_path or path)
        marks = marking_macros((name, body) for file, _ in self.files.values() for name, body, _ in file.definitions())
        for file, _ in self.files.values() if marks else ():
            file.mark(marks)
        self.views = {"program": DEVICE}  # by the name of what each is compiled to
        if any(file.differs_between_views() for file, _ in self.files.values()):
            self.views = {"host": HOST, "device": DEVICE}

    def _read(self, path, shown):
        real = os.path.realpath(path)
        if real in self.files:
            return
        try:
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
                text = stream.read().replace("\r\n", "\n").removeprefix("\ufeff")  # which some editors put in front
        except OSError as error:  # where only the reading fails, it names no file
            raise OSError(error.errno, error.strerror, path) from None
        if "\0" in text:
            raise NotText(path)
        file = File(text)
        self.files[real] = (file, shown)
        for token in file.tokens:
            if token.kind == "directive" and (match := _INCLUDE.match(token.text)):
                header = self._find(match[1] or match[2], match[1] is not None, path)
                if header:
                    self._read(header, header)

    def _find(self, name, is_quoted, includer):
        """A header of the user's own; those of the system, of CUDA and of the course are none."""
        for folder in ([os.path.dirname(includer)] if is_quoted else []) + self.include_folders:
            path = os.path.join(folder, name) if folder else name
            if os.path.isfile(path):
                real = os.path.realpath(path)
                is_ours = any(real.startswith(os.path.join(self.own_root, part) + os.sep) for part in ("common", "steps"))
                return None if is_ours else path
        return None

    def refusals(self):
        found = []
        ptx_macros = refusals.macros_with_ptx((shown, file) for file, shown in self.files.values())
        for file, shown in self.files.values():
            found += refusals.in_file(shown, file, launches(file.visible, file.partner), ptx_macros)
        return found

    def hash(self, *more):
        """Of all that the compiled program is made of, `more` included."""
        digest = hashlib.sha256()
        for real, (file, shown) in self.files.items():
            digest.update(f"{real}\0{shown}\0{len(file.text)}\0".encode(errors="surrogateescape"))
            digest.update(file.text.encode(errors="surrogateescape"))
        for item in more:
            digest.update(f"\0{item}".encode(errors="surrogateescape"))
        return digest.hexdigest()[:32]

    def write(self, folder, view=DEVICE):
        """Writes the files into `folder`, rewritten for one of the views. Returns the path of the program's own one."""
        copies = {real: os.path.join(folder, f"{number}_{os.path.basename(real)}") for number, real in enumerate(self.files)}
        for real, (seen, shown) in self.files.items():
            file = File(seen.without_kernels() if view is HOST else seen.text, view, seen.marks)
            path = self.path if real == os.path.realpath(self.path) else shown

            def copy_of(name, is_quoted, includer=path):
                header = self._find(name, is_quoted, includer)
                return copies[os.path.realpath(header)] if header else None

            file.rewrite(copy_of)
            is_program = real == os.path.realpath(self.path)
            last_lines = file.known_kernels() if is_program else ""
            if is_program and view is HOST:
                last_lines += '\nextern "C" const bool course_has_two_views = true;\n'
            with open(copies[real], "w", encoding="utf-8", errors="surrogateescape") as stream:
                # A copy that is included twice is the same file, and so is what it stands for.
                stream.write(file.result(shown, last_lines))
        return copies[os.path.realpath(self.path)]
