"""What the learner has done. It lies with the exercises, not in build/: it survives a rebuild, and moves with the folder."""

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import shutil

from ..messages import Refused, say
from ..places import ROOT
from .exercise import EXERCISES, all_exercises, read

FILE = os.path.join(EXERCISES, "progress.json")


class Progress:
    """exercises/progress.json: for each exercise that was begun, when it passed and with which text, and how many hints were shown."""

    def __init__(self):
        self.done = {}
        try:
            with open(FILE, encoding="utf-8") as file:
                done = json.load(file)["exercises"]
            self.done = {name: dict(each) for name, each in done.items()}
            if not all(each.get("hints", 0) >= 0 for each in self.done.values()):
                raise ValueError
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            aside = dated(FILE)
            with contextlib.suppress(OSError):
                os.replace(FILE, aside)
            kept = f"it is {os.path.relpath(aside, ROOT)} now" if os.path.exists(aside) else "it cannot be moved aside"
            say(f"exercises/progress.json was damaged: {kept}, and progress begins anew.")
        except OSError as error:
            raise Refused(f"cannot read exercises/progress.json: {error.strerror}.") from None

    def of(self, exercise):
        return self.done.get(exercise.name, {})

    def has_passed(self, exercise):
        return "passed" in self.of(exercise)

    def has_changed_since(self, exercise):
        """Whether the file that passed is another one now."""
        return self.has_passed(exercise) and self.of(exercise).get("text") != fingerprint(exercise)

    def state(self, exercise):
        if not os.access(exercise.file, os.R_OK):
            return "passed, its file is gone" if self.has_passed(exercise) else "its file is gone"
        if self.has_passed(exercise):
            return "passed, changed since" if self.has_changed_since(exercise) else f"passed {self.of(exercise)['passed']}"
        return "not begun" if exercise.is_untouched() else "begun"

    def next(self):
        """The first that has not passed, or None."""
        return next((each for each in all_exercises() if not self.has_passed(each)), None)

    def count(self):
        return sum(map(self.has_passed, all_exercises()))


def change(exercise, **fields):
    """Writes FIELDS of EXERCISE; None takes one away. Other commands may do so at the same time."""
    with locked():
        progress = Progress()
        entry = {**progress.of(exercise), **fields}
        progress.done[exercise.name] = {key: value for key, value in entry.items() if value is not None}
        if not progress.done[exercise.name]:
            del progress.done[exercise.name]
        temporary = FILE + ".new"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump({"exercises": progress.done}, file, indent=1, sort_keys=True)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, FILE)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise Refused(f"cannot write exercises/progress.json: {error.strerror}.") from None


def try_to_change(exercise, **fields):
    """As change(); where it cannot be written, says so. Returns whether it was."""
    try:
        change(exercise, **fields)
    except Refused as reason:
        say(f"{reason} So this is not remembered.")
        return False
    return True


@contextlib.contextmanager
def locked():
    try:
        folder = os.open(EXERCISES, os.O_RDONLY)
    except OSError as error:
        raise Refused(f"cannot read the folder exercises: {error.strerror}.") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def remember_pass(exercise):
    try_to_change(exercise, passed=datetime.date.today().isoformat(), text=fingerprint(exercise))


def forget(exercise):
    change(exercise, passed=None, text=None, hints=None, gave_up=None)


def fingerprint(exercise):
    return hashlib.sha256(read(exercise.file).encode()).hexdigest()[:16]


def dated(path):
    """A name for a backup beside PATH that nobody has yet."""
    stem, extension = os.path.splitext(path)
    name = f"{stem}-{datetime.datetime.now():%Y-%m-%d-%H%M%S}"
    count, result = 1, name + extension
    while os.path.exists(result):
        count += 1
        result = f"{name}-{count}{extension}"
    return result


def back_up(path):
    """A dated copy of PATH beside it. Returns its path."""
    copy = dated(path)
    try:
        shutil.copy2(path, copy)
    except OSError as error:
        raise Refused(f"cannot keep a copy, {os.path.relpath(copy, ROOT)}: {error.strerror}. Nothing was changed.") from None
    return copy
