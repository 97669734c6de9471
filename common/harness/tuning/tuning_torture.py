"""Torture of the tuning cache: processes that tune in the same folder at the same time, are killed, and find damaged files.

Usage: tuning_torture.py TUNING_PROCESS. Whatever happened to the folder before, a process that ends must end well and pick the
fastest tile: a wrong pick is one that came out of a broken file, or of times that do not belong together.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROCESSES = 8
ROUNDS = 12
SHAPES, TILES = 3, 12  # of tuning_process; a file for each shape
EACH_ONCE = SHAPES * TILES + SHAPES  # each shape's second group is timed beside the best of the first
SEED = 6  # the same damage each time; what a kill hits depends on the machine


def files(folder):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(folder) for name in names if name.endswith(".tuning"))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


# Each takes a file's path, its bytes, those of all files and a random generator.
def truncate(path, data, _, rng):
    write(path, data[: rng.randrange(len(data))])


def flip_bit(path, data, _, rng):
    at = rng.randrange(len(data))
    write(path, data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])


def faster(path, data, _, __):  # the worst that can happen to a time
    write(path, data.replace(b'" 0.00', b'" 0.0000'))


def pruned(path, data, _, __):
    write(path, re.sub(rb'" [-0-9.e]+ ""', b'" 0 "no"', data))


def garbage(path, data, _, rng):
    write(path, rng.randbytes(len(data)))


def deep(path, _, __, ___):
    write(path, b"[" * 1000000)


def nothing(path, _, __, ___):
    write(path, b"")


def next_version(path, data, _, __):
    write(path, data.replace(b"tuning 3", b"tuning 4"))


def of_another(path, _, sound, rng):
    write(path, sound[rng.choice([other for other in sound if other != path])])


def folder_instead(path, _, __, ___):
    os.remove(path)
    os.mkdir(path)


def unreadable(path, _, __, ___):
    os.chmod(path, 0)


def dangling(path, _, __, ___):
    os.remove(path)
    os.symlink("nowhere", path)


def pipe(path, _, __, ___):
    os.remove(path)
    os.mkfifo(path)


DAMAGES = [truncate, flip_bit, faster, pruned, garbage, deep, nothing, next_version, of_another, folder_instead, unreadable]
DAMAGES += [dangling, pipe]


class Torture(unittest.TestCase):
    program = ""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tuning-torture.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.rng = random.Random(SEED)

    def start(self, scale=1.0):
        command = [self.program, self.folder, str(scale)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)
        return int(out.split()[-1]), err

    def run_alone(self, scale=1.0):
        return self.finish(self.start(scale))

    def test_second_start_times_nothing(self):
        self.assertEqual(self.run_alone(), (EACH_ONCE, ""))
        self.assertEqual(self.run_alone(), (0, ""))

    def test_eight_at_once_time_everything_once(self):
        results = [self.finish(p) for p in [self.start(1 + 0.1 * i) for i in range(PROCESSES)]]
        self.assertEqual([err for _, err in results], [""] * PROCESSES)
        self.assertEqual(sum(timed for timed, _ in results), EACH_ONCE)
        self.assertEqual(len(files(self.folder)), SHAPES)

    def test_killed_in_the_middle(self):
        killed = 0
        for _ in range(ROUNDS):
            shutil.rmtree(self.folder)
            os.mkdir(self.folder)
            processes = [self.start(1 + 0.1 * i) for i in range(PROCESSES)]
            victims = self.rng.sample(processes, PROCESSES - 2)
            for victim in victims:
                time.sleep(self.rng.uniform(0, 0.015))
                victim.send_signal(signal.SIGKILL)
            for process in processes:
                if process in victims:
                    process.communicate(timeout=60)
                    killed += process.returncode == -signal.SIGKILL
                else:
                    self.finish(process)
            self.assertEqual(self.run_alone(0.5), (0, ""))
        self.assertGreater(killed, ROUNDS)

    def test_each_damage_is_noticed_and_repaired(self):
        for damage in DAMAGES:
            with self.subTest(damage.__name__):
                self.run_alone()
                sound = {path: read(path) for path in files(self.folder)}
                for path in self.rng.sample(list(sound), 2):
                    damage(path, sound[path], sound, self.rng)
                timed, err = self.run_alone(1.5)
                if damage is dangling:
                    self.assertEqual(err, "")  # as if it were not there
                elif damage is not unreadable or os.getuid() != 0:  # root reads everything
                    self.assertIn("not usable", err)
                    self.assertEqual(timed, 2 * EACH_ONCE // SHAPES)
                self.assertEqual(self.run_alone(0.7), (0, ""))
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)

    def test_damaged_while_eight_run(self):
        for _ in range(ROUNDS):
            processes = [self.start(1 + 0.1 * i) for i in range(PROCESSES)]
            while any(process.poll() is None for process in processes):
                paths = files(self.folder)
                for path in self.rng.sample(paths, min(2, len(paths))):
                    try:
                        self.rng.choice([truncate, flip_bit, faster, garbage, nothing])(path, read(path) or b"x", {}, self.rng)
                    except OSError:
                        pass  # somebody replaced it meanwhile
                time.sleep(0.002)
            for process in processes:
                self.finish(process)

    def test_fuzzed(self):
        self.run_alone()
        paths = files(self.folder)
        sound = {path: read(path) for path in paths}
        for _ in range(200):
            for path in self.rng.sample(paths, 2):
                data = bytearray(sound[path])
                for _ in range(self.rng.randrange(1, 5)):
                    data[self.rng.randrange(len(data))] = self.rng.randrange(256)
                write(path, bytes(data))
            self.run_alone(1.3)

    def test_folder_that_cannot_be_used(self):
        shutil.rmtree(self.folder)
        write(self.folder, b"a file")
        timed, err = self.run_alone()
        self.assertEqual(timed, EACH_ONCE)
        self.assertIn("cannot be kept", err)
        os.remove(self.folder)
        os.mkdir(self.folder)

    def test_disk_that_is_read_only(self):
        process = subprocess.Popen([self.program, "/proc/tuning"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        timed, err = self.finish(process)
        self.assertEqual(timed, EACH_ONCE)
        self.assertIn("cannot be kept", err)

    def test_lock_that_cannot_be_used(self):
        os.mkdir(os.path.join(self.folder, "lock"))
        self.run_alone()
        self.assertEqual(self.run_alone(), (0, ""))


if __name__ == "__main__":
    Torture.program = sys.argv.pop(1)
    unittest.main()
