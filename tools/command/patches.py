"""Patches that tests apply to the course's own files: 'git diff', with fields above it that say what is to come of it.

Hunks are looked for by their text, wherever it stands, so a patch fits as long as what it changes is there once.
"""

import re


class BadPatch(Exception):
    """It does not fit; the message says where."""


def parse(text, names):
    """(fields, hunks): the (name, value) of lines 'NAME: VALUE' above the diff, NAME one of NAMES; and, by file, [old, new] texts."""
    fields, hunks, file = [], {}, None
    for line in text.splitlines():
        if line.startswith("+++ b/"):
            file = line[len("+++ b/") :]
            hunks[file] = []
        elif line.startswith("@@") and file:
            hunks[file].append(["", ""])
        elif file and line[:1] in (" ", "-", "+", "") and not line.startswith("--- "):
            for side, mark in enumerate("+-"):
                if line[:1] != mark:
                    hunks[file][-1][side] += line[1:] + "\n"
        elif not file and re.match(rf"({'|'.join(names)}): ", line):
            fields.append(tuple(line.split(": ", 1)))
    return fields, hunks


def applied(text, hunks, name, file):
    """TEXT of FILE with HUNKS, which are patch NAME's."""
    for old, new in hunks:
        if text.count(old) != 1:
            raise BadPatch(f"{name}: {file} has these lines {text.count(old)} times, not once:\n{old}")
        text = text.replace(old, new)
    return text
