"""tools/sass: gates on the machine code that nvcc made of the steps. Installs a disassembler where there is none."""

import glob
import os
import re
import shutil
import sys

from ..building import folder
from ..cli.arguments import wants_help
from ..machine import packages, processes, toolchain
from ..messages import Failed, Refused
from ..places import BUILD

from report import sass
from report.terminal import run_command

WHEELS_VERSION = (13, 2)  # it reads what older compilers made

HELP = """\
Usage: tools/sass [STEP...] [--arch LIST] [--build FOLDER]
       tools/sass --show STEP [--arch ARCH] [--kernel REGEX] [--build FOLDER]

Disassembles the steps' kernels and checks what steps/*/sass.ini demands of them, for each architecture: instructions that
must or must not be there, registers, shared memory, no local memory. Needs a build with nvcc, but no GPU. With --show,
prints the table of one step, and the main loop of a kernel: the innermost loop with the most arithmetic.

  --arch LIST      [sm_80,sm_89,sm_90a; with --show, one: sm_90a, or what there is]
  --kernel REGEX   which kernel --show shows, by its name as printed there   [the first one]
  --build FOLDER   with steps/libstep_*.a                                    [build/gpu]
  --help           show this

A sass.ini has a [section] for each kind of kernel; a # starts a comment:

  kernels          regular expression, which finds kernels by their names. Namespaces and parameters are left out, and
                   enumerators are numbers: gemm_kernel<Tile<128, 8>, Contiguous:0, float>. All kernels need a section.
  architectures    where it holds   [all]
  threads, blocks  of a block, and how many of them shall run on an SM at a time: gives limits for registers and shared memory
  registers        a limit for a thread
  shared           a limit for a block, in bytes, static and dynamic
  dynamic_shared   what the launcher asks for: it is not in the machine code   [0]
  stack            local memory allowed, bytes a thread   [none of its sections names one: 0, and no LDL or STL]
  instructions     a line for each: LDS.128 == 32 in loop. With == >= or <=, and >= 1 if there is none; 'in loop' is about
                   the main loop. Other modifiers do not matter: LDG.128 is LDG.E.128.CONSTANT too. LDG.32 is an LDG without
                   a width.

Exit code: 0 every demand holds, 1 one does not, or a failed installation, 2 refused input, a sass.ini that does not fit its
step, or a missing build, 130 interrupted.
"""


def require_wheels_that_can_read():
    nvcc = toolchain.find_nvcc()
    release = re.search(r"release (\d+)\.(\d+)", processes.ask([nvcc, "--version"])[1]) if nvcc else None
    if release and (int(release[1]), int(release[2])) > WHEELS_VERSION:
        raise Refused(f"what nvcc {release[1]}.{release[2]} makes is read by its own cuobjdump and nvdisasm: put them into PATH.")


def find_disassembler(venv):
    """The folder that has cuobjdump and nvdisasm: the toolkit's, the wheels', or one in PATH; or ''."""
    nvcc, in_path = toolchain.find_nvcc(), shutil.which("cuobjdump")
    candidates = [os.path.dirname(os.path.realpath(nvcc))] if nvcc else []
    candidates += sorted(glob.glob(f"{glob.escape(venv)}/lib/python3*/site-packages/nvidia/cu*/bin"))
    candidates += [os.path.dirname(in_path)] if in_path else []
    for place in candidates:
        if all(os.access(os.path.join(place, name), os.X_OK) for name in ("cuobjdump", "nvdisasm")):
            return place
    return ""


def install_disassembler(venv):
    with folder.locked():
        if not toolchain.can_make_venv():
            packages.install(["python3-venv"])
        folder.install_wheels(venv, "disassembler", "cuobjdump and nvdisasm", "install those of the CUDA toolkit")


def disassembler():
    """As above; installed where there is none."""
    venv = os.path.join(BUILD, "disassembler-{}.{}".format(*WHEELS_VERSION))
    if not find_disassembler(venv):
        require_wheels_that_can_read()
        install_disassembler(venv)
        if not find_disassembler(venv):
            raise Failed(f"cuobjdump is installed in {venv}, but not where it was expected.")
    return find_disassembler(venv)


def main(words):
    if wants_help(words):
        sys.stdout.write(HELP)
        return 0
    return run_command(lambda: sass.main(words, disassembler))
