"""Tests of --keep-going: after which reports a program goes on, what ends it, and how."""

import re
import unittest

from testing import BUILD, Folder

BEGIN = """#include <cuda_runtime.h>
#include <cstdio>
template <class T> T* device(int n) { T* p; cudaMalloc(&p, n * sizeof(T)); return p; }
"""
REPORTS = re.compile(r"^interpreter: (\w+check): (.*)\n  at +.*x\.cu:(\d+)", re.MULTILINE)
SUMMARY = "reported, and the program went on after"


@unittest.skipUnless(BUILD, "needs a build")
class KeepsGoing(Folder):
    def run_on(self, text, *options):
        """(exit code, stdout, stderr, [(check, line's text)])"""
        done = self.interpret(BEGIN + text, options=["--keep-going", *options])
        lines = (BEGIN + text).splitlines()
        return done.returncode, done.stdout, done.stderr, [(check, lines[int(line) - 1]) for check, _, line in REPORTS.findall(done.stderr)]

    def check(self, text, *options):
        """Each line that ends with '// CHECK' is reported once, and no other one; the program comes to its end."""
        code, out, errors, found = self.run_on(text, *options)
        expected = [(words[-1], line) for line in text.splitlines() for words in [line.split(" // ")] if words[-1].endswith("check")]
        self.assertEqual(sorted(found), sorted(expected), errors)
        self.assertEqual((code, out), (1, "the end\n"), errors)
        count = len(expected)
        self.assertIn(f"interpreter: {count} {'problem was' if count == 1 else 'problems were'} {SUMMARY}", errors)

    def test_each_problem_is_told_once(self):
        for order in ("forward", "reverse", "random:3"):
            with self.subTest(order):
                self.check(
                    """
__global__ void first(float* out, const float* in, const float* more) {
  __shared__ float tile[64];
  float sum = 0;
  for (int i = 0; i < 20; ++i) {
    tile[threadIdx.x] = i + threadIdx.x;
    __syncthreads();
    sum += tile[(threadIdx.x + 33) % 64];
    __syncthreads();
  }
  sum += in[threadIdx.x]; // initcheck
  sum += more[threadIdx.x]; // initcheck
  out[threadIdx.x + 1] = sum; // memcheck
}
__global__ void second(float* out) {
  extern __shared__ float s[];
  s[threadIdx.x] = 1; // memcheck
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x % 32];
}
__global__ void third(float* out) {
  *(float2*)(out + 1) = make_float2(1, 2); // memcheck
}
__global__ void fourth(float* out) { out[threadIdx.x] = 1; }
int main() {
  float *a = device<float>(64), *b = device<float>(64), *c = device<float>(64);
  first<<<1, 64>>>(a, b, c);
  for (int i = 0; i < 3; ++i) second<<<1, 64, 32 * 4>>>(a);
  third<<<1, 1>>>(a);
  fourth<<<1, 64>>>(a);
  if (cudaDeviceSynchronize() == cudaSuccess) std::puts("the end");
}
""",
                    "--order",
                    order,
                )

    def test_a_race_is_one_problem_whichever_comes_first(self):
        # Of a write and a read, which take place 20 times, either may come first.
        for order in ("forward", "reverse", "random:3"):
            code, out, errors, found = self.run_on(
                """
__global__ void k(float* out) {
  __shared__ float tile[64], other[64];
  float sum = 0;
  for (int i = 0; i < 20; ++i) {
    tile[threadIdx.x] = i;
    sum += tile[(threadIdx.x + 33) % 64];
  }
  __syncthreads();
  other[threadIdx.x] = sum;
  out[64 * blockIdx.x + threadIdx.x] = other[63 - threadIdx.x];
}
int main() {
  k<<<3, 64>>>(device<float>(3 * 64));
  std::puts("the end");
}
""",
                "--order",
                order,
            )
            with self.subTest(order):
                self.assertEqual((code, out), (1, "the end\n"), errors)
                self.assertEqual(sorted(re.findall(r"race on (\w+)", errors)), ["other", "tile"], errors)
                self.assertEqual([check for check, _ in found], ["racecheck", "racecheck"], errors)

    def test_copies_and_fences(self):
        self.check(
            """
__global__ void copies(const float* in, float* out) {
  __shared__ alignas(16) float tile[128];
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * threadIdx.x);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + 4 * threadIdx.x + 4)); // memcheck
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}
__global__ void fences(float* out) {
  __shared__ alignas(128) float tile[32];
  tile[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned from = (unsigned)__cvta_generic_to_shared(tile);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(out), "r"(from) : "memory"); // racecheck
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    out[32] = 0; // memcheck
  }
}
__global__ void barrier(const float* in, float* out) {
  __shared__ __align__(128) float tile[32];
  __shared__ unsigned long long full;
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile), bar = (unsigned)__cvta_generic_to_shared(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(bar) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(to), "l"(in), "r"(bar) : "memory"); // racecheck
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}
int main() {
  float *a = device<float>(128), *b = device<float>(32), *c = device<float>(32);
  cudaMemset(a, 0, 128 * 4);
  copies<<<1, 32>>>(a, b);
  fences<<<1, 32>>>(b);
  for (int i = 0; i < 3; ++i) barrier<<<1, 32>>>(a, c);
  if (cudaDeviceSynchronize() == cudaSuccess) std::puts("the end");
}
"""
        )

    def test_what_ends_the_program_all_the_same(self):
        first = "__global__ void first(int* p) { p[threadIdx.x + 1] = 1; }\n"
        main = 'int main() { int* p = device<int>(32); first<<<1, 32>>>(p); std::puts("first"); %s; std::puts("never"); }\n'
        for kernel, launch, check, words in (
            ("__global__ void k(int* p) { p[threadIdx.x] = 1; }", "k<<<1, 32>>>(nullptr)", "memcheck", "through a null pointer"),
            ("__global__ void k(int* p) { p[threadIdx.x] = 1; }", "int i; k<<<1, 1>>>(&i)", "memcheck", "a host pointer?"),
            ("__global__ void k() { if (threadIdx.x) __syncthreads(); __syncwarp(); }", "k<<<1, 32>>>()", "synccheck", "__sync"),
            ("__global__ void k(volatile int* p) { while (p[0] == 1); }", "k<<<1, 32>>>(p + 1)", "synccheck", "deadlock"),
            ("__global__ void k(float* p) { *(float4*)p = float4(); }", "k<<<1, 1>>>((float*)p + 1)", "memcheck", "misaligned"),
            ("__global__ void k(int n) { int a[4] = {}; a[n] = 1; if (a[n - 4]) __trap(); }", "k<<<1, 1>>>(5)", "memcheck", "index 5"),
        ):
            with self.subTest(kernel):
                code, out, errors, found = self.run_on(first + kernel + "\n" + main % launch)
                self.assertEqual((code, out, [each for each, _ in found]), (1, "first\n", ["memcheck", check]), errors)
                self.assertIn(words, errors)
                self.assertIn(f"interpreter: 1 problem was {SUMMARY} it.", errors)

    def test_a_program_without_problems_is_as_without_it(self):
        code, out, errors, _ = self.run_on('__global__ void k() {}\nint main() { k<<<1, 1>>>(); std::puts("done"); return 3; }')
        self.assertEqual((code, out, errors), (3, "done\n", ""))

    def test_it_ends_after_so_many(self):
        stores = "".join(f"  p[threadIdx.x + {i}] = 1;\n" for i in range(1, 30))
        code, out, errors, found = self.run_on(f'__global__ void k(int* p) {{\n{stores}}}\nint main() {{ k<<<1, 1>>>(device<int>(1)); std::puts("never"); }}')
        self.assertEqual((code, out, len(found), len(set(found))), (1, "", 20, 20), errors)

    def test_without_it_the_first_one_ends_the_program(self):
        done = self.interpret(
            BEGIN + '__global__ void k(int* p) {\n  p[1] = 1;\n  p[2] = 1;\n}\nint main() { k<<<1, 1>>>(device<int>(1)); std::puts("never"); }'
        )
        self.assertEqual((done.returncode, done.stdout, len(REPORTS.findall(done.stderr))), (1, "", 1))
        self.assertNotIn(SUMMARY, done.stderr)


if __name__ == "__main__":
    unittest.main()
