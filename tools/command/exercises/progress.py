"""What the learner has done. It lies in exercises/my/, not in build/: it survives a rebuild, and moves with the folder."""

import contextlib
import datetime
import fcntl
import glob
import hashlib
import json
import os
import shutil

from ..machine import processes
from ..messages import Refused, say
from ..places import ROOT
from .exercise import EXERCISES, MERGED, all_exercises, mine, read

FILE = os.path.join(mine(), "progress.json")


class Progress:
    """exercises/my/progress.json: for each exercise that was begun, with which stub, when it passed and with which text, and how many hints
    were shown."""

    def __init__(self):
        self.done = {}
        try:
            with open(FILE, encoding="utf-8") as file:
                self.done = entries(file)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except DAMAGED:
            aside = dated(FILE)
            with contextlib.suppress(OSError):
                os.replace(FILE, aside)
            kept = f"it is {os.path.relpath(aside, ROOT)} now" if os.path.exists(aside) else "it cannot be moved aside"
            say(f"exercises/my/progress.json was damaged: {kept}, and progress begins anew.")
        except OSError as error:
            raise Refused(f"cannot read exercises/my/progress.json: {error.strerror}.") from None

    def of(self, exercise):
        return self.done.get(exercise.name, {})

    def has_passed(self, exercise):
        return "passed" in self.of(exercise)

    def has_changed_since(self, exercise):
        """Whether the file that passed is another one now."""
        return self.has_passed(exercise) and self.of(exercise).get("text") != fingerprint(exercise.file)

    def is_untouched(self, exercise):
        """Whether the learner's file is as it came."""
        return exercise.is_there() and fingerprint(exercise.file) == self.of(exercise).get("stub", fingerprint(exercise.stub))

    def is_of_another_stub(self, exercise):
        """Whether the course's file is another one than the learner began with."""
        return self.of(exercise).get("stub", fingerprint(exercise.stub)) != fingerprint(exercise.stub)

    def state(self, exercise):
        if not os.access(exercise.file, os.R_OK):
            if not self.has_passed(exercise):
                return "not begun"
            return "passed, its file is gone" if "text" in self.of(exercise) else f"passed {self.of(exercise)['passed']}, before it was merged"
        if self.has_passed(exercise):
            return "passed, changed since" if self.has_changed_since(exercise) else f"passed {self.of(exercise)['passed']}"
        return "not begun" if self.is_untouched(exercise) else "begun"

    def next(self):
        """The first that has not passed, or None."""
        return next((each for each in all_exercises() if not self.has_passed(each)), None)

    def count(self):
        return sum(map(self.has_passed, all_exercises()))


DAMAGED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def entries(file):
    """What a progress file says; one of DAMAGED where it is none."""
    found = {name: dict(each) for name, each in json.load(file)["exercises"].items()}
    if not all(each.get("hints", 0) >= 0 for each in found.values()):
        raise ValueError
    for new in set(MERGED.values()).difference(found):
        parts = [found.get(old, {}) for old in MERGED if MERGED[old] == new]
        if all("passed" in part for part in parts):
            found[new] = {"passed": max(part["passed"] for part in parts)}
    return found


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
            os.makedirs(mine(), exist_ok=True)
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump({"exercises": progress.done}, file, indent=1, sort_keys=True)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, FILE)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise Refused(f"cannot write exercises/my/progress.json: {error.strerror}.") from None


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
    try_to_change(exercise, passed=datetime.date.today().isoformat(), text=fingerprint(exercise.file))


def forget(exercise):
    change(exercise, passed=None, text=None, hints=None, gave_up=None, stub=fingerprint(exercise.stub))


def fingerprint(path):
    return fingerprint_of(read(path))


def fingerprint_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- the learner's files ---


def from_git(exercise):
    """The stub as git has it; None where git does not know it."""
    code, text = processes.ask(["git", "-C", os.path.dirname(exercise.stub), "show", "HEAD:./gemm.cuh"])
    return text if code == 0 else None


def copy(exercise):
    """The stub becomes the learner's file; all of it, or that is as it was."""
    temporary = f"{exercise.file}.{os.getpid()}"  # another command may do the same
    try:
        os.makedirs(os.path.dirname(exercise.file), exist_ok=True)
        shutil.copyfile(exercise.stub, temporary)
        os.replace(temporary, exercise.file)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise Refused(f"cannot write {exercise.shown_file}: {error.strerror}.") from None


def begin(exercise):
    """Makes the learner's file if there is none: at a command's beginning, for an editor that saves takes it away for a moment. What
    somebody has edited in the course's own file goes into it. That one stays as it is: to change a stub is work on the course, too."""
    came, stub = from_git(exercise), read(exercise.stub)
    was_edited, place = came is not None and stub != came, os.path.relpath(exercise.stub, ROOT)
    if not exercise.is_there() or (was_edited and read(exercise.file) == came):
        copy(exercise)
        with contextlib.suppress(Refused):  # then nobody knows later that the course's has changed
            change(exercise, stub=fingerprint_of(stub if came is None else came))
    if was_edited:
        have = ", which has all that you wrote there" if read(exercise.file) == stub else ""
        say(f"{place} was edited, and is not what is checked: that is {exercise.shown_file}{have}. 'git checkout {place}' takes the edit back.")


def take_over():
    """What a learner has done in exercises/, where it lay in earlier versions of the course or by mistake, is in exercises/my/ then."""
    old = os.path.join(EXERCISES, "progress.json")
    if os.path.isfile(old) and not os.path.exists(FILE):
        take_over_all(old)
    _, text = processes.ask(["git", "-C", EXERCISES, "diff", "--name-only", "--relative", "HEAD", "--", "*/gemm.cuh"])
    edited = {line.split("/")[0] for line in text.splitlines()}
    for each in all_exercises():
        if each.name in edited and os.path.exists(each.stub):
            begin(each)


def take_over_all(old):
    """From an earlier version, in which OLD was the file of progress."""
    begun = {}
    with contextlib.suppress(OSError, *DAMAGED), open(old, encoding="utf-8") as file:
        begun = entries(file)
    for each in all_exercises():
        if each.name in begun and not each.is_there():
            copy(each)
    place, patterns = EXERCISES, ("[0-9][0-9]_*/gemm-*.cuh", "progress-*.json", "progress.json")  # that one at last: then it is done
    try:
        for path in [path for pattern in patterns for path in glob.glob(os.path.join(glob.escape(EXERCISES), pattern))]:
            place = os.path.join(mine(), os.path.relpath(path, EXERCISES))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.replace(path, place)
    except OSError as error:
        say(f"cannot move what you have done to {os.path.relpath(place, ROOT)}: {error.strerror}.")
        return
    say("what you have done in exercises/ lies in exercises/my/ now: the files that you have begun, and progress.json.")


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
