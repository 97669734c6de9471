"""A user's program: its file and the headers of his own that it includes, rewritten so that g++ compiles them."""

import hashlib
import os
import re

import inline_ptx
import refusals
from rewrite import DEVICE, HOST, File, launches
from structure import marking_macros, matching
from tokens import tokens

_INCLUDE = re.compile(r'[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')


class NotText(Exception):
    """A file, by its path, that no compiler can read."""


class NotRead(OSError):
    """A file that cannot be read, as it names itself."""


class Program:
    def __init__(self, path, include_folders, own_root, shown_path=None):
        """`own_root`: the course's checkout, whose headers are C++ already."""
        self.path = path
        self.include_folders = include_folders
        self.own_root = os.path.realpath(own_root)
        self.files = {}  # by real path: (File, name for messages); in the order in which they are found
        self.libraries = []  # that are included and stay out, see refusals.library()
        self.linked_refusals = []  # of what has become calls of course_refusal_N, N by the index here: refused if the linker needs it
        self.has_openmp = False  # whether it includes OpenMP's header
        self.has_later = False  # whether what was written has asm statements that only the preprocessor knows
        self.missing = set()  # paths where a header was looked for before it was found, or not
        self._written = {}  # by the name of the view: the copies' names and texts
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
            raise NotRead(error.errno, error.strerror, path) from None
        if "\0" in text:
            raise NotText(path)
        file = File(text)
        self.files[real] = (file, shown)
        for token in file.tokens:
            if token.kind == "directive" and (match := _INCLUDE.match(token.text)):
                header = self._find(match[1] or match[2], match[1] is not None, path)
                self.has_openmp |= header is None and (match[1] or match[2]) == "omp.h"
                if header:
                    self._read(header, header)
                elif (library := refusals.library(match[1] or match[2])) and library not in self.libraries:
                    self.libraries.append(library)

    def _find(self, name, is_quoted, includer):
        """A header of the user's own; those of the system, of CUDA and of the course are none."""
        for folder in ([os.path.dirname(includer)] if is_quoted else []) + self.include_folders:
            path = os.path.join(folder, name) if folder else name
            if not os.path.isfile(path):
                self.missing.add(path)
            else:
                real = os.path.realpath(path)
                is_ours = any(real.startswith(os.path.join(self.own_root, part) + os.sep) for part in ("common", "steps"))
                return None if is_ours else path
        return None

    def refusals(self):
        found = []
        files = [(shown, file) for file, shown in self.files.values()]
        own = {name for _, file in files for name, _, _ in file.definitions()} | {f.name for _, file in files for f in file.functions}
        macros = refusals.in_macros(files, self.libraries, own)
        for file, shown in self.files.values():
            found += refusals.in_file(shown, file, launches(file.visible, file.partner), self.libraries, macros, own)
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
        name = next(name for name, each in self.views.items() if each is view)
        if name not in self._written:
            self._written[name] = self._rewritten(view)
        for copy, text in self._written[name].items():
            write_text(os.path.join(folder, copy), text)
        return os.path.join(folder, next(iter(self._written[name])))

    def _rewritten(self, view):
        """The text of each copy by its name, the program's own one first. They lie beside each other, so they include each other by their names."""
        copies = {real: f"{number}_{os.path.basename(real)}" for number, real in enumerate(self.files)}
        texts = {}
        for real, (seen, shown) in self.files.items():
            text = seen.without_kernels() if view is HOST else seen.text
            file = seen.seen_by(view) if text == seen.text else File(text, view, seen.marks)
            path = self.path if real == os.path.realpath(self.path) else shown

            def copy_of(name, is_quoted, includer=path):
                header = self._find(name, is_quoted, includer)
                if header:
                    return copies[os.path.realpath(header)]
                return f"{self.own_root}/common/interpreter/cuda_runtime/left_out.h" if refusals.is_left_out(name) else None

            file.rewrite(copy_of, lambda line, feature, shown=shown: self._refuse(shown, line, feature))
            is_program = real == os.path.realpath(self.path)
            last_lines = file.known_kernels() if is_program else ""
            if is_program and view is HOST:
                last_lines += '\nextern "C" const bool course_has_two_views = true;\n'
            # A copy that is included twice is the same file, and so is what it stands for.
            text = file.result(shown, last_lines)
            self.has_later |= inline_ptx.LATER in text
            texts[copies[real]] = text
        return texts

    def _refuse(self, shown, line, feature):
        """C++ that the linker finds if the program has it, once optimised."""
        name = f"course_refusal_{len(self.linked_refusals)}"
        self.linked_refusals.append(refusals.Refusal(shown, line, feature, "docs/interpret.md lists what it has."))
        return f"do {{ extern void {name}(); {name}(); }} while (0)"

    def write_expanded(self, path, text):
        """Writes `text`, the preprocessor's output, to `path`, with the asm statements that had to wait for it."""
        parts, at = [], 0
        for match in re.finditer(rf"\b{inline_ptx.LATER}\b", text):
            shown, line = _place(text, match.start())
            parts.append(text[at : match.start()])
            new, at = self._expanded_asm(text, match.start(), shown, line)
            parts.append(new)
        write_text(path, "".join(parts) + text[at:])

    def _expanded_asm(self, text, begin, shown, line):
        """What stands for the asm statement that begins there, and where it ends."""
        file = next((file for file, name in self.files.values() if name == shown), None)
        end = None
        for characters in _LENGTHS:
            if end is None:
                visible = [t for t in tokens(text[begin : begin + characters]) if t.is_seen]
                partner = matching(visible)
                end = inline_ptx.find(visible, partner, 0)
        if end is None or (file and file.is_device_code(file.lines.first_token(line)) is False):
            return "asm", begin + len(inline_ptx.LATER)
        try:
            new = inline_ptx.translate(visible, partner, 0, lambda first, last: " ".join(t.text for t in visible[first : last + 1]))
        except inline_ptx.NotHere as instruction:
            new = self._refuse(shown, line, f"inline PTX {instruction}")
        end = begin + visible[end].end
        # What follows stays in its line.
        return new + "".join(line if line.startswith("\n# ") else "\n" for line in re.findall(r"\n(?:# [^\n]*)?", text[begin:end])), end


_LENGTHS = (1_000, 10_000, 100_000)  # of asm statements in characters: most are short, one of 128 operands is not


def _place(text, offset):
    """File and line, by the preprocessor's markers."""
    marker = text.rfind("\n# ", 0, offset)
    while not (match := _MARKER.match(text, marker + 1)):
        marker = text.rfind("\n# ", 0, marker)
    return match[2].replace('\\"', '"').replace("\\\\", "\\"), int(match[1]) + text.count("\n", match.end() + 1, offset)


_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"[^\n]*')


def write_text(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
