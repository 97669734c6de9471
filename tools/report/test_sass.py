"""Tests of disassembly.py, sass.py and tools/sass, on short texts as cuobjdump prints them."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from report import disassembly, sass
from report.disassembly import Instruction, Kernel
from report.results import BadFile

# --- what cuobjdump prints, shortened ---

SASS = """
Fatbin elf code:
================
arch = sm_90a

	code for sm_90a
	.target	sm_90a

		Function : _ZN6step_x11gemm_kernelINS_4TileILi8EEEfEEvPKT0_
	.headerflags	@"EF_CUDA_ACCELERATORS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                                  /* 0x00000a00ff017b82 */
                                                                                           /* 0x000e220000000800 */
        /*0010*/                   LDG.E.128.CONSTANT R8, desc[UR10][R8.64] ;              /* 0x0000000a08087981 */
        /*0020*/              @!PT LDS RZ, [RZ] ;                                          /* 0x00000000ffffff84 */
        /*0030*/                   LDS.128 R4, [R18+UR7+0x90] ;                            /* 0x0000000a1a087981 */
        /*0040*/                   FFMA R21, R10.reuse, R11, R21 ;                         /* 0x000000001b1d7223 */
        /*0050*/               @P1 BRA 0x30 ;                                              /* 0xfffffff800bc1947 */
        /*0060*/                   STG.E [R2.64], R21 ;                                    /* 0x0000001502007986 */
        /*0070*/                   EXIT ;                                                  /* 0x000000000000794d */
        /*0080*/                   BRA 0x80;                                               /* 0xfffffffc00fc7947 */
"""
USAGE = """
Resource usage:
 Common:
  GLOBAL:0
 Function _ZN6step_x11gemm_kernelINS_4TileILi8EEEfEEvPKT0_:
  REG:34 STACK:8 SHARED:5120 LOCAL:0 CONSTANT[0]:652 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
NAME = "gemm_kernel<Tile<8>, float>"


def code(text):
    """Instructions, one a line, 16 bytes apart from 0 on."""
    made = []
    for i, line in enumerate(text.strip().splitlines()):
        words = line.split()
        guard = words.pop(0) if words[0].startswith("@") else ""
        made.append(Instruction(16 * i, guard, words[0], " ".join(words[1:])))
    return made


def a_kernel(text="LDS.128 R4, [R1]\nFFMA R1, R2, R3, R1\n@P0 BRA 0x0\nSTG.E.128 [R2], R4\nEXIT", **values):
    return Kernel(NAME, code(text), **{"registers": 64, "shared": 8448, **values})


def gates_from(text):
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
        file.write(textwrap.dedent(text))
        file.flush()
        return sass.load_gates(file.name)


def faults(text, kernel, architecture="sm_90a"):
    """All of what check_step says of one kernel."""
    gates = gates_from("[tile]\nkernels = Tile\n" + textwrap.dedent(text))
    pairs = sass.gates_and_kernels("sass.ini", gates, {kernel.name: kernel}, architecture)
    return "\n".join(sass.check_step("01_x", pairs, architecture))


class Disassembly(unittest.TestCase):
    def test_reads_what_cuobjdump_prints(self):
        (kernel,) = disassembly.read_kernels(SASS, USAGE, "sm_90a").values()
        self.assertEqual((kernel.name, kernel.registers, kernel.stack), (NAME, 34, 8))
        self.assertEqual(kernel.shared, 4096)  # without what the system takes
        self.assertEqual(disassembly.read_kernels(SASS, USAGE, "sm_80")[NAME].shared, 5120)
        self.assertEqual(len(kernel.code), 9)
        self.assertEqual(kernel.code[1], Instruction(0x10, "", "LDG.E.128.CONSTANT", "R8, desc[UR10][R8.64]"))
        self.assertEqual((kernel.code[2].guard, kernel.code[5].guard, kernel.code[5].operands), ("@!PT", "@P1", "0x30"))
        self.assertEqual([each.address for each in kernel.main_loop], [0x30, 0x40, 0x50])
        self.assertEqual(kernel.count("LDS", False), 1)  # @!PT never happens

    def test_a_kernel_without_resources_is_refused(self):
        with self.assertRaisesRegex(BadFile, "registers of _ZN6step_x"):
            disassembly.read_kernels(SASS, "", "sm_90a")

    def test_names(self):
        for name, short in (
            ("void step_1::f<step_1::Tile<(step_1::Kind)1>, __half>(gemm::Matrix<__half const>)", "f<Tile<Kind:1>, __half>"),
            ("void step_1::f<float>(void (*)(int), int)", "f<float>"),
            ("kernel", "kernel"),
        ):
            self.assertEqual(disassembly.short_name(name), short)

    def test_modifiers(self):
        for opcode, pattern, expected in (
            ("LDG.E.128.CONSTANT", "LDG.128", True),
            ("LDG.E.128", "LDG", True),
            ("LDG.E", "LDG.32", True),
            ("LDG.E.U16", "LDG.32", False),
            ("LDG.E.64", "LDG.128", False),
            ("LDGSTS.E.BYPASS.LTC128B.128", "LDGSTS.E.BYPASS.128", True),
            ("LDGSTS.E.BYPASS.128", "LDG.128", False),
            ("LDGSTS.E.64", "LDGSTS.BYPASS", False),
            ("LDSM.16.M88.4", "LDSM.16.M88.4", True),
            ("LDSM.16.MT88.4", "LDSM.16.M88.4", False),
            ("LDSM.16.MT88.4", "LDS", False),
            ("HMMA.16816.F32.BF16", "HMMA.16816.F32", True),
            ("HFMA2.MMA", "HMMA", False),
            ("STG.E.128", "STG.128.E", False),
        ):
            self.assertEqual(disassembly.matches(opcode, pattern), expected, (opcode, pattern))


class Loops(unittest.TestCase):
    def main_loop(self, text):
        return [each.address // 16 for each in Kernel(NAME, code(text)).main_loop]

    def test_the_innermost_loop_with_the_most_arithmetic(self):
        nested = """MOV R1, R2
            FFMA R1
            FFMA R1
            FFMA R1
            HMMA.16816.F32 R4
            @P0 BRA 0x40
            FFMA R1
            @P1 BRA 0x10
            FFMA R1
            @!P2 BRA 0x80
            EXIT"""
        self.assertEqual(self.main_loop(nested), [4, 5])
        self.assertEqual(self.main_loop(nested.replace("HMMA.16816.F32", "IADD3")), [1, 2, 3, 4, 5, 6, 7])

    def test_code_behind_the_end_that_jumps_back_is_no_loop_and_may_be_part_of_one(self):
        out_of_line = """MOV R1, R2
            @P0 BRA 0x60
            FFMA R1
            @P1 BRA 0x10
            STG.E [R2], R1
            EXIT
            LDG.E R1, [R2]
            BRA 0x20"""
        self.assertEqual(self.main_loop(out_of_line), [1, 2, 3, 6, 7])
        no_loop = """@P0 BRA 0x30
            FFMA R1
            EXIT
            FFMA R2
            BRA 0x10"""
        self.assertEqual(self.main_loop(no_loop), [])

    def test_where_threads_meet_again(self):
        text = """FFMA R1
            BSSY.RECONVERGENT B0, 0x40
            @P0 BRA 0x70
            BSYNC.RECONVERGENT B0
            @P1 BRA 0x0
            EXIT
            NOP
            LDG.E R1
            BSYNC B0"""
        self.assertEqual(self.main_loop(text), [0, 1, 2, 3, 4, 7, 8])

    def test_conditions(self):
        text = """FFMA R1
            @P0 BRA P1, 0x0
            BRA 0x40
            EXIT
            @!P0 EXIT
            CALL.REL.NOINC 0x30
            BRX R2 -0x10
            FFMA R1"""
        self.assertEqual(self.main_loop(text), [0, 1])
        self.assertEqual(disassembly.successors(code(text)), [[1], [0, 2], [4], [], [5], [3, 6], [], []])

    def test_a_loop_that_is_left_by_a_call(self):
        text = """IADD3 R1
            @P0 CALL.REL.NOINC 0x30
            BRA 0x0
            HMMA.16816.F32 R4
            @!P1 CALL.REL.NOINC 0x60
            BRA 0x30
            EXIT"""
        self.assertEqual(self.main_loop(text), [3, 4, 5])

    def test_no_code(self):
        self.assertEqual(self.main_loop(""), [])


class Budgets(unittest.TestCase):
    def test_registers(self):
        for architecture, threads, blocks, registers in (
            ("sm_80", 256, 2, 128),
            ("sm_90a", 512, 4, 32),
            ("sm_89", 512, 4, 40),  # 3 blocks: 1536 threads; 42 would be given as 48
            ("sm_89", 1024, 2, 64),  # 1 block
            ("sm_90a", 1024, 2, 32),
            ("sm_80", 256, 3, 80),
            ("sm_80", 128, 1, 255),
            ("sm_80", 33, 1, 255),
        ):
            self.assertEqual(sass.register_budget(architecture, threads, blocks), registers, (architecture, threads, blocks))

    def test_shared_memory_is_what_a_block_may_ask_for(self):
        for architecture, kib in (("sm_80", 163), ("sm_86", 99), ("sm_89", 99), ("sm_90a", 227), ("sm_120", 99)):
            self.assertEqual(sass.shared_budget(architecture, 128, 1), kib * 1024)
        self.assertEqual(sass.shared_budget("sm_90a", 128, 2), 113 * 1024)


class Gates(unittest.TestCase):
    def test_what_holds(self):
        limits = "threads = 256\nblocks = 2\nshared = 8448\n"
        instructions = "instructions =\n  FFMA in loop # so\n  LDS.128 == 1 in loop\n  LDG == 0\n  STG.128"
        self.assertEqual(faults(limits + instructions, a_kernel()), "")

    def test_missing_instruction(self):
        found = faults("instructions =\n  HMMA.16816 >= 2 in loop", a_kernel())
        self.assertIn(f"01_x, sm_90a, [tile]: {NAME}\n  demanded: HMMA.16816 >= 2 in loop\n  found: 0\n", found)
        self.assertIn("tools/sass --show 01_x --arch sm_90a --kernel 'gemm_kernel<Tile<8>, float>'", found)
        self.assertIn("steps/01_x/sass.ini", found)

    def test_instruction_in_the_wrong_place_or_too_often(self):
        self.assertIn("demanded: STG in loop\n  found: 0", faults("instructions = STG in loop", a_kernel()))
        self.assertIn("demanded: LDS == 0\n  found: 1", faults("instructions = LDS == 0", a_kernel()))
        self.assertIn("demanded: LDS <= 0 in loop\n  found: 1", faults("instructions = LDS <= 0 in loop", a_kernel()))
        self.assertIn("found: 0; it has no loop", faults("instructions = FFMA in loop", a_kernel("FFMA R1\nEXIT")))

    def test_local_memory(self):
        spilling = a_kernel("STL [R1], R2\nLDL.LU R2, [R1]\nEXIT", stack=8)
        self.assertIn("demanded: no local memory\n  found: 8 bytes, 2 accesses", faults("", spilling))
        self.assertIn("no local memory", faults("", a_kernel("LDL R2, [R1]\nEXIT")))
        self.assertEqual(faults("stack = 8", spilling), "")
        self.assertIn("at most 4 bytes", faults("stack = 4", spilling))
        # One section allows it, whatever others say.
        self.assertEqual(faults("stack = 8\n[another]\nkernels = Tile", spilling), "")

    def test_registers(self):
        self.assertIn("demanded: at most 63 registers a thread\n  found: 64", faults("registers = 63", a_kernel()))
        found = faults("threads = 256\nblocks = 4", a_kernel(registers=65))
        self.assertIn("at most 64 registers a thread, 4 blocks of 256 threads to an SM\n  found: 65", found)
        self.assertEqual(faults("threads = 256\nblocks = 4", a_kernel(registers=64)), "")

    def test_shared_memory(self):
        self.assertIn("at most 8447 bytes", faults("shared = 8447", a_kernel()))
        self.assertEqual(faults("shared = 8448", a_kernel()), "")
        two = "threads = 128\nblocks = 2\ndynamic_shared = "
        self.assertEqual(faults(f"{two}{113 * 1024 - 8448}", a_kernel()), "")
        found = faults(f"{two}{113 * 1024 - 8447}", a_kernel())
        self.assertIn("found: 8448 static and 107265 dynamic", found)

    def test_kernels_with_the_same_fault_share_a_message(self):
        kernels = {name: a_kernel() for name in ("Tile a", "Tile b", "Tile c")}
        for name, kernel in kernels.items():
            kernel.name = name
        pairs = sass.match(gates_from("[tile]\nkernels = Tile\nregisters = 1"), kernels, "sm_80")
        (found,) = sass.check_step("01_x", pairs, "sm_80")
        self.assertIn("Tile a\n  and 2 more\n", found)

    def test_a_gate_without_kernels_and_a_kernel_without_a_gate(self):
        with self.assertRaisesRegex(BadFile, r"\[tile\]: no kernel for sm_90a matches 'Tyle'. There is gemm_kernel"):
            gates = gates_from("[tile]\nkernels = Tyle")
            sass.gates_and_kernels("sass.ini", gates, {NAME: a_kernel()}, "sm_90a")
        with self.assertRaisesRegex(BadFile, "no gate for sm_90a matches gemm_kernel"):
            gates = gates_from("[tile]\nkernels = Tile\narchitectures = sm_80 sm_89")
            sass.gates_and_kernels("sass.ini", gates, {NAME: a_kernel()}, "sm_90a")

    def test_bad_files(self):
        for text, words in (
            ("", "no gate"),
            ("kernels = x", "no section headers"),
            ("[a]\nkernels = x\n[a]\nkernels = y", "already exists"),
            ("[a]\nregisters = 3", "'kernels' is missing"),
            ("[a]\nkernels = (", "no regular expression"),
            ("[a]\nkernels = x\nregister = 3", "'register' is not known"),
            ("[a]\nkernels = x\nregisters = many", "not a whole number"),
            ("[a]\nkernels = x\nblocks = 2", "give both or none"),
            ("[a]\nkernels = x\nblocks = 0\nthreads = 32", "not 1 to 32"),
            ("[a]\nkernels = x\narchitectures = sm_90", "some of"),
            ("[a]\nkernels = x\ninstructions = LDG = 3", "no demand"),
            ("[a]\nkernels = x\ninstructions = ldg", "no demand"),
            ("[a]\nkernels = x\ninstructions = LDG in the loop", "no demand"),
        ):
            with self.assertRaisesRegex(BadFile, words, msg=text):
                gates_from(text)
        with self.assertRaisesRegex(BadFile, "is missing"):
            sass.load_gates("/nowhere/sass.ini")

    def test_those_of_the_steps(self):
        for step in sass.all_steps(sass.ROOT):
            self.assertTrue(sass.load_gates(os.path.join(sass.ROOT, "steps", step, "sass.ini")), step)


class Command(unittest.TestCase):
    """With a step of its own, and a stand-in for cuobjdump."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.library = self.write("build/gpu/steps/libstep_01_x.a", "")
        self.write("steps/01_x/sass.ini", "[tile]\nkernels = Tile\nstack = 8\ninstructions =\n  FFMA == 1 in loop\n")
        self.write("sass.txt", SASS)
        self.write("usage.txt", USAGE)
        script = f"""#!/bin/sh
            case $1 in
              -lelf) echo 'ELF file    1: entry.sm_90a.cubin' ;;
              -sass) cat '{self.root}/sass.txt' ;;
              *) cat '{self.root}/usage.txt' ;;
            esac
            """
        os.chmod(self.write("cuobjdump", textwrap.dedent(script)), 0o755)

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_sass(self, *arguments, disassembler=True):
        """(exit code, stdout, stderr)"""
        def find():
            if not disassembler:
                raise SystemExit("installs one")
            return self.root

        with contextlib.ExitStack() as stack:
            stack.enter_context(unittest.mock.patch.object(sass, "ROOT", self.root))
            out = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            err = stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            try:
                code = sass.main(arguments, find)
            except BadFile as error:
                return 2, out.getvalue(), str(error)
            except SystemExit as error:
                code = error.code
        return code, out.getvalue(), err.getvalue()

    def test_what_holds(self):
        code, out, err = self.run_sass("--arch", "sm_90a")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("01_x, sm_90a\n", out)
        self.assertRegex(out, r"\ntile +1 +34 +– +8 +FFMA 1 +–\n")
        self.assertTrue(out.endswith("\nEvery demand holds.\n"))

    def test_a_step_that_is_compiled_for_fewer(self):
        gate = "[tile]\nkernels = Tile\nstack = 8\narchitectures = sm_90a"
        self.write("steps/01_x/sass.ini", gate)
        code, out, _ = self.run_sass()
        self.assertEqual(code, 0)
        self.assertNotIn("sm_89", out)
        self.write("steps/01_x/sass.ini", gate + " sm_89")
        code, _, err = self.run_sass()
        self.assertEqual(code, 2)
        self.assertIn("is built for sm_90a, not for sm_89", err)

    def test_what_does_not_hold(self):
        self.write("steps/01_x/sass.ini", "[tile]\nkernels = Tile\nregisters = 32\nshared = 5000\ndynamic_shared = 4")
        code, out, err = self.run_sass("--arch", "sm_90a", "1")
        self.assertEqual(code, 1)
        self.assertRegex(out, r"\ntile +1 +34 / 32 +4100 / 5000 ")
        self.assertTrue(out.endswith("\nDemands that do not hold: 2.\n"), out)
        self.assertIn("at most 32 registers a thread\n  found: 34", err)
        self.assertIn("no local memory\n  found: 8 bytes, 0 accesses", err)

    def test_shows_the_main_loop(self):
        code, out, err = self.run_sass("--show", "01")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f"\n{NAME}\n34 registers, 4096 bytes of static shared memory, 8 bytes of local memory\n", out)
        self.assertIn("Main loop: 3 of 9 instructions: 1 LDS.128, 1 FFMA, 1 BRA\n", out)
        lines = out.splitlines()[-3:]
        self.assertRegex(lines[0], r"^> 0x0030 +LDS\.128 +R4, \[R18\+UR7\+0x90\]$")
        self.assertRegex(lines[2], r"^  0x0050 +@P1 BRA +0x30$")

    def test_shows_a_step_that_has_no_gates_yet(self):
        os.remove(os.path.join(self.root, "steps/01_x/sass.ini"))
        self.assertEqual(self.run_sass("--show", "1")[0], 0)
        self.assertEqual(self.run_sass("1")[0], 2)

    def test_refused(self):
        for arguments, words in (
            (["2"], "names no step"),
            (["--arch", "sm_90"], "none of"),
            (["--arch", "sm_80,sm_90a"], "built for sm_90a, not for sm_80"),
            ([], "DCOURSE_GPU_ARCHITECTURES='80-real;89-real;90a-real'"),
            (["--show", "1", "1"], "--show is about one step"),
            (["--kernel", "x"], "--kernel chooses"),
            (["--show", "1", "--arch", "sm_80,sm_89"], "one architecture"),
            (["--show", "1", "--kernel", "("], "no regular expression"),
            (["--show", "1", "--kernel", "other"], NAME),
            (["--build", "/nowhere"], "there is no /nowhere/steps/libstep_01_x.a"),
            (["--what"], "unrecognized"),
        ):
            code, out, err = self.run_sass(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(words, err)

    def test_a_library_older_than_its_source(self):
        self.write("steps/01_x/gemm.cuh", "")
        os.utime(self.library, (1, 1))
        code, _, err = self.run_sass()
        self.assertEqual(code, 2)
        self.assertIn("is older than", err)

    def test_a_disassembler_that_fails(self):
        self.write("cuobjdump", "#!/bin/sh\necho 'cuobjdump fatal   : no nvdisasm' >&2\nexit 1\n")
        code, _, err = self.run_sass("--arch", "sm_90a")
        self.assertEqual(code, 2)
        self.assertIn("failed: cuobjdump fatal   : no nvdisasm", err)

    def test_without_a_disassembler_the_code_asks_for_it(self):
        self.assertEqual(self.run_sass(disassembler=False), ("installs one", "", ""))
        self.assertEqual(self.run_sass("2", disassembler=False)[0], 2)  # nothing is installed for what is refused

    def test_help(self):
        script = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "sass")
        run = subprocess.run([script, "whatever", "--help"], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertTrue(run.stdout.startswith("Usage: tools/sass"))


if __name__ == "__main__":
    unittest.main()
