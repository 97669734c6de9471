"""How the command comes to Python, packages and a build; and what it does where somebody interrupts it, or the surroundings are odd."""

import os
import pathlib
import shutil
import signal
import time
import unittest

from testbed import Whole

RUN = "run --on interpreter 1"
SUDO = 'shift; exec "$@"'


class Packages(Whole):
    def test_missing_packages(self):
        missing = "doctest/doctest.h\n-ldw\n"
        self.put("missing", missing)
        self.stand_in("id", "echo 1000")
        line = "apt-get update && apt-get install -y --no-install-recommends doctest-dev libdw-dev'"
        self.course(RUN, code=2, err=f"su -c '{line}", no_calls="apt-get")
        self.stand_in("sudo", "exit 1")  # one that wants a password
        self.course(RUN, code=2, err="sudo sh -c 'apt-get update")
        self.stand_in("sudo", SUDO)
        self.course(
            RUN,
            code=0,
            not_err="[Y/n]",  # nobody is asked where there is no terminal
            calls=["sudo -n env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 LANGUAGE= apt-get .*install",
                   "apt-get .*install -y --no-install-recommends doctest-dev libdw-dev$"],
        )
        self.put("missing", missing)
        self.remove("course/build")
        question = "install Debian's packages doctest-dev libdw-dev with sudo? [Y/n]"
        self.on_terminal("n\n", RUN, code=2, err=[question, "sudo sh -c 'apt-get update"], no_calls="apt-get")
        self.on_terminal("\n", RUN, code=0, calls="apt-get .*install")

        self.put("missing", "elfutils/libdwfl.h\n")
        self.remove("course/build", "bin/sudo")
        self.stand_in("id", "echo 0")
        self.put("apt-fails")
        self.course(RUN, code=1, err=["E: no network", "Is there a network?"])
        self.remove("apt-fails")
        self.stand_in("apt-get")
        self.course(RUN, code=1, err="still missing after their installation: libdw-dev")
        self.remove("bin/apt-get")
        self.course(RUN, code=2, err="missing: libdw-dev")

    def test_missing_commands(self):
        (self.S / "bin/python3").rename(self.S / "python3")
        self.stand_in("apt-get", '[[ $* != *python3* ]] || cp "$SCRATCH/python3" "$SCRATCH/bin/python3"')
        # compare installs Python alone.
        self.course("compare $S/calls $S/calls", code=0, calls="apt-get .*install.* python3$", no_calls=r"g\+\+|cmake")
        self.remove("bin/python3")
        self.course(RUN, calls="apt-get .*install.* python3$")
        self.remove("bin/ninja", "bin/gdb")
        self.course(RUN, calls="apt-get .*install.* ninja-build$", no_calls="apt-get .*gdb")
        self.stand_in("ninja")
        self.course(RUN, code=0)

    def test_gdb(self):
        test = "test --on interpreter"
        self.remove("bin/gdb")
        self.put("apt-fails")
        self.course(test, code=0, err="going on without gdb", calls="^ctest ")
        self.stand_in("id", "echo 1000")
        self.course(test, code=0, err="su -c 'apt-get update && apt-get install -y --no-install-recommends gdb'")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", '[[ $* != *gdb* ]] || cp "$SCRATCH/bin/ninja" "$SCRATCH/bin/gdb"')
        self.course(test, code=0, calls="apt-get .*install.* gdb$")
        self.course(test, no_calls="apt-get")
        self.remove("bin/gdb", "bin/apt-get")
        self.make_gpu()
        self.course("test", code=0, not_err="gdb")  # nothing to install

    def test_bare_machine(self):
        """From nothing: what is installed brings what the next question needs."""
        self.remove("machine/usr", "machine/etc")
        self.put("no-venv")
        (self.S / "packages").mkdir()
        for tool in ("g++", "cmake", "ninja", "python3"):
            (self.S / "bin" / tool).rename(self.S / "packages" / tool)
        self.put("missing", "boost/context\ndoctest\nCLI/CLI\nnlohmann\nelfutils\n-lboost_context\n-ldw\n")
        self.stand_in("apt-get", r"""
[[ $* == *install* && $* != *--download-only* ]] || exit 0
: >"$SCRATCH/missing"
[[ $* != *python3-venv* ]] || rm "$SCRATCH/no-venv"
[[ $* != *ca-certificates* ]] || { mkdir -p "$SCRATCH/machine/etc/ssl/certs" && : >"$SCRATCH/machine/etc/ssl/certs/ca-certificates.crt"; }
for tool in g++ cmake ninja python3; do
  [[ " $* " != *" $tool"[\ -]* ]] || cp "$SCRATCH/packages/$tool" "$SCRATCH/bin/$tool"
done
""")
        install = "apt-get .*install -y --no-install-recommends "
        rest = r"g\+\+ libboost-context-dev doctest-dev libcli11-dev nlohmann-json3-dev libdw-dev cmake ninja-build python3-venv ca-certificates$"
        self.course(RUN, code=0, calls=[
            install + "python3$", install + rest,
            "pip .*install .*--only-binary :all: --require-hashes --requirement .*/tools/command/wheels/headers.txt$",
            "cmake .*-DCOURSE_CUDA_INCLUDE_DIR=.*/build/venv/lib/python3.11/site-packages/nvidia/cu13/include"])
        self.assertLess(self.calls.index(" python3\n"), self.calls.index("python3-venv"))
        self.assertEqual(self.steps_run(), "01_naive")
        self.course(RUN, no_calls="apt-get|pip")

    def test_old_tools(self):
        self.edit("bin/g++", "echo 12", "echo 11")
        self.stand_in("apt-get", """
[[ $* == *g++-12* ]] || exit 0
sed 's/echo 11/echo 12.3/' "$SCRATCH/bin/g++" >"$SCRATCH/bin/g++-12"
chmod +x "$SCRATCH/bin/g++-12"
""")
        self.course(RUN, code=0, calls=r"cmake .*-DCMAKE_CXX_COMPILER=.*/g\+\+-12")

    def test_python_environment(self):
        venv = self.build / "venv"
        self.env["CUDA_HOME"] = ""
        self.remove("machine/usr")
        (venv / "half-made").mkdir(parents=True)
        self.put("pip-fails")
        self.course(RUN, code=1, err="Is there a network?")
        self.assertFalse((venv / ".wheels").exists())  # not taken for complete
        self.stand_in("pip", 'echo "SSLError: CERTIFICATE_VERIFY_FAILED"; exit 1')
        self.course(RUN, code=1, err="a certificate could not be verified", not_err="Is there a network?")
        self.stand_in("pip", 'echo "OSError: [Errno 28] No space left on device"; exit 1')
        self.course(RUN, err="The disk is full: make room", not_err="Is there a network?")
        self.stand_in("pip")
        self.course(RUN, calls="pip .*--require-hashes --requirement .*/wheels/headers.txt$")
        self.assertFalse((venv / "half-made").exists())
        self.remove("course/build/setup")
        self.course(RUN, no_calls="^pip ")
        time.sleep(0.02)
        with open(self.S / "course/tools/command/wheels/headers.txt", "a", encoding="utf-8") as file:
            file.write("# renewed\n")
        self.course(RUN, calls="^pip ")
        self.remove("course/build/setup")
        self.edit("bin/cmake", "3.25.1", "3.22.1")  # too old: other wheels
        self.course(RUN, calls="pip .*--require-hashes --requirement .*/wheels/cmake.txt --requirement .*/wheels/headers.txt$")


class Python(Whole):
    """Where it comes from, and where it cannot come from."""

    def test_half_a_module(self):
        """Of a disk that was full: Python keeps what could be written."""
        self.build.mkdir()
        self.course("list")
        for module in ("main", "list"):
            os.truncate(next((self.build / "pycache").rglob(f"{module}.*.pyc")), 20)
            self.course("list")
            if self.code == 2 and "there are no exercises" not in self.err:
                self.course("list")  # one that is loaded later: try again, it said
            self.assertIn("there are no exercises here", self.err, module)

    def test_no_python(self):
        self.remove("bin/python3")
        self.course(code=2)
        self.course(RUN, code=1, err="still no python3, 3.9 or newer")
        self.put("apt-fails")
        self.course(RUN, code=1, err="at the end of $S/course/build/logs/packages.log")
        self.remove("course/build")
        self.refused_whole(("needs python3, 3.9 or newer", "help", "--help", "--version"))
        self.stand_in("id", "echo 1000")
        self.refused_whole(("su -c 'apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build python3 ", "run"))
        self.stand_in("sudo", "exit 1")
        self.refused_whole(("sudo sh -c 'apt-get update", "run"))
        self.stand_in("sudo", SUDO)
        question = "install Debian's packages python3 with sudo? [Y/n]"
        self.on_terminal("n\n", "run", code=2, err=question, no_calls="apt-get")
        self.remove("bin/apt-get")
        self.refused_whole(("install it with this system's own package manager", "run"))
        self.stand_in("python3", "exit 1")  # too old
        self.put("bin/python3.12", f"#!/bin/bash\nexec '{self.env['REAL_PYTHON']}' \"$@\"\n").chmod(0o755)
        self.course("help", code=0)

    def test_no_command_substitution(self):
        """Too few files may be open, which bash says itself: then it does not know where the course is."""
        self.bash('ulimit -n 5; exec "$0" list', code=2, lines=2, err=["Too many open files", "cannot start another program"])

    def test_no_path(self):
        """Bash, without a PATH, has one that it gives to nobody."""
        self.put("course/tools/command/__main__.py", 'import os; print(os.environ.get("PATH"))')
        for line in ("unset PATH", "PATH="):
            self.bash(f'{line}; exec {shutil.which("bash")} "$0" help', code=0)
            self.assertIn("/usr/bin", self.out.split(":"), line)


class Builds(Whole):
    def test_failure(self):
        self.put("build-fails")
        why = ["expected a tile", "the whole log: $S/course/build/logs/build-interpreter.log"]
        self.course(RUN, code=1, err=why, no_calls="a_step")
        self.remove("build-fails")
        self.course(RUN, code=0, no_calls="--fresh")

    def test_configured_again(self):
        self.course(RUN)
        for name in ("CMakeCache.txt", "build.ninja"):
            self.remove(f"course/build/interpreter/{name}")
            self.course(RUN, code=0, calls="cmake --fresh --preset interpreter")
        self.course(RUN, no_calls="--fresh")

    def test_unwritable_build_folder(self):
        self.put("course/build")
        self.course(RUN, code=2, err="cannot write to $S/course/build")

    def test_targets(self):
        self.refused(
            ("unknown option '-j4'", "build interpreter -j4"),
            ("'' is no target", "build interpreter ''"),
            ("is no list of commands", "build interpreter --with ,", "build interpreter --with ';ls'"),
            ("no preset 'nosuch'. There are: interpreter interpreter-clang", "build nosuch"),
        )
        self.edit("bin/cmake", r"^  \*--build\*\)", "\\g<0>\n    echo \"ninja: error: unknown target 'nosuch'\"; exit 1")
        self.course("build interpreter nosuch", code=2, err="the preset 'interpreter' has no such target: unknown target 'nosuch'.")

    def test_environment(self):
        """Whatever somebody has in it."""
        for name in ("json", "results", "venv"):
            self.put(f"theirs/{name}.py", 'raise SystemExit("somebody else")\n')
        for tool in ("cmake", "g++"):
            seen = "$LC_ALL $LANGUAGE ${CXXFLAGS-unset} ${PYTHONPATH-unset} ${NINJA_STATUS-unset}"
            self.edit(f"bin/{tool}", "^printf.*", f'\\g<0>\necho "{seen}" >>"$SCRATCH/environment"')
        self.make_document("interpreter")
        ignored = {"CXXFLAGS": "-O0", "CXX": "clang++", "CMAKE_CUDA_ARCHITECTURES": "90"}
        self.course(
            RUN,
            at="theirs",
            env={"PYTHONPATH": "$S/theirs", "PYTHONSAFEPATH": 1, "NINJA_STATUS": "%x", "LANG": "de_DE.UTF-8", "LANGUAGE": "de", **ignored},
            code=0,
            out="counted by the interpreter",  # the report is the course's own
            err="course: CXX CXXFLAGS: ignored, the course has a compiler and flags of its own.",
        )
        seen = self.text("environment").splitlines()
        self.assertEqual(set(seen), {"C.UTF-8  -O0 unset unset", "C.UTF-8  unset unset unset"})
        self.assertEqual(seen.count("C.UTF-8  unset unset unset"), 1)  # configuring
        self.course(RUN, at="theirs", env=ignored, not_err="ignored")  # it is said once


class AtTheSameTime(Whole):
    def test_two_builds(self):
        self.put("build-is-slow", "3")
        other = self.start(RUN, until="building")
        self.course("run --on interpreter 10", code=0,
            err=["waiting for another course command that is building since", f"'tools/course {RUN}', process {other.pid} ..."])
        self.ended(other, "the first one", code=0)

    def test_two_into_one_folder(self):
        self.stand_in("a_step", 'if mkdir "$SCRATCH/running" 2>/dev/null; then until [[ -e $SCRATCH/enough ]]; do sleep 0.05; done; fi')
        other = self.start(RUN, until="running")
        why = "another 'tools/course run' or 'profile' is writing to $S/course/build/results: wait"
        self.course("run --on interpreter 10", code=2, err=why, no_calls="a_step")
        self.course("run --on interpreter 10 --out $S/elsewhere", code=0)
        self.put("enough")
        self.ended(other, "the first one", code=0)
        self.course("run --on interpreter 10", code=0)


class Interrupted(Whole):
    def interrupt(self, process, number=signal.SIGINT, **wanted):
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        self.ended(process, f"signal {number}", **wanted)

    def test_the_beginning(self):
        """From the first moment on."""
        for pause in (0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3):
            process = self.start(RUN)
            time.sleep(pause)
            self.interrupt(process, not_err="Traceback")
            self.assertIn(self.code, (130, 0), f"after {pause} s")  # for it is over soon
            shutil.rmtree(self.S / "building", ignore_errors=True)

    def test_a_build(self):
        self.put("build-is-slow", "2")
        self.interrupt(self.start(RUN, until="building"), code=130, not_err="could not")
        self.assertFalse((self.S / "building").exists())  # it cleaned up
        self.remove("build-is-slow")
        self.course(RUN, code=0)

    def test_kill(self):
        self.put("build-is-slow", "30")
        process = self.start(RUN, until="building")
        before = time.monotonic()
        self.interrupt(process, signal.SIGTERM, code=143, not_err="could not")
        self.assertLess(time.monotonic() - before, 20)

    def test_an_installation(self):
        """Waits for dpkg. In Perl, because a shell cannot catch a signal that is ignored when it starts, and apt-get can."""
        self.put("missing", "elfutils/libdwfl.h\n")
        self.stand_in("apt-get", """
[[ $* == *install* && $* != *--download-only* ]] || exit 0
exec perl -e '
  chdir $ENV{SCRATCH};
  $SIG{INT} = sub { open my $file, ">", "half-installed"; exit 100 };
  open my $file, ">", "installing";
  select undef, undef, undef, 0.5;
  truncate "missing", 0;
'
""")
        self.interrupt(self.start(RUN, until="installing"), code=130, not_err="could not")
        self.assertFalse((self.S / "half-installed").exists())
        self.assertEqual(self.text("missing"), "")


class Streams(Whole):
    def test_closed_and_full(self):
        self.bash('exec "$0" help >&-', code=2, is_err="course: stdout is closed, and results go there: leave it open, or send it to /dev/null.")
        self.bash('exec "$0" run --help >/dev/full', code=2, is_err="course: cannot write to stdout: No space left on device.")
        self.bash(f'exec "$0" {RUN} <&- >/dev/null', code=0)
        self.bash(f'exec "$0" {RUN} 2>&-', code=0, not_out="course:")  # what would go there is nowhere else

    def test_a_folder_as_stdin(self):
        """By a slip: Python would not begin."""
        self.bash('exec "$0" help </tmp', code=0, out="Usage: tools/course COMMAND")
        self.bash(f'exec "$0" {RUN} </tmp', no_calls="apt-get")

    def test_any_width(self):
        for width in ("abc", "0", "-5", "", "99999999999999999999"):
            self.course("run --help", env={"COLUMNS": width, "TERM": "dumb"}, code=0, is_err="")

    def test_nobody_reads_any_more(self):
        self.stand_in("a_step", 'for i in {1..20000}; do echo "line $i"; done')
        self.bash(f'{{ "$0" {RUN} 2>/dev/null || echo $? >"$SCRATCH/code"; }} | {{ read -r line; }}')
        self.assertEqual(self.text("code"), "141\n")

    def test_scripts_without_python(self):
        self.remove("bin/python3", "bin/apt-get")
        for name in ("figures", "plot", "sass", "registers"):
            self.command = pathlib.Path(f"{self.S}/course/tools/{name}")
            self.course("--check", code=2, err="missing: python3, 3.9 or newer: install it")


if __name__ == "__main__":
    unittest.main()
