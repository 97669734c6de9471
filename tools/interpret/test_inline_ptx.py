"""Tests of inline PTX: what it becomes, what is refused, on which line a report finds it, and programs that check each instruction.

nvcc compiles the programs too; tools/gpu-checks runs them.
"""

import os
import re
import unittest

import inline_ptx
from rewrite import File
from testing import BUILD, HERE, Folder

PROGRAMS = os.path.join(HERE, "programs")


def translated(statement):
    """What the statement becomes in a kernel."""
    file = File("__global__ void k() {\n" + statement + "\n}\n")
    file.rewrite()
    return file.result("x.cu")


def refusal(statement):
    file = File(statement)
    try:
        inline_ptx.translate(file.visible, file.partner, 0, lambda first, last: " ".join(t.text for t in file.visible[first : last + 1]))
    except inline_ptx.NotHere as why:
        return str(why)
    return None


class Translation(unittest.TestCase):
    def test_an_instruction_is_a_call(self):
        result = translated('asm volatile("cp.async.wait_group %0;\\n" ::"n"(N - 1) : "memory");')
        self.assertIn("constexpr auto ptx_0 = N - 1;", result)
        self.assertRegex(result, r"::interpreter::cp_async_wait_group\(.*ptx_0.*\);")

    def test_operands_need_no_comma(self):
        self.assertEqual(translated('asm("st.u32 [%1], %0;" ::"r"(a) "l"(b));'), translated('asm("st.u32 [%1], %0;" ::"r"(a), "l"(b));'))

    def test_a_special_register_is_a_value(self):
        result = translated('asm("mov.u32 %0, %%nclusterid.y;" : "=r"(n));')
        self.assertIn("(gridDim.y / ::__clusterDim().y)", result)

    def test_lines_stay_where_they_are(self):
        text = 'asm volatile(\n  "{ .reg .pred p;\\n"  // why\n  "}\\n"\n  ::: "memory");\nint after;'
        self.assertEqual(translated(text).split("\n").index("int after;"), ("\n\n" + text).split("\n").index("int after;"))
        macro = '#define M(x) \\\n  asm("mov.u32 %0, 7;" \\\n      : "=r"(x))\nint after;'
        self.assertEqual(translated(macro).split("\n").index("int after;"), ("\n\n" + macro).split("\n").index("int after;"))

    def test_what_g_plus_plus_has_itself_stays(self):
        for text in ('asm volatile("" ::: "memory");', 'asm("" : "+r"(x));'):
            self.assertIn(text, translated(text))
        for host in ('void host() { asm volatile("pause"); }\n', 'int say(const char*) asm("puts");\n'):
            file = File(host)
            file.rewrite(refuse=lambda line, feature: "refused")
            self.assertIn(host, file.result("x.cu"))

    def test_accumulators_of_wgmma_are_not_touched(self):
        sums = ", ".join(f"%{i}" for i in range(4))
        outputs = ", ".join(f'"+f"(d[{i}])' for i in range(4))
        result = translated(
            f'asm("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{sums}}}, %4, %5, 1, 1, 1, 0, 0;" : {outputs} : "l"(a), "l"(b));'
        )
        self.assertNotRegex(result, r"put\(ptx_to\d")
        self.assertNotRegex(result, r"value<float>\(ptx_to")

    def test_what_an_instruction_does_not_name_is_not_touched(self):
        for text in ('asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sum) :: "memory");', 'asm volatile("" : "+f"(sum) :: "memory");'):
            self.assertNotIn("(sum)", translated(text))
        self.assertIn("(sum)", translated('asm("add.f32 %0, %0, %0;" : "+f"(sum));'))

    def test_labels_and_registers_belong_to_their_braces(self):
        result = translated('asm("{ .reg .pred p; L: setp.eq.u32 p, %0, 0; { .reg .u32 p; mov.u32 p, 1; } @p bra L; }" ::"r"(x));')
        names = re.findall(r"(?:bool|uint32_t) (ptx_p_\d);", result)
        self.assertEqual(len(set(names)), 2)
        self.assertIn(f"if ({names[0]}) {{ goto ptx_L; }}", result)
        self.assertIn("__label__ ptx_L;", result)

    def test_what_is_not_here_is_named(self):
        for statement, name in (
            ('asm("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};" : "=f"(d) : "r"(a), "r"(b), "f"(c));', "mma.sync.aligned.m8n8k4"),
            ('asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.s8.f32 {%0}, {%1}, {%2}, {%3};" : "=f"(d) : "r"(a), "r"(b), "f"(c));', "e4m3.s8"),
            ('asm("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0}, {%1}, {%2}, {%3};" : "=r"(d) : "r"(a), "r"(b), "r"(c));', "s4.s4"),
            ('asm("addc.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));', "carry of another"),
            ('asm("mov.u32 %0, %%envreg3;" : "=r"(d));', "%envreg3"),
            ('asm("add.u32 %0, %1, %2;" : "=r"(d) : "r"(a));', "%2"),
            ('asm("add.u32 %0, q, 1;" : "=r"(d));', "register q"),
            ('asm(TEXT : "=r"(d));', "a macro makes"),
            ('asm("add.u32 %0, %1, 1;" : "=x"(d) : "r"(a));', '"=x"'),
            ('asm(".global .u32 x;");', ".global"),
            ('asm("wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%0}, %1, %1, 1, 1, 1, 0, 0;" : "+r"(d) : "l"(a));', "f16.bf16.bf16"),
            ('asm("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%0}, %1, %1, 1;" : "+r"(d) : "l"(a));', "m64n40k32"),
            ('asm("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0}, %1, %1, 1;" : "+r"(d) : "l"(a));', "b1.b1"),
        ):
            with self.subTest(statement):
                self.assertIn(name, refusal(statement) or "")


@unittest.skipUnless(BUILD, "needs COURSE_BUILD, a built interpreter")
class Runs(Folder):
    def test_each_instruction_does_what_it_says(self):
        for order in ("forward", "reverse", "random:7"):
            result = self.run_program(os.path.join(PROGRAMS, "inline_ptx.cu"), options=("--order", order))
            self.assertEqual((result.returncode, result.stdout), (0, "right\n"), result.stderr)

    def test_errors_in_the_way_of_hopper_are_found(self):
        path = os.path.join(PROGRAMS, "hopper.cu")
        right = self.run_program(path)
        self.assertEqual((right.returncode, right.stdout), (0, "right\n"), right.stderr)
        wrong = self.run_program(path, options=("-D", "BUG=1"))  # reads the wrong rows, all of which are there
        self.assertEqual((wrong.returncode, wrong.stdout), (1, "WRONG\n"))
        for bug, what, line in (
            (2, "written by the bulk copy issued at", "cp.async.bulk.tensor.2d"),
            (3, "which has not waited at full", "asm volatile("),
            (4, "of which not all 16 bytes have been written", "asm volatile("),
            (5, "what wgmma reads was written while that was under way", "asm volatile("),
        ):
            with self.subTest(bug):
                result = self.run_program(path, options=("-D", f"BUG={bug}"))
                self.assertEqual(result.returncode, 1)
                self.assertIn(what, result.stderr)
                self.assertIn(line, result.stderr)

    def test_plain_bytes_for_several_blocks(self):
        path = os.path.join(PROGRAMS, "bulk_multicast.cu")
        for order in ("forward", "reverse", "random:7"):
            right = self.run_program(path, options=("--order", order))
            self.assertEqual((right.returncode, right.stdout), (0, "right\n"), right.stderr)
        for bug, what in (
            (1, "race on tile .* then written by the cp.async.bulk.multicast"),  # expects half of the bytes
            (2, "cp.async.bulk.multicast on full .* of block .*, where no mbarrier has been initialised"),
            (3, "deadlock: .* for phase 0 of full .*, which lacks 256 bytes"),
            (4, "cp.async.bulk.multicast with mask 0x0*7 in a cluster of 2"),
            (5, "cp.async.bulk.multicast of 250 bytes, global side in .*, misaligned"),
            (6, "race on tile"),  # nobody waits
        ):
            with self.subTest(bug):
                result = self.run_program(path, options=("-D", f"BUG={bug}"))
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, what)

    def test_all_kinds_of_multiplications_are_right(self):
        result = self.run_program(os.path.join(PROGRAMS, "multiplications.cu"), options=("--order", "random:7"))
        self.assertEqual((result.returncode, result.stdout), (0, "right\n"), result.stderr)

    def test_a_report_names_the_statements_line(self):
        text = (
            "#define STORE(p, x)                \\\n"
            '  asm volatile("st.global.u32 [%0], %1;" \\\n'
            '               ::"l"(p), "r"(x))\n'
            "__global__ void k(int* x) {\n"
            "  STORE(x + threadIdx.x, 1);\n"
            "}\n"
            "int main() {\n  int* numbers;\n  cudaMalloc(&numbers, 124);\n  k<<<1, 32>>>(numbers);\n}\n"
        )
        result = self.interpret(text)
        self.assertEqual(result.returncode, 1)
        self.assertIn("memcheck: write of 4 bytes out of bounds: numbers", result.stderr)
        self.assertIn("x.cu:5\n", result.stderr)

    def test_a_plain_load_is_no_atomic_one_and_a_report_names_the_wrappers_call(self):
        text = (
            "__device__ int load(const int* p) {\n"
            "  int value;\n"
            '  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(value) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory");\n'
            "  return value;\n"
            "}\n"
            "__global__ void histogram(int* out) {\n"
            "  __shared__ int counts[64];\n"
            "  counts[threadIdx.x] = 0;\n"
            "  __syncthreads();\n"
            "  atomicAdd(&counts[(threadIdx.x * 7 + 3) % 64], 1);\n"
            "  out[threadIdx.x] = load(counts + threadIdx.x);\n"
            "}\n"
            "int main() {\n  int* out;\n  cudaMalloc(&out, 256);\n  histogram<<<1, 64>>>(out);\n}\n"
        )
        for order in ("forward", "reverse", "random:7"):
            result = self.interpret(text, options=("--order", order))
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, "race on counts .*read by ")
            self.assertRegex(result.stderr, r"x\.cu:(3|10)\n")
            self.assertTrue("x.cu:3\n" not in result.stderr or "  called   at" in result.stderr, result.stderr)

    def test_a_tensor_map_that_cannot_be_is_refused_as_by_the_driver(self):
        text = (
            "#include <cstdio>\n#include <cuda.h>\nint main() {\n  float* x;\n  cudaMalloc(&x, 4096);\n  CUtensorMap map;\n"
            "  const cuuint64_t sizes[] = {30, 10}, strides[] = {120};\n  const cuuint32_t box[] = {8, 8}, steps[] = {1, 1};\n"
            '  printf("%d\\n", cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, x, sizes, strides, box, steps,\n'
            "    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));\n"
            "  void* f;\n"
            '  printf("%d\\n", cudaGetDriverEntryPointByVersion("cuMemAlloc", &f, 12000, cudaEnableDefault) != cudaSuccess);\n}\n'
        )
        result = self.interpret(text)
        self.assertEqual((result.returncode, result.stdout), (0, "1\n1\n"), result.stderr)
        self.assertIn("dimension 1: its stride is no multiple of 16 bytes below 2^40", result.stderr)


if __name__ == "__main__":
    unittest.main()
