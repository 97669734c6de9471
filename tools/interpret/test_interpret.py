"""Tests of whole programs: what is refused, what a compile error and a report name, arguments, exit codes, counters, the cache.

The environment variable COURSE_BUILD names CMake's folder; without it only what needs no compiler is tested.
"""

import contextlib
import glob
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import time
import unittest

import interpret
import strangers
from program import Program
from testing import BUILD, HERE, Folder


class Refusals(Folder):
    def refusal(self, text):
        found = Program(self.write("x.cu", text), [], interpret.ROOT).refusals()
        return str(found[0]).replace(os.path.join(self.folder, "x.cu:"), "") if found else None

    def test_what_stays_out_is_named_with_its_line(self):
        for text, line, feature in (
            ("#include <thrust/reduce.h>\nint x; void f() { thrust::reduce(&x, &x); }\n", 2, "the library thrust: the interpreter does not have it. There are host_vector,"),
            ("#include <cub/cub.cuh>\nusing namespace cub;\n", 2, "the library CUB"),
            ("#include <cublas_v2.h>\ncublasHandle_t h;\nint x = cublasSaxpy(h);\n", 3, "the library cuBLAS (cublasSaxpy)"),
            ("#include <cufft.h>\n#define CHECK(x) if (x != CUFFT_SUCCESS) exit(1)\nint main() { CHECK(0); }\n", 3, "(CUFFT_SUCCESS)"),
            ("#include <curand_kernel.h>\n__global__ void k(curandState* s) {}\n", 2, "the library cuRAND (curandState)"),
            ("#include <cuda_awbarrier_primitives.h>\n__mbarrier_t b;\n", 2, "cuda::barrier"),
            ("#include <cutlass/cutlass.h>\ncutlass::half_t x;\n", 2, "with -I"),
            ("#include <cuda.h>\nint main() { return cuInit(0) + cuMemFree(0); }\n", 2, "the driver API (cuMemFree)"),
            ("\n\n__global__ void k(cudaTextureObject_t t) {}\n", 3, "textures"),
            ("__global__ void c();\n__global__ void k() {\n  c<<<1, 1>>>(); }\n", 3, "dynamic parallelism"),
            ("__global__ void k() { float v = __shfl_down(1.0f, 2); }\n", 1, "without _sync"),
            ("int main() { cudaGraph_t g; cudaGraphDebugDotPrint(g, 0, 0); }\n", 1, "CUDA graphs (cudaGraphDebugDotPrint)"),
            ("__global__ void k(cudaGraphConditionalHandle h) {\n  cudaGraphSetConditional(h, 1); }\n", 2, "conditions in CUDA graphs"),
            ("int main() { int n; cudaOccupancyMaxActiveClusters(&n, k, &c); }\n", 1, "clusters"),
            ("__device__ int f() {\n NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return 1;), (return 2;)) }\n", 2, "NV_IF_ELSE_TARGET"),
            ("\n__global__ int k() { return 1; }\n", 2, "a __global__ function must have a void return type"),
            ("template <class T> static __global__ float* __launch_bounds__(32) k(T x) {}\n", 1, "must have a void return type"),
            ("__global__ void* k(int x) {}\n", 1, "must have a void return type"),
            ("__global__ void k(int x) {}\nint main() {\n  k(1); }\n", 3, "a __global__ function call must be configured"),
            ("void f(int x) {}\nint main() {\n  f<<<1, 1>>>(1); }\n", 3, "a host function call cannot be configured"),
        ):
            with self.subTest(text):
                found = self.refusal(text)
                self.assertIsNotNone(found)
                self.assertTrue(found.startswith(f"{line}: "), found)
                self.assertIn(feature, found)

    def test_what_only_looks_like_it_is_not(self):
        for text in (
            "// tex2D(t, 1, 2) and asm volatile\nint main() {}\n",
            'const char* s = "cudaGraph_t tex1D<float>(x)";\n',
            "int tex2D(int x) { return x; }\nint y = tex2D(1);\n",
            "struct S { int wmma() { return 1; } }; int x = S().wmma();\n",
            "__global__ void k();\nint main() { k<<<1, 1>>>(); }\n",
            "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n",
            "#include <cublas_v2.h>\n#include <mma.h>\n#include <thrust/sort.h>\nint cub = 1, thrust = 2;\n",
            "#include <thrust/device_vector.h>\nthrust::device_vector<int> v;\nnvcuda::wmma::layout_t l;\n",
            "#include <cufft.h>\n#define CHECK(x) if (x != CUFFT_SUCCESS) exit(1)\nint main() {}\n",
            "#include <cublas_v2.h>\nint f(cublasHandle_t h) { return cublasSgemm(h, CUBLAS_OP_N) == CUBLAS_STATUS_SUCCESS && cublasCreate(&h); }\n",
            "namespace wmma { int x; } int cublasMine = wmma::x;\n",
            "#include <cublas_v2.h>\nvoid cublasCheck(int e, int l) {}\n#define cublasCheck(e) (cublasCheck(e, __LINE__))\nint main() { cublasCheck(1); }\n",
            "#include <cublas_v2.h>\n#include <nccl.h>\ncublasHandle_t cublas_handle;\nint nccl_id = 0;\n",
            "#define __shfl_down(x, d) __shfl_down_sync(~0u, x, d)\n__global__ void k() { float v = __shfl_down(1.0f, 2); }\n",
            "template <int n> __global__ void __launch_bounds__(n) k(int x, float* y) {}\n",
            "#define KERNEL(T) __global__ T\nKERNEL(void) k(int x) {}\n",
            "__global__ auto k(int x) -> void {}\n",
            "__global__ void k(int* x) {}\nvoid k(int x) {}\nint main() { k(1); }\n",
            "__global__ void k(int x) {}\nint main() { auto k = [](int) {}; k(1); }\n",
            "__global__ void k(int x) {}\nstruct S { void f(); }; void S::f() { void k(int); }\n",
            "void f(int x) {}\nvoid run(void (*f)(int)) { f<<<1, 1>>>(1); }\n",
        ):
            with self.subTest(text):
                self.assertIsNone(self.refusal(text))


class Samples(Folder):
    def test_the_table_of_strangers_is_the_scripts(self):
        with open(os.path.join(interpret.ROOT, "docs/results/interpreter/strangers.md"), encoding="utf-8") as page:
            self.assertTrue(page.read().endswith("\n" + strangers.table()), "tools/interpret/samples.py --table prints it")

    def test_a_copy_is_made_small_and_the_original_stays(self):
        self.write("in/a.cu", "__global__ void k() { int n = 8192; }\nint main() { int n = 8192; }\n")
        copy = os.path.join(self.folder, "out")
        repository = strangers.Repository("", "", [], (("*.cu", r"n = 8192", "n = 64"),), behind="int main(", more={"b.cu": ("a.cu", (("64", "32"),))})
        repository.prepare(os.path.join(self.folder, "in"), copy)
        for path, text in (("in/a.cu", "8192; }\nint main() { int n = 8192;"), ("out/a.cu", "8192; }\nint main() { int n = 64;"), ("out/b.cu", "n = 32")):
            with open(os.path.join(self.folder, path), encoding="utf-8") as stream:
                self.assertIn(text, stream.read())
        with self.assertRaisesRegex(ValueError, "n = 8193"):
            strangers.Repository("", "", [], (("*.cu", r"n = 8193", ""),)).prepare(os.path.join(self.folder, "in"), copy)


class Programs(Folder):
    def test_headers_of_the_users_own_are_rewritten(self):
        self.write("inner/b.cuh", "#pragma once\ntemplate <class K> void start(K k) { k<<<1, 2>>>(); }\n")
        self.write("inner/a.cuh", '#include "b.cuh"\n')
        path = self.write("x.cu", '#include "a.cuh"\n#include <cuda_runtime.h>\n')
        program = Program(path, [os.path.join(self.folder, "inner")], interpret.ROOT)
        self.assertEqual(len(program.files), 3)
        result = program.write(self.folder)
        with open(result, encoding="utf-8") as stream:
            text = stream.read()
        self.assertIn("1_a.cuh", text)
        self.assertIn("#include <cuda_runtime.h>", text)
        with open(os.path.join(self.folder, "2_b.cuh"), encoding="utf-8") as stream:
            self.assertNotIn("<<<", stream.read())

    def test_the_hash_knows_headers_and_options(self):
        self.write("a.h", "int a;\n")
        path = self.write("x.cu", '#include "a.h"\n')
        first = Program(path, [], interpret.ROOT)
        self.assertEqual(first.hash("o"), Program(path, [], interpret.ROOT).hash("o"))
        self.assertNotEqual(first.hash("o"), first.hash("p"))
        self.write("a.h", "int b;\n")
        self.assertNotEqual(first.hash("o"), Program(path, [], interpret.ROOT).hash("o"))

    def test_the_first_error_is_taken_out(self):
        output = "In file included from a:\nx.cu:3:5: error: bad\n    3 |  bad;\n      |  ^~~\nx.cu:4:1: error: worse\n"
        self.assertEqual(interpret.first_error(output), "x.cu:3:5: error: bad\n    3 |  bad;\n      |  ^~~")
        self.assertEqual(interpret.first_error("a b.cu:3:1: error: bad\n  3 | k();\na b.cu: In function ‘int main()’:"), "a b.cu:3:1: error: bad\n  3 | k();")
        self.assertEqual(interpret.first_error("x.cu:3:9: error: bad\n  3 | k();\nIn file included from y:"), "x.cu:3: error: bad")

    def test_what_the_linker_misses_is_the_interpreters_another_files_or_main(self):
        for name, code, words in (
            ("cublasCreate", 2, "a b.cu:7: cublasCreate: the interpreter does not have it."),
            ("__cudaNew", 2, "a b.cu:7: __cudaNew: the interpreter does not have it."),
            ("cudaCheck(int)", 1, "a b.cu:7: error: undefined reference to 'cudaCheck(int)'"),
            ("f(int)", 1, "a b.cu:7: error: undefined reference to 'f(int)': if it stands in another file"),
            ("main", 1, "x.cu: error: there is no main() in it"),
        ):
            with self.subTest(name):
                output = f"/usr/bin/ld: p.o: in function `k':\na b.cu:7: undefined reference to `{name}'\ncollect2: error"
                found = interpret.unresolved(output, "x.cu")
                self.assertEqual(found[0], code)
                self.assertTrue(found[1][0].startswith(words), found[1])
        self.assertIsNone(interpret.unresolved("ld: cannot find -lx", "x.cu"))

    def test_the_cache_forgets_what_was_not_used_for_longest(self):
        cache = interpret.Cache(os.path.join(self.folder, "cache"))
        for number in range(interpret.KEPT_PROGRAMS + 2):
            self.write(f"cache/new.{number}/program", "x")
            os.chmod(os.path.join(self.folder, f"cache/new.{number}/program"), 0o755)
            os.utime(os.path.join(self.folder, f"cache/new.{number}"), (number + 1, number + 1))
            cache.store(f"key{number}", os.path.join(self.folder, f"cache/new.{number}"))
        self.assertIsNone(cache.find("key0"))
        self.assertIsNotNone(cache.find("key5"))
        self.assertEqual(len([n for n in os.listdir(cache.folder) if n.startswith("key")]), interpret.KEPT_PROGRAMS)


def command_lines():
    """Of all processes."""
    lines = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as stream:
            lines.append(stream.read().replace(b"\0", b" ").decode(errors="replace"))
    return lines


KERNELS = """
#include <cstdio>
#include <cuda_runtime.h>
extern __shared__ float scratch[];
template <int factor, class T> __global__ void scale(T* x, T y, unsigned n) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x < n) x[threadIdx.x] *= y * factor;
#endif
}
__global__ void reverse(float* x, int n = 64) {
  scratch[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = scratch[n - 1 - threadIdx.x];
}
#define RUN(kernel, ...) kernel<<<dim3(1), 64, 64 * sizeof(float)>>>(__VA_ARGS__)
"""
MAIN = """
int main(int argc, char** argv) {
#ifdef __CUDA_ARCH__
  return 9;
#endif
  float host[64], *d;
  for (int i = 0; i < 64; ++i) host[i] = i;
  cudaMalloc((void**)&d, sizeof host);
  cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice);
  scale<2><<<1, 64>>>(d, 3.0f, 64u);
  RUN(reverse, d);
  auto again = [&] { reverse<<<1, 64, 256>>>(d, 64); };
  again(), RUN((reverse), d, 64);
  const cudaError_t error = (reverse<<<1, 2000>>>(d), cudaGetLastError());
  cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost);
  int c = getchar();
  printf("%g %s %d %s %c\\n", host[0], cudaGetErrorName(error), argc, argv[argc - 1], c);
  return argc;
}
"""


@unittest.skipUnless(BUILD, "needs COURSE_BUILD, a built interpreter")
class Preludes(Folder):
    def test_what_is_out_of_date_is_not_used(self):
        """g++ itself does not look whether a header has changed since it was precompiled."""
        prelude = os.path.join(self.folder, "prelude.h")
        made = self.write("prelude.h.gch", "")
        self.assertEqual(interpret.preludes({"prelude": prelude}), [prelude])
        headers = os.path.join(interpret.ROOT, "common/interpreter/cuda_runtime")
        as_they_are = [os.path.join(headers, "members.h"), os.path.join(headers, "program.h")]
        os.utime(made, (0, 0))
        self.assertEqual(interpret.preludes({"prelude": prelude}), as_they_are)
        os.remove(made)
        self.assertEqual(interpret.preludes({"prelude": prelude}), as_they_are)

    def test_the_build_has_one_that_fits(self):
        """With other options than it was made with, g++ would read the headers, and nobody would notice."""
        with open(os.path.join(BUILD, "interpret.json"), encoding="utf-8") as stream:
            build = json.load(stream)
        if "clang" in build["compiler"]:
            self.skipTest("for g++ alone")
        options = interpret.parse(["--build", BUILD, "--cache", self.folder, self.write("x.cu", "int main() {}\n")])
        command = interpret.compile_command(build, options, options.file, os.path.join(self.folder, "x.o"))
        self.assertEqual([command[i + 1] for i, word in enumerate(command) if word == "-include"], [build["prelude"]])
        made = subprocess.run([*command, "-Winvalid-pch", "-H"], capture_output=True, text=True)
        self.assertIn(f"! {build['prelude']}.gch", made.stderr)


@unittest.skipUnless(BUILD, "needs COURSE_BUILD, a built interpreter")
class Runs(Folder):
    def test_a_program_runs_with_its_arguments(self):
        result = self.interpret(KERNELS + MAIN, "a", "b c", typed="z", options=("--order", "reverse"))
        self.assertEqual(result.stdout, "378 cudaErrorInvalidConfiguration 3 b c z\n", result.stderr)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(len([line for line in result.stderr.split("\n") if line]), 1)  # of the launch that cannot be
        counted = self.interpret(KERNELS + MAIN, options=("--count",), typed="z")
        self.assertIn("3 launches of\n", counted.stdout)
        self.assertIn("scale<2, float>", counted.stdout)
        self.assertIn("x.cu:7 ", counted.stdout)

    def test_a_report_names_the_users_own_line_and_variable(self):
        result = self.interpret(
            "__global__ void k(int* x) {\n  x[threadIdx.x] = 1;\n}\nint main() {\n  int* numbers;\n  cudaMalloc(&numbers, 124);\n"
            "  k<<<1,\n     32>>>(numbers);\n  return 0;\n}\n"
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("memcheck: write of 4 bytes out of bounds: numbers", result.stderr)
        self.assertIn("x.cu:2\n", result.stderr)
        self.assertIn("thread   (31,0,0)", result.stderr)

    def test_the_manuals_examples_do_what_it_says(self):
        with open(os.path.join(HERE, "../../docs/examples/saxpy.cu"), encoding="utf-8") as stream:
            text = stream.read()
        right = self.interpret(text, options=("--count",))
        self.assertEqual(right.returncode, 0, right.stderr)
        self.assertTrue(right.stdout.startswith("0 of 1000 elements are wrong\n"), right.stdout)
        with open(os.path.join(HERE, "../../docs/interpret.md"), encoding="utf-8") as stream:
            text = stream.read().split("```cpp\n")[1].split("```")[0]
        first = self.interpret(text)
        self.assertEqual(first.returncode, 1)
        self.assertIn("out of bounds: dynamic shared memory (byte 256 of 256: int 64), through copy", first.stderr)
        both = self.interpret(text, options=("--keep-going",))
        self.assertEqual((both.returncode, both.stdout.count("\n")), (1, 1), both.stderr)
        self.assertIn("out of bounds: dynamic shared memory (byte 256 of 256: int 64), through copy", both.stderr)
        self.assertIn("race on dynamic shared memory", both.stderr)
        second = self.interpret(text.replace("blockDim.x - threadIdx.x", "blockDim.x - 1 - threadIdx.x"))
        self.assertEqual(second.returncode, 1)
        self.assertRegex(second.stderr, "race on dynamic shared memory .*through copy")
        self.assertIn("__syncthreads()", second.stderr)

    def test_the_cache_knows_what_rewrites_the_program(self):
        with open(os.path.join(BUILD, "interpret.json"), encoding="utf-8") as stream:
            known = interpret.fingerprint(json.load(stream))
        for name in ("tools/interpret/inline_ptx.py", "tools/interpret/rewrite.py", "cuda_runtime/program.h"):
            self.assertIn(name, known)

    def test_constants_may_be_templates_and_an_arrival_at_the_clusters_barrier_relaxed(self):
        text = """#include <cstdio>
template <class T> __constant__ T quarter = T(0.25);
__global__ void __cluster_dims__(2, 1, 1) k(float* out) {
  __prof_trigger(1);
  __cluster_barrier_arrive_relaxed();
  __cluster_barrier_wait();
  if (threadIdx.x == 0) out[blockIdx.x] = quarter<float>;
}
int main() {
  float h[2], *d;
  cudaMalloc(&d, sizeof h);
  k<<<2, 32>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%g %g\\n", h[0], h[1]);
}
"""
        result = self.interpret(text)
        self.assertEqual((result.returncode, result.stdout), (0, "0.25 0.25\n"), result.stderr)

    def test_order_and_scope_of_inline_ptx(self):
        text = """#include <cstdint>
#include <cstdio>
#include <cstdlib>
__device__ uint32_t address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ bool is_over(uint64_t* bar, bool relaxed) {
  uint32_t over;
  if (relaxed) asm volatile("{\\n.reg .pred p;\\nmbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], 0;\\nselp.u32 %0, 1, 0, p;\\n}" : "=r"(over) : "r"(address(bar)) : "memory");
  else asm volatile("{\\n.reg .pred p;\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\\nselp.u32 %0, 1, 0, p;\\n}" : "=r"(over) : "r"(address(bar)) : "memory");
  return over;
}
__device__ void fence() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }
template <int V> __global__ void mbarrier(int* out) {
  __shared__ int s;
  __shared__ alignas(16) int box[4];
  __shared__ alignas(8) uint64_t bar;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&bar)) : "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    s = 7;
    if (V == 19) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;\\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], 16, [%0];" ::"r"(address(&bar)), "r"(address(box)), "l"(out) : "memory");
    if (V == 19) return;
    if (V == 2) fence();
    if (V == 1 || V == 2) asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(address(&bar)) : "memory");
    else asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&bar)) : "memory");
  } else if (threadIdx.x == 32) {
    if (V == 5 || V == 19) is_over(&bar, false);
    else while (!is_over(&bar, V == 3 || V == 4)) {}
    if (V == 4) fence();
    *out = V == 19 ? box[0] : s;
  }
}
template <int V> __global__ void __cluster_dims__(2, 1, 1) cluster(int* out) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 7;
  if (V == 7) fence();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  uint32_t there;
  int x;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(&s)), "r"(blockIdx.x ^ 1));
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(x) : "r"(there) : "memory");
  if (threadIdx.x == 0 && blockIdx.x == 0) *out = x;
  asm volatile("barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
template <int V> __global__ void flag(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 7;
    if (V == 9) asm volatile("st.release.cta.global.b32 [%0], 1;" ::"l"(flag) : "memory");
    else asm volatile("st.release.gpu.global.b32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    int x = 0;
    while (!x) {
      if (V == 8) asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(x) : "l"(flag) : "memory");
      else asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(flag) : "memory");
    }
    *out = *data;
  }
}
// Within a block, that scope is enough.
__global__ void flag_in_block(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) {
    *data = 7;
    asm volatile("st.release.cta.global.b32 [%0], 1;" ::"l"(flag) : "memory");
  } else if (threadIdx.x == 32) {
    int x = 0;
    while (!x) asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(x) : "l"(flag) : "memory");
    *out = *data;
  }
}
template <int V> __global__ void warps(int* out) {
  __shared__ int s[128];
  s[threadIdx.x] = 7;
  if (V == 12 && threadIdx.x % 32 < 16) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (V == 13 && threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (V == 14 && threadIdx.x % 32 < 16) asm volatile("barrier.sync 1, 64;" ::: "memory");
  if (threadIdx.x == 0) *out = s[V == 13 ? 63 : 111];
}
template <int V> __global__ void masks(int* out) {
  const int t = threadIdx.x;
  int x = 7;
  if (V == 15) x = __shfl_xor_sync(t < 16 ? ~0u : ~0u << 16, 7, 1);
  if (V == 16) x = 7 * __any_sync(t < 16 ? 0xffffu : ~0u << 16, 1);
  // Masks that grow: who is named comes later.
  if (V == 17)
    for (int n = 2; n <= 32; n *= 2)
      if (t < n) x = __shfl_xor_sync(n == 32 ? ~0u : (1u << n) - 1, x, n / 2);
  if (V == 18 && t < 16) x = __shfl_down_sync(~0u, 7, 1, 16);  // the others have exited
  if (t == 0) *out = x;
}
int main(int argc, char** argv) {
  const int v = std::atoi(argv[1]);
  int *out, *data, *flags, x;
  cudaMalloc(&out, 4), cudaMalloc(&data, 16), cudaMalloc(&flags, 4);
  cudaMemset(flags, 0, 4), cudaMemset(data, 0, 16);
#define CASE(n, launch) if (v == n) launch;
  CASE(1, (mbarrier<1><<<1, 64>>>(out))) CASE(2, (mbarrier<2><<<1, 64>>>(out))) CASE(3, (mbarrier<3><<<1, 64>>>(out)))
  CASE(4, (mbarrier<4><<<1, 64>>>(out))) CASE(5, (mbarrier<5><<<1, 64>>>(out))) CASE(6, (cluster<6><<<2, 32>>>(out)))
  CASE(7, (cluster<7><<<2, 32>>>(out))) CASE(8, (flag<8><<<2, 1>>>(data, flags, out))) CASE(9, (flag<9><<<2, 1>>>(data, flags, out)))
  CASE(10, (flag<10><<<2, 1>>>(data, flags, out))) CASE(11, (flag_in_block<<<1, 64>>>(data, flags, out)))
  CASE(12, (warps<12><<<1, 128>>>(out))) CASE(13, (warps<13><<<1, 128>>>(out))) CASE(14, (warps<14><<<1, 128>>>(out)))
  CASE(15, (masks<15><<<1, 32>>>(out))) CASE(16, (masks<16><<<1, 32>>>(out))) CASE(17, (masks<17><<<1, 32>>>(out)))
  CASE(18, (masks<18><<<1, 32>>>(out))) CASE(19, (mbarrier<19><<<1, 64>>>(data)))
  cudaMemcpy(&x, out, 4, cudaMemcpyDeviceToHost);
  std::printf("%d\\n", x);
}
"""
        race, of_two = "race on ", "race on (flags|data)"  # which one is seen first depends on when the second block begins
        wrong = {1: f"{race}s", 3: f"{race}s", 5: f"{race}s", 6: f"{race}s", 8: of_two, 9: of_two, 12: f"{race}s|uninitialised bytes of s", 19: f"{race}box", 15: "__shfl_xor_sync with masks that differ"}
        for case in range(1, 20):
            with self.subTest(case):
                result = self.interpret(text, str(case))
                if case in wrong:
                    self.assertEqual(result.returncode, 1, result.stdout)
                    self.assertRegex(result.stderr, wrong[case])
                else:
                    self.assertEqual((result.returncode, result.stdout), (0, "7\n"), result.stderr)

    def test_what_a_hopper_gpu_allows(self):
        text = """#include <cuda.h>
#include <cuda/barrier>
#include <cstdio>
#include <cstdlib>
namespace cde = cuda::device::experimental;
__device__ uint32_t address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__global__ void many_bytes(int* out) {
  __shared__ int a[64][128], b[64][128];
  a[0][0] = 3, b[63][127] = 4;
  *out = a[0][0] + b[63][127];
}
__global__ void sixteen(int* out) {
  uint32_t blocks;
  asm("mov.u32 %0, %cluster_nctaid.x;" : "=r"(blocks));
  if (blockIdx.x == 0) *out = blocks - 9;
}
template <class T> __global__ void of_template(T* out, T value) { *out = value; }
__global__ void half_a_pointer(int* out) {
  __shared__ alignas(16) uint16_t s[64];
  s[2 * threadIdx.x] = s[2 * threadIdx.x + 1] = threadIdx.x + 1;
  __syncthreads();
  uint32_t r, at = uint32_t(uintptr_t(&s[threadIdx.x % 8 * 8]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(at));
  if (threadIdx.x == 6) *out = r & 0xffff;
}
template <int V> __global__ void __cluster_dims__(2) remote(int* out) {
  __shared__ alignas(8) uint64_t bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;\\nfence.mbarrier_init.release.cluster;" ::"r"(address(&bar)) : "memory");
  }
  asm volatile("barrier.cluster.arrive;\\nbarrier.cluster.wait;" ::: "memory");
  for (uint32_t rank = 0; rank < 2; ++rank)
    asm volatile("{\\n.reg .b32 a;\\nmapa.shared::cluster.u32 a, %0, %1;\\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [a], %2;\\n}" ::"r"(address(&bar)), "r"(rank), "r"(V == 6 ? 3 : 2) : "memory");
  uint32_t done = 0;
  while (!done)
    asm volatile("{\\n.reg .pred p;\\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\\nselp.u32 %0, 1, 0, p;\\n}" : "=r"(done) : "r"(address(&bar)) : "memory");
  if (blockIdx.x == 0) *out = 7;
  asm volatile("barrier.cluster.arrive;\\nbarrier.cluster.wait;" ::: "memory");
}
// A bulk copy through libcu++, with the state that arrive.expect_tx gives; and back.
template <int V> __global__ void bulk(const int* in, int* out) {
  __shared__ alignas(16) int tile[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x), cde::fence_proxy_async_shared_cta();
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_global_to_shared(tile, in, sizeof tile, bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
  } else {
    token = bar.arrive();
  }
  if (V != 8) bar.wait(std::move(token));
  tile[threadIdx.x] += 4;
  if (V != 9) cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_shared_to_global(out, tile, sizeof tile);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
  }
}
__device__ void load(void* to, const CUtensorMap& map, cuda::barrier<cuda::thread_scope_block>& bar) {
  cde::cp_async_bulk_tensor_1d_global_to_shared(to, &map, 0, bar);
}
__global__ void right_box(const __grid_constant__ CUtensorMap map, int* out) {
  __shared__ alignas(128) int tile[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  init(&bar, 1), cde::fence_proxy_async_shared_cta();
  load(tile, map, bar);
  bar.wait(cuda::device::barrier_arrive_tx(bar, 1, sizeof tile));
  *out = tile[0] + 4;
}
__global__ void wrong_box(const CUtensorMap map, int* out) {
  __shared__ alignas(128) int tile[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  init(&bar, 1), cde::fence_proxy_async_shared_cta();
  load(tile, map, bar);
  bar.wait(cuda::device::barrier_arrive_tx(bar, 1, sizeof tile));
  *out = tile[0] + 4;
}
int main(int argc, char** argv) {
  const int v = std::atoi(argv[1]);
  int *out, *in, x, host[64] = {3};
  cudaMalloc(&out, 256), cudaMalloc(&in, 256);
  cudaMemcpy(in, host, 256, cudaMemcpyHostToDevice);
  const char* text;
  if (cuInit(0) || cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text)) return 9;
  cudaLaunchConfig_t config{};
  config.gridDim = 16, config.blockDim = 1;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension, attribute.val.clusterDim = {16, 1, 1};
  config.attrs = &attribute, config.numAttrs = 1;
  if (v == 1) many_bytes<<<1, 1>>>(out);
  if (v == 2) cudaFuncSetAttribute(sixteen, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  if (v == 2 || v == 3) printf("%s\\n", cudaGetErrorName(cudaLaunchKernelEx(&config, sixteen, out)));
  if (v == 4) {
    void const* kernel = reinterpret_cast<void const*>(&of_template<int>);
    int value = 7;
    void* arguments[] = {&out, &value};
    config.gridDim = 1, config.numAttrs = 0;
    cudaLaunchKernelExC(&config, kernel, arguments);
  }
  if (v == 5) remote<5><<<2, 1>>>(out);
  if (v == 6) remote<6><<<2, 1>>>(out);
  if (v == 7) bulk<7><<<1, 64>>>(in, out);
  if (v == 8) bulk<8><<<1, 64>>>(in, out);
  if (v == 9) bulk<9><<<1, 64>>>(in, out);
  if (v == 10) half_a_pointer<<<1, 32>>>(out);
  CUtensorMap map;
  const cuuint64_t size = 64;
  const cuuint32_t box = 64, step = 1;
  if (cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 1, in, &size, &size, &box, &step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) return 8;
  if (v == 11) right_box<<<1, 1>>>(map, out);
  if (v == 12) wrong_box<<<1, 1>>>(map, out);
  cudaMemcpy(&x, out, 4, cudaMemcpyDeviceToHost);
  printf("%d %s\\n", x, text);
}
"""
        said = {1: "for sm_90a alone", 3: "NonPortableClusterSizeAllowed", 6: "3 arrivals more", 8: "race on tile", 9: "fence.proxy.async", 10: "half a pointer", 12: "parameter without __grid_constant__"}
        for case in range(1, 13):
            with self.subTest(case):
                result = self.interpret(text, str(case))
                self.assertIn(said.get(case, ""), result.stderr)
                self.assertEqual(result.returncode, 1 if case in (6, 8, 9, 12) else 0, result.stderr)
                if case in (2, 3):
                    self.assertTrue(result.stdout.startswith("cudaSuccess\n" if case == 2 else "cudaErrorInvalidClusterSize\n"))
                if result.returncode == 0 and case != 3:
                    self.assertTrue(result.stdout.endswith("7 invalid argument\n"), result.stdout)

    def test_the_pipelines_copies_are_under_way_until_they_are_waited_for(self):
        text = """#include <cstdio>
#include <cuda_pipeline_primitives.h>
__global__ void reverse(int* x) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4, threadIdx.x == 5 ? 4 : 0);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  x[threadIdx.x] = s[63 - threadIdx.x];
}
int main() {
  int h[64], *x;
  for (int i = 0; i < 64; ++i) h[i] = i;
  cudaMalloc(&x, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  reverse<<<1, 64>>>(x);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  std::printf("%d %d\\n", h[0], h[58]);
}
"""
        right = self.interpret(text)
        self.assertEqual((right.returncode, right.stdout), (0, "63 0\n"), right.stderr)
        wrong = self.interpret(text.replace("wait_prior(0)", "wait_prior(1)"))
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("read before its cp.async was waited for", wrong.stderr)
        self.assertIn("x.cu:9\n", wrong.stderr)
        wrong = self.interpret(text.replace("wait_prior(0)", "wait_prior(1)").replace("_primitives.h", ".h"))
        self.assertIn("read before its cp.async was waited for", wrong.stderr)
        self.assertIn("x.cu:9\n", wrong.stderr)

    def test_host_and_device_each_see_their_own_architecture(self):
        result = self.interpret("""#include <cstdio>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HAS_TMA 1
#else
#define HAS_TMA 0
#endif
#define BOTH __host__ __device__
struct Noisy { Noisy() { printf("once\\n"); } } noisy;
constexpr int kValue = HAS_TMA ? 900 : 1;
BOTH int which() {
#ifdef __CUDA_ARCH__
  return 1;
#else
  return 0;
#endif
}
static __device__ int counter = 3;
namespace { __device__ float2 pair = make_float2(1, 2); }
__managed__ int of_both = 5;
__constant__ int constants[2];
template <class T> __global__ void __launch_bounds__(64) fill(T* x) { x[threadIdx.x] = HAS_TMA + kValue + which() + constants[1] + int(pair.y); }
template <class T, int n = 1> __global__ void deduced(T* x, int m = 4) { *x += n + m + HAS_TMA, ++counter, of_both += 10; }
template <class F> __global__ void call(int* x, F f) { *x += f(1); }
__global__ void by_address(int* x) { extern __shared__ int s[]; *s = which(), *x += *s; }
int main() {
  int *x, h[2] = {7, 8};
  cudaMalloc(&x, 32 * sizeof *x);
  cudaMemcpyToSymbol(constants, h, sizeof h);
  fill<<<1, 32>>>(x);
  deduced<<<1, 1>>>(x);
  call<<<1, 1>>>(x, [] __device__(int i) { return i + 1000 * HAS_TMA; });
  void* arguments[] = {&x};
  cudaFuncSetAttribute(by_address, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
  cudaLaunchKernel((const void*)by_address, 1, 1, arguments, 100000, 0);
  cudaMemcpyFromSymbol(h, counter, sizeof *h);
  cudaMemcpy(h + 1, x, sizeof *x, cudaMemcpyDeviceToHost);
  printf("%d %d %d host %d %d %d\\n", h[1], h[0], of_both, HAS_TMA, kValue, which());
  fill<<<1, 128>>>(x);
  if (cudaGetLastError() == cudaErrorInvalidConfiguration) fill<<<1, 33>>>(x);
}
""")
        self.assertEqual((result.returncode, result.stdout), (1, f"once\n{1 + 900 + 1 + 8 + 2 + 6 + 1001 + 1} 4 15 host 0 1 0\n"), result.stderr)
        self.assertIn("__launch_bounds__", result.stderr)
        self.assertIn("x.cu:21", result.stderr)

    def test_what_only_one_view_launches_is_told(self):
        result = self.interpret("""#include <cstdio>
template <int n> __global__ void k() {}
int main() {
#ifdef __CUDA_ARCH__
  k<1><<<1, 1>>>();
#else
  k<2><<<1, 1>>>();
#endif
  printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
}
""")
        self.assertEqual((result.returncode, result.stdout), (0, "cudaErrorInvalidDeviceFunction\n"), result.stderr)
        self.assertIn("only the host's view has the kernel", result.stderr)

    def test_ptx_is_refused_where_the_program_comes_to_it(self):
        text = """#include "mma.h"
#include <cublas_v2.h>
#include <cstdio>
#ifdef __CUDACC__
#define LOOK(x) asm("ld.mmio.relaxed.sys.u32 %0, [%1];" : "=r"(x) : "l"(&x))
#else
#define LOOK(x) x
#endif
#define OUT(x) "=r"(x)
#define SET(n, ...) asm volatile("{\\n" "mov.b32 %0, " #n ";\\n" "}" : __VA_ARGS__)
#define ASM asm volatile
#define NOTHING asm volatile("nop")
template <class T> __device__ void of_many_gpus(T* x) {
  unsigned r;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u32 %0, [%1];" : "=r"(r) : "l"(x) : "memory");
}
struct Add {
  BOTH static void go(unsigned& b) { asm volatile("add.u32 %0, %0, 100;" : "+r"(b)); }
};
__global__ void k(unsigned* x) {
  unsigned v;
  SET(5,
      OUT(v));
  ASM("add.u32 %0, %0, %1;" : "+r"(v) : "n"(7));
  Add::go(v);
  *x = v;
#ifdef MORE
  of_many_gpus(x);
  LOOK(
      *x);
  asm("mov.u32 %0, %%pm0;" : "=r"(v));
#endif
  x[WHERE] = v;
}
int main() {
  NOTHING;
  half h = 1;
  unsigned* x;
  cudaMalloc(&x, 4);
  k<<<1, 1>>>(x);
  cudaMemcpy(&h, x, 1, cudaMemcpyDeviceToHost);
  cudaMemcpy(&h, x, 2, cudaMemcpyDeviceToHost);
  printf("%d\\n", (int)__half_as_ushort(h));
}
"""
        self.write("mma.h", "#define BOTH __forceinline__ __host__ __device__\n")
        result = self.interpret(text, options=["-D", "WHERE=0"])
        self.assertEqual((result.returncode, result.stdout), (0, "112\n"), result.stderr)
        self.assertIn("x.cu:33\n", self.interpret(text, options=["-D", "WHERE=1"]).stderr)
        refused = self.interpret(text, options=["-D", "WHERE=0", "-D", "MORE"])
        self.assertEqual(refused.returncode, 2)
        for line in ("15: inline PTX (multimem.ld_reduce.relaxed.sys.global.add.u32)", "29: inline PTX (ld.mmio.relaxed.sys.u32)", "31: inline PTX (%pm0)"):
            self.assertIn(f"x.cu:{line}: the interpreter does not have it. docs/interpret.md lists", refused.stderr)
        other = self.interpret(text.replace("#ifdef __CUDACC__", "#ifdef WITH_PTX"), options=["-D", "WHERE=0"])
        self.assertEqual(other.returncode, 0, other.stderr)

    def test_a_program_compares_with_cublas(self):
        result = self.interpret("""#include <cublas_v2.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(call) \\
  if (cublasStatus_t s = call; s != CUBLAS_STATUS_SUCCESS) printf("%s\\n", cublasGetStatusString(s)), exit(9)
template <class T> T* device(const std::vector<T>& v) {
  T* p;
  cudaMalloc(&p, v.size() * sizeof(T));
  cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}
int main() {
  const int m = 5, n = 7, k = 3, lda = 8, ldb = 9, ldc = 6, count = 2;
  std::vector<float> a(lda * 5 * count), b(ldb * 7 * count), c(ldc * n * count, 2);
  for (auto& x : a) x = rand() % 9 - 4;
  for (auto& x : b) x = rand() % 9 - 4;
  float *A = device(a), *B = device(b), *C;
  cublasHandle_t h;
  CHECK(cublasCreate(&h));
  CHECK(cublasSetStream(h, 0));
  int wrong = 0;
  for (int ta = 0; ta < 2; ++ta)
    for (int tb = 0; tb < 2; ++tb) {
      const float alpha = 2, beta = 3;
      C = device(c);
      std::vector<float> got(c.size());
      CHECK(cublasSgemmStridedBatched(h, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha, A, lda, lda * 5, B, ldb,
                                      ldb * 7, &beta, C, ldc, ldc * n, count));
      cudaMemcpy(got.data(), C, got.size() * 4, cudaMemcpyDeviceToHost);
      for (int z = 0; z < count; ++z)
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < ldc; ++i) {
            float sum = 0;
            for (int l = 0; l < k; ++l)
              sum += a[z * lda * 5 + (ta ? l + i * lda : i + l * lda)] * b[z * ldb * 7 + (tb ? j + l * ldb : l + j * ldb)];
            wrong += got[z * ldc * n + j * ldc + i] != (i < m ? 2 * sum + 6 : 2);
          }
    }
  std::vector<half> ones(64, half(1));
  std::vector<float> sums(64, NAN);
  half* H = device(ones);
  float* S = device(sums);
  const float one = 1, zero = 0;
  CHECK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_T, 8, 8, 8, &one, H, CUDA_R_16F, 8, H, CUDA_R_16F, 8, &zero, S, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP));
  CHECK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_T, 8, 8, 8, &one, H, CUDA_R_16F, 8, H, CUDA_R_16F, 8, &one, S, CUDA_R_32F, 8, CUDA_R_32F, CUBLAS_GEMM_ALGO3));
  cudaMemcpy(sums.data(), S, 256, cudaMemcpyDeviceToHost);
  for (float x : sums) wrong += x != 16;
  printf("%d wrong\\n", wrong);
  printf("%d\\n", cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, A, 4, B, 8, &zero, C, 8));
  CHECK(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 800, 8, 8, &one, A, 800, B, 8, &zero, C, 800));
}
""")
        self.assertEqual((result.returncode, result.stdout), (9, "0 wrong\n7\nthe function failed on the GPU\n"), result.stderr)
        self.assertIn("lda is 4, but a column has 8 elements", result.stderr)
        self.assertIn("cudaErrorInvalidValue", result.stderr)

    def test_graphs_and_boxes(self):
        for order in ("forward", "reverse"):
            ran = self.run_program(os.path.join(HERE, "programs/graphs.cu"), options=["--order", order])
            self.assertEqual((ran.returncode, ran.stdout), (0, "right\n"), ran.stderr)
        bug = self.interpret("""__global__ void k(int* x) { x[threadIdx.x] = 1; }
int main() {
  int* numbers;
  cudaStream_t s;
  cudaGraph_t g;
  cudaGraphExec_t e;
  cudaMalloc(&numbers, 124);
  cudaStreamCreate(&s);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  k<<<1, 32, 0, s>>>(numbers);
  cudaStreamEndCapture(s, &g);
  cudaGraphInstantiate(&e, g, 0);
#ifdef LAUNCH
  cudaGraphLaunch(e, s);
#endif
}
""", options=["-D", "LAUNCH"])
        self.assertEqual(bug.returncode, 1)
        self.assertRegex(bug.stderr, r"write of 4 bytes out of bounds: numbers[^\n]*\n  at [^\n]*x.cu:1\n")
        self.assertEqual(self.run_program(os.path.join(self.folder, "x.cu")).returncode, 0)

    def test_a_captured_product_of_cublas_is_a_node(self):
        ran = self.interpret(r"""#include <cublas_v2.h>
#define CHECK(x) if (x) return __LINE__
int main() {
  float* x; cudaGraph_t graph; cudaGraphExec_t exec; cudaStream_t stream;
  CHECK(cudaMallocManaged(&x, 3 * 4 * sizeof(float)));
  for (int i = 0; i < 12; ++i) x[i] = i < 8 ? i : -1;
  cublasHandle_t handle;
  float one = 1, zero = 0;
  cublasCreate(&handle);
  CHECK(cudaStreamCreate(&stream));
  cublasSetStream(handle, stream);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, x, 2, x + 4, 2, &zero, x + 8, 2));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(x[8] != -1);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(x[8] != 10 || x[9] != 19 || x[10] != 14 || x[11] != 27);
  return 0;
}
""")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_products_of_cublaslt_and_of_vectors(self):
        text = r"""#include <cmath>
#include <cstdio>
#include <cublasLt.h>
#include <omp.h>
#define CHECK(x) if (x) return __LINE__
int main() {
  float *a, *b, *d, *bias;  // a: 3 x 2, b: 3 x 4, d = a^T b
  cudaMallocManaged(&a, 6 * 4), cudaMallocManaged(&b, 12 * 4), cudaMallocManaged(&d, 8 * 4), cudaMallocManaged(&bias, 2 * 4);
  for (int i = 0; i < 12; ++i) b[i] = i % 5 - 2, a[i % 6] = i % 6 - 1, bias[i % 2] = i % 2 ? -3.5f : 0.25f;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t of_a, of_b, of_d;
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  const cublasOperation_t t = CUBLAS_OP_T;
  const float one = 1, zero = 0;
  CHECK(cublasLtCreate(&handle));
  CHECK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CHECK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t));
  CHECK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  CHECK(cublasLtMatrixLayoutCreate(&of_a, CUDA_R_32F, 3, 2, 3));
  CHECK(cublasLtMatrixLayoutCreate(&of_b, CUDA_R_32F, 3, 4, 3));
  CHECK(cublasLtMatrixLayoutCreate(&of_d, CUDA_R_32F, 2, 4, 2));
  CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CHECK(cublasLtMatmulAlgoGetHeuristic(handle, desc, of_a, of_b, of_d, of_d, preference, 1, &found, &count) || count != 1);
  for (const cublasLtEpilogue_t e : {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_GELU_BIAS}) {
    CHECK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof e));
    CHECK(cublasLtMatmul(handle, desc, &one, a, of_a, b, of_b, &zero, d, of_d, d, of_d, &found.algo, nullptr, 0, 0));
    int wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
    for (int i = 0; i < 8; ++i) {
      float x = 0;
      for (int k = 0; k < 3; ++k) x += a[k + i % 2 * 3] * b[k + i / 2 * 3];
      if (e & 4) x += bias[i % 2];
      if (e == CUBLASLT_EPILOGUE_RELU) x = x < 0 ? 0 : x;
      if (e & 32) x = x / 2 * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
      wrong += std::fabs(d[i] - x) > 1e-5f;
    }
    CHECK(wrong);
  }
  CHECK(cublasLtMatmul(handle, desc, &one, b, of_b, a, of_a, &zero, d, of_d, d, of_d, &found.algo, nullptr, 0, 0) != CUBLAS_STATUS_INVALID_VALUE);
  cublasHandle_t plain;
  CHECK(cublasCreate(&plain));
  // y = a^T x of every second element, and back
  CHECK(cublasSgemv(plain, CUBLAS_OP_T, 3, 2, &one, a, 3, b, 2, &zero, d, 3));
  CHECK(d[0] != a[0] * b[0] + a[1] * b[2] + a[2] * b[4] || d[3] != a[3] * b[0] + a[4] * b[2] + a[5] * b[4]);
  CHECK(cublasSgemv(plain, CUBLAS_OP_N, 3, 2, &one, a, 3, b, 1, &one, d, 1));
  CHECK(d[0] != a[0] * b[0] + a[1] * b[2] + a[2] * b[4] + a[0] * b[0] + a[3] * b[1]);
  std::printf("%d\n", omp_get_max_threads() > 0);
}
"""
        ran = self.interpret(text)
        self.assertEqual((ran.returncode, ran.stdout), (0, "1\n"), ran.stderr)
        self.assertIn("the matrices' shapes do not fit together", ran.stderr)

    def test_words_that_lead_to_the_mistake(self):
        text = """__global__ void same(int* x) { x[threadIdx.x / 2] = threadIdx.x; }
__global__ void far(unsigned char* c, int row, int ld) { c[row * ld] = 7; }
int main(int argc, char**) {
  unsigned char* c;
  cudaMalloc(&c, 2200000000);
  if (argc == 1) same<<<1, 32>>>((int*)c);
  if (argc == 2) far<<<1, 1>>>(c, 2199, 1000000);
  cudaFree(c);
  cudaFree(c);
}
"""
        self.assertIn("a place of its own for each thread: this store gives both the same one", self.interpret(text).stderr)
        far = self.interpret(text, "far")
        self.assertIn("in front of c. An index overflowed 32 bits: 2^32 more lies inside", far.stderr)
        self.assertIn("variable c\n", far.stderr)
        freed_twice = self.interpret(text, "free", "twice")
        self.assertEqual(freed_twice.returncode, 0)
        self.assertRegex(freed_twice.stderr, r"cudaFree gives .*, at .*x.cu:9\n")

    def test_all_refusals_come_at_once(self):
        refused = self.interpret("""#include <cufft.h>
#define CHECK(x) x
int main() {
  cufftHandle h;
  CHECK(
      cufftCreate(&h));
#if defined(NOBODY_HAS_THIS)
  cudaArray_t a;
#endif
  cudaOccupancyMaxActiveClusters(nullptr, nullptr, nullptr);
}
""")
        self.assertEqual(refused.returncode, 2)
        lines = refused.stderr.strip().split("\n")
        self.assertEqual(len(lines), 2, lines)
        self.assertTrue(lines[0].endswith("x.cu:4: the library cuFFT (cufftHandle): the interpreter does not have it. Put it between #ifndef WITHOUT_IT and #endif, and give -D WITHOUT_IT. Also line 6."), lines[0])
        self.assertIn("x.cu:10: how many clusters a GPU holds (cudaOccupancyMaxActiveClusters)", lines[1])

    def test_host_functions_that_nobody_calls_need_not_be_here(self):
        text = """#include <cstdio>
#include <cuda.h>
inline void share(CUmemGenericAllocationHandle h, cudaIpcMemHandle_t* ipc, void* p) {
  cuMemRelease(h);
  cudaIpcGetMemHandle(ipc, p);
}
template <class T> T* reserve(size_t n) { CUdeviceptr p; return cuMemAddressReserve(&p, n, 0, 0, 0) ? nullptr : (T*)p; }
int main() {
#ifdef MORE
  share(0, nullptr, nullptr);
#endif
  std::puts("ran");
}
"""
        ran = self.interpret(text)
        self.assertEqual((ran.returncode, ran.stdout), (0, "ran\n"), ran.stderr)
        refused = self.interpret(text, options=["-D", "MORE"])
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr.replace(self.folder + "/", ""), r"\Ax.cu:4: the driver API \(cuMemRelease\): the interpreter does not have it. [^\n]*\n")
        self.assertIn("x.cu:5: memory shared between processes (cudaIpcGetMemHandle)", refused.stderr.replace(self.folder + "/", ""))
        self.assertNotIn("cuMemAddressReserve", refused.stderr)

    def test_a_member_may_have_its_types_name(self):
        ran = self.interpret("""template <class T> struct Storage { T x[4]; };
template <class T> struct Traits {
  using Storage = Storage<T>;
  static constexpr int bytes = sizeof(Storage);
};
int main() { return Traits<int>::bytes; }
""")
        self.assertEqual(ran.returncode, 16, ran.stderr)
        wrong = self.interpret("struct S {};\nstruct T {\n  using S = S;\n};\nint main() { int* p = 3; }\n")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("x.cu:5:", wrong.stderr)

    def test_a_pointer_to_dynamic_shared_memory_has_the_instructions_address(self):
        ran = self.interpret("""#include <cstdint>
__global__ void k(unsigned* wrong) {
  extern __shared__ unsigned x[];
  x[threadIdx.x] = 100 + threadIdx.x;
  __syncthreads();
  unsigned y;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(y) : "r"((unsigned)((uint64_t)(x + 255 - threadIdx.x) & 0x3ffff)));
  if (y != 355 - threadIdx.x) atomicAdd(wrong, 1u);
}
int main() {
  unsigned* wrong;
  cudaMallocManaged(&wrong, 4);
  *wrong = 0;
  k<<<8, 256, 1024>>>(wrong);
  cudaDeviceSynchronize();
  return *wrong != 0;
}
""")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_what_cooperative_groups_are_made_of(self):
        text = """#include <cstdio>
__global__ void __cluster_dims__(2, 1, 1) k(int* out) {
  __shared__ int s[64];
  const unsigned rank = __clusterRelativeBlockRank();
  if (threadIdx.x < 64) {
    s[63 - threadIdx.x] = threadIdx.x + 100 * rank;
    __barrier_sync_count(1, 64);
    if (s[threadIdx.x] != 63 - threadIdx.x + 100 * rank) printf("wrong\\n");
  }
  __cluster_barrier_arrive();
  __cluster_barrier_wait();  // all
  const int* const others = static_cast<int*>(__cluster_map_shared_rank(s, rank ^ 1));
  if (threadIdx.x == 0) out[blockIdx.x] = others[5] + 1000 * __cluster_query_shared_rank(others);
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}
int main() {
  int* out;
  cudaMallocManaged(&out, 8);
  k<<<2, 96>>>(out);
  cudaDeviceSynchronize();
  std::printf("%d %d\\n", out[0], out[1]);
}
"""
        right = self.interpret(text)
        self.assertEqual((right.returncode, right.stdout), (0, "1158 58\n"), right.stderr)
        alone = self.interpret(text.replace("    __barrier_sync_count(1, 64);\n", ""))
        self.assertEqual(alone.returncode, 1)
        self.assertIn("race on s (byte", alone.stderr)
        early = self.interpret(text.replace("  __cluster_barrier_arrive();\n  __cluster_barrier_wait();  // all\n", ""))
        self.assertEqual(early.returncode, 1)
        self.assertIn("a cluster barrier before the first access", early.stderr)

    def test_blocks_that_may_meet_are_told_how(self):
        text = """#include <cooperative_groups.h>
__global__ void k(int* a, int* b) {
  a[blockIdx.x] = 1;
  if (b) cooperative_groups::this_grid().sync();
  a[gridDim.x + blockIdx.x] = a[(blockIdx.x + 1) % gridDim.x];
}
int main() {
  int *a, *b = nullptr;
  cudaMalloc(&a, 64);
  cudaMemset(a, 0, 64);
  void* arguments[] = {&a, &b};
  cudaLaunchCooperativeKernel((void*)k, 4, 1, arguments);
  return cudaDeviceSynchronize();
}
"""
        wrong = self.interpret(text)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("expected this_grid().sync() between the two", wrong.stderr)
        self.assertEqual(self.interpret(text.replace("*b = nullptr", "*b = (int*)1")).returncode, 0)

    def test_a_local_array_may_have_what_cuda_allows(self):
        text = """__global__ void k(int* out, int n) {
  int local[100000];
  for (int i = 0; i < n; ++i) local[i] = i;
  *out = local[n / 2];
}
int main() {
  int* out;
  cudaMallocManaged(&out, 4);
  k<<<1, 1>>>(out, 100000);
  return cudaDeviceSynchronize() != cudaSuccess || *out != 50000;
}
"""
        right = self.interpret(text)
        self.assertEqual(right.returncode, 0, right.stderr)

    def test_who_waits_at_a_barrier_of_the_library_in_vain_is_told(self):
        text = """#include <cuda/barrier>
#include <cstdio>
__global__ void k(int* x) {
  __shared__ cuda::barrier<cuda::thread_scope_block> all;
  if (threadIdx.x == 0) init(&all, MANY);
  __syncthreads();
  for (int i = 0; i < 20; ++i)
    all.arrive_and_wait();
  *x = 1;
}
int main() {
  int* x;
  cudaMallocManaged(&x, 4);
  k<<<1, 64>>>(x);
  cudaDeviceSynchronize();
  std::printf("%d\\n", *x);
}
"""
        right = self.interpret(text.replace("MANY", "64"))
        self.assertEqual((right.returncode, right.stdout), (0, "1\n"), right.stderr)
        wrong = self.interpret(text.replace("MANY", "65"))
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("deadlock", wrong.stderr)
        self.assertIn("x.cu:8\n", wrong.stderr)  # not the library's
        self.assertIn("variable all", wrong.stderr)

    def test_an_asm_without_an_instruction_is_the_compilers_business(self):
        text = '__global__ void k(int* p) { *p = 1; asm volatile("%s" ::: "memory"); *p = 2; }\nint main() { k<<<0, 1>>>(nullptr); }\n'
        self.assertEqual(self.interpret(text % "").returncode, 0)
        self.assertIn("inline PTX", self.interpret(text % "membar.all;").stderr)

    def test_padding_of_the_programs_own_structs_may_be_copied(self):
        text = """struct Behind { double value; int place; };
struct Between { int place; double value; };
struct Both { Between first; Behind last[2]; };
template <class T> __device__ void set(T* p) { p->value = 1.5; p->place = 2; }
__global__ void fill(Behind* a, Between* b, Both* c) {
  set(a + threadIdx.x), set(b + threadIdx.x);
  set(&c[threadIdx.x].first), set(&c[threadIdx.x].last[0]);
  set(&c[threadIdx.x].last[1]);  // last
}
template <class T> __global__ void copy(const T* from, T* to) { to[threadIdx.x] = from[threadIdx.x]; }
template <class T> T* memory() { T* p; cudaMalloc(&p, 32 * sizeof(T)); return p; }
int main() {
  Behind* a = memory<Behind>();
  Between* b = memory<Between>();
  Both* c = memory<Both>();
  fill<<<1, 32>>>(a, b, c);
  copy<<<1, 32>>>(a, memory<Behind>());
  copy<<<1, 32>>>(b, memory<Between>());
  copy<<<1, 32>>>(c, memory<Both>());
  return cudaDeviceSynchronize();
}
"""
        right = self.interpret(text)
        self.assertEqual((right.returncode, right.stderr), (0, ""))
        for wrong in (
            text.replace("p->value = 1.5;", ""),
            text.replace("p->place = 2;", ""),
            text.replace("set(&c[threadIdx.x].last[1]);  // last", ""),
            # Without such a struct, it is half of a pair.
            "__global__ void write(float2* p) { p[threadIdx.x].x = 1; }\n"
            "__global__ void copy(float2* p, float2* q) { q[threadIdx.x] = p[threadIdx.x]; }\n"
            "int main() { float2 *p, *q; cudaMalloc(&p, 256); cudaMalloc(&q, 256); write<<<1, 32>>>(p); copy<<<1, 32>>>(p, q);\n"
            "  return cudaDeviceSynchronize(); }\n",
        ):
            with self.subTest(wrong):
                result = self.interpret(wrong)
                self.assertEqual(result.returncode, 1)
                self.assertIn("initcheck", result.stderr)

    def test_a_compile_error_has_the_users_own_place(self):
        for text, place in (
            ("__global__ void k() {}\nint main() { k<<<1, 1>>>(); wrong(); }\n", "x.cu:2:29: error: ‘wrong’"),
            ("__global__ void k(int) {}\nint main() {\n  k<<<wrong, 1>>>(1); }\n", "x.cu:3:7: error: ‘wrong’"),
            ("__global__ void k(int) {}\nint main() {\n  k<<<1, 1>>>(wrong); }\n", "x.cu:3:15: error: ‘wrong’"),
            ("int main() {\n  wrong<<<1, 1>>>(2); }\n", "x.cu:2:3: error: ‘wrong’"),
        ):
            with self.subTest(text):
                result = self.interpret(text)
                self.assertEqual(result.returncode, 1)
                self.assertIn(place, result.stderr)

    def test_names_of_built_in_variables_may_be_the_programs_own(self):
        text = """#include <cuda_runtime.h>
#define CHECK(call) if ((call) != cudaSuccess) return 9
struct Config {
  dim3 gridDim, blockDim;
  unsigned threads() const { return gridDim.x * blockDim.x; }
};
__device__ unsigned place(uint3 threadIdx, unsigned x) { return threadIdx.x + x; }
__global__ void add(int* p, Config c) { atomicAdd(p, place(threadIdx, 1) == threadIdx.x + 1 && c.gridDim.x == gridDim.x); }
void go(int* p, dim3 gridDim, dim3 blockDim) { add<<<gridDim, blockDim>>>(p, {gridDim, blockDim}); }
cudaError_t is(unsigned a, unsigned b) { return a == b ? cudaSuccess : cudaErrorUnknown; }
int main() {
  int* p;
  cudaMallocManaged(&p, 4);
  *p = 0;
  dim3 gridDim(2), blockDim(32);
  add<<<gridDim, blockDim>>>(p, Config{gridDim, blockDim});
  go(p, {3}, {16});
  const Config c{.gridDim = 1, .blockDim = 8};
  add<<<c.gridDim, c.blockDim>>>(p, c);
  cudaLaunchConfig_t config = {};
  config.gridDim = gridDim, config.blockDim = c.blockDim;
  CHECK(cudaLaunchKernelEx(&config, add, p, Config{config.gridDim, config.blockDim}));
  CHECK(is(config.gridDim.x, gridDim.x));
  cudaDeviceSynchronize();
  return *p == 64 + 48 + 8 + 16 && c.threads() == 8 ? 0 : 1;
}
"""
        result = self.interpret(text)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        result = self.interpret("int main() {\n  int blockDim = 1; blockDim.wrong(); }\n")
        self.assertIn("x.cu:2:30: error: request for member ‘wrong’ in ‘blockDim’", result.stderr)

    def test_a_launch_hides_none_of_the_programs_names(self):
        result = self.interpret(
            """constexpr int a = 3;
__global__ void f(int* p) { atomicAdd(p, 1); }
__global__ void launch(int* p) { atomicAdd(p, 10); }
template <int n, class T> __global__ void kernel(T* p) { atomicAdd(p, n); }
template <class P> void start(P* p) { kernel<sizeof(P), P><<<1, 1>>>(p), kernel<a><<<1, 1>>>(p); }
#define RUN(k) k<<<1, 1>>>(p)
namespace n { template <class T> __global__ void a(T* p) { atomicAdd(p, 1000); } }
int main() {
  int* p;
  cudaMallocManaged(&p, 4);
  *p = 0;
  f<<<1, 1>>>(p), launch<<<1, 1>>>(p), start(p);
  RUN(launch), RUN(f), RUN(kernel<a>);
  using n::a;
  a<<<1, 1>>>(p);
  cudaDeviceSynchronize();
  return *p == 1 + 10 + 4 + 3 + 10 + 1 + 3 + 1000 ? 0 : 1;
}
"""
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_call_deduces_what_the_templates_explicit_arguments_leave_open(self):
        result = self.interpret(
            """template <int n, class T = float> __global__ void by_value(T x, double* to, unsigned long) { *to = x + n; }
template <int n, class T = float> __global__ void by_pointer(const T* x, T* to) { *to = *x + n; }
template <int n, class... Ts> __global__ void pack(double* to, Ts... xs) { *to = (n + ... + xs); }
template <class... Ts> __global__ void known_first(double* to, Ts... xs) { *to = (0. + ... + xs); }
template <int n, class T = float> __global__ void converted(T* to, float x) { *to = n + x; }
int main() {
  double* p;
  cudaMallocManaged(&p, 64);
  p[7] = 1e300;
  by_value<1><<<1, 1>>>(1e300, p, 3);
  by_pointer<2><<<1, 1>>>(p + 7, p + 1);
  pack<5><<<1, 1>>>(p + 2, 1, 2.5);
  pack<5><<<1, 1>>>(p + 3);
  known_first<int><<<1, 1>>>(p + 4, 1.75, 2.5);
  converted<1><<<1, 1>>>(reinterpret_cast<float*>(p + 5), 2);
  by_value<1, int><<<1, 1>>>(2.75, p + 6, 3);
  cudaDeviceSynchronize();
  const bool right = p[0] == 1e300 && p[1] == 1e300 && p[2] == 8.5 && p[3] == 5 && p[4] == 3.5 && *(float*)(p + 5) == 3 && p[6] == 3;
  return right ? 0 : 1;
}
"""
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_report_in_a_header_names_the_call(self):
        self.write("put.h", "__device__ inline void put(int* p) {\n  *p = 1;\n}\n")
        result = self.interpret('#include "put.h"\n__global__ void k(int* p) {\n  put(p);\n  put(p + 1);\n}\nint main() { int* p; cudaMalloc(&p, 4); k<<<1, 1>>>(p); cudaDeviceSynchronize(); }\n')
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"at       .*put\.h:2\n.*\n  called   at .*x\.cu:4\n")

    def test_wgmma_of_single_floats_is_refused_and_the_program_ends(self):
        result = self.interpret(
            """#include <cuda_fp16.h>
__global__ void k(unsigned long long d) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %4, 1, 1, 1, 0, 0;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "l"(d));
}
int main() { k<<<1, 128>>>(0); cudaDeviceSynchronize(); }
"""
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("the interpreter does not have wgmma whose accumulators are not the elements of one array", result.stderr)

    def test_nvccs_version_is_that_of_the_headers(self):
        result = self.interpret(
            """#include <cstdio>
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
int main() {
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ >= 12
  printf("%s.%s.%s\\n", TEXT(__CUDACC_VER_MAJOR__), TEXT(__CUDACC_VER_MINOR__), TEXT(__CUDACC_VER_BUILD__));
#endif
  return CUDART_VERSION != __CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10;
}
"""
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\A[0-9]+\.[0-9]\.0\n\Z")

    def test_a_pointer_tells_the_kind_of_its_memory(self):
        result = self.interpret(
            """#include <cstdio>
#include <cuda_runtime.h>
int main() {
  int *d, *managed, *pinned, *mapped, host;
  cudaMalloc(&d, 8), cudaMallocManaged(&managed, 8), cudaMallocHost(&pinned, 8), cudaHostAlloc(&mapped, 8, cudaHostAllocMapped);
  for (const int* p : {d, managed, pinned, mapped + 1, &host}) {
    cudaPointerAttributes attributes;
    cudaPointerGetAttributes(&attributes, p);
    printf("%d ", attributes.type);
  }
}
"""
        )
        # cudaMemoryTypeDevice, Managed, Host twice, Unregistered
        self.assertEqual((result.returncode, result.stdout), (0, "2 3 1 1 0 "), result.stderr)

    def test_a_program_may_have_a_namespace_device(self):
        result = self.interpret(
            """#include <cuda_runtime.h>
namespace device {
class Error {};
struct Buffer { int* p; };
__global__ void fill(Buffer b) { b.p[threadIdx.x] = 7; }
}
int main() {
  device::Buffer b;
  cudaMallocManaged(&b.p, 16);
  device::fill<<<1, 4>>>(b);
  return cudaDeviceSynchronize() == cudaSuccess && b.p[3] == 7 ? 0 : 1;
}
"""
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_what_nvcc_refuses_is_one_line_with_the_users_own(self):
        kernel = "__global__ void k(int* x) {\n  *x = 1; }\n"
        for text, words in (
            (kernel, "x.cu: error: there is no main() in it"),
            (kernel + "int main() {\n  k<<<1>>>(0); }\n", "x.cu:4: error: too few launch arguments: kernel<<<grid, block"),
            (kernel + "int main() {\n  k<<<>>>(0); }\n", "x.cu:4: error: too few launch arguments"),
            (kernel + "int main() {\n  k<<<1, 1, 0, 0, 0>>>(0); }\n", "x.cu:4: error: too many launch arguments"),
            (kernel + "int main() {\n  k<<<1, 1>>>(); }\n", "x.cu:4: error: too few arguments to function"),
            (kernel + 'int main() {\n  k<<<1, 1>>>("a"); }\n', "x.cu:4: error: the kernel does not take such arguments: (const char [2])"),
            (kernel + "int f(int);\nint main() {\n  return f(1); }\n", "x.cu:5: error: undefined reference to 'f(int)': if it stands in another file"),
            ("__global__ int k() { return 1; }\nint main() {}\n", "x.cu:1: error: a __global__ function must have a void return type"),
        ):
            with self.subTest(text):
                result = self.interpret(text)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertEqual(len(result.stderr.strip().split("\n")), 1, result.stderr)
                self.assertIn(words, result.stderr)

    def test_the_folder_of_cudas_headers_may_be_named(self):
        with open(os.path.join(BUILD, "interpret.json"), encoding="utf-8") as stream:
            folder = json.load(stream)["cuda"][0]
        text = "#include <cooperative_groups.h>\n__global__ void k() { cooperative_groups::this_thread_block().sync(); }\nint main() { k<<<1, 1>>>(); }\n"
        result = self.interpret(text, options=("-I", folder))
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_byte_order_mark_is_no_part_of_the_text(self):
        self.write("own.h", "\ufeff#define SEVEN 7\n")
        self.assertEqual(self.interpret('\ufeff#include "own.h"\nint main() { return SEVEN; }\n').returncode, 7)
        self.assertEqual(self.interpret("int main() {}\n", name="a\nb.cu").returncode, 2)
        wide = self.write("wide.cu", "")
        with open(wide, "w", encoding="utf-16") as stream:
            stream.write("int main() {}\n")
        result = self.run_program(wide)
        self.assertEqual((result.returncode, result.stderr), (2, f"course: cannot read {wide}: it is no text in UTF-8; save it as that.\n"))

    def test_a_path_says_nothing_about_whose_the_file_is(self):
        text = "__global__ void k(int* x) {\n  x[threadIdx.x] = 1;\n}\nint main() {\n  int* y;\n  cudaMalloc(&y, 4);\n  k<<<1, 2>>>(y);\n}\n"
        for folder in ("c++/include/c++", "common/device", "common/interpreter/include/crt", "usr/include/cooperative_groups"):
            with self.subTest(folder):
                result = self.interpret(text, name=folder + "/x.cu")
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"{folder}/x.cu:2\n", result.stderr)
                self.assertIn("out of bounds: y ", result.stderr)

    def test_an_uncaught_exception_says_what(self):
        text = '#include <stdexcept>\n__global__ void k() {}\nint main() {\n  k<<<1, 1>>>();\n  throw std::runtime_error("out of luck");\n}\n'
        result = self.interpret(text)
        self.assertEqual(result.returncode, -signal.SIGABRT)
        self.assertIn("std::runtime_error", result.stderr)
        self.assertIn("out of luck", result.stderr)

    @unittest.skipUnless(platform.machine() == "x86_64", "elsewhere the quotient is 0")
    def test_a_division_by_zero_on_the_host_says_where(self):
        text = """#include <csignal>
#include <cstdio>
#include <cstdlib>
__global__ void k() {}
int parts(int n, int each) {
  return n / each;
}
int main(int argc, char** argv) {
  if (argc > 2) std::signal(SIGFPE, [](int) { std::_Exit(9); });
  if (*argv[1] == 'k') k<<<1, 1>>>();
  printf("%d\\n", parts(7, atoi(argv[1] + 1)));
}
"""
        for words in (["k0"], ["-0"]):  # after and before there is anything of a device's
            result = self.interpret(text, *words, name="x.cu")
            self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
            self.assertRegex(result.stderr, r"host code divides an integer by zero\n  at       .*x\.cu:6\n")
        self.assertEqual(self.interpret(text, "k7", name="x.cu").stdout, "1\n")
        self.assertEqual(self.interpret(text, "-0", "own handler", name="x.cu").returncode, 9)

    def test_the_heap_of_kernels_is_as_large_as_a_gpus(self):
        text = """#include <cstdio>
__device__ void* first;
__global__ void k(int* n) {
  first = malloc(1 << 20);
  while (malloc(1 << 20)) ++*n;
  n[1] = new int[1 << 22] == nullptr;
  free(first);
  n[2] = malloc(1 << 20) != nullptr;
}
int main(int argc, char**) {
  int* n;
  if (argc > 1 && cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20) != cudaSuccess) return 1;
  cudaMallocManaged(&n, 12);
  *n = 1;
  k<<<1, 1>>>(n);
  cudaDeviceSynchronize();
  printf("%d %d %d %d\\n", n[0], n[1], n[2], cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
}
"""
        for arguments, megabytes in (((), 8), (("x",), 64)):
            result = self.interpret(text, *arguments)
            self.assertEqual((result.returncode, result.stdout), (0, f"{megabytes} 1 1 1\n"), result.stderr)
            self.assertIn("malloc in a kernel gives null", result.stderr)

    def test_an_interruption_while_it_compiles_leaves_nothing_behind(self):
        path = self.write("x.cu", "#include <iostream>\n#include <map>\n#include <regex>\nint main() { std::regex r; }\n")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
            child = subprocess.Popen(self.command(path), stderr=subprocess.PIPE, cwd=self.folder, start_new_session=True)
            compiler = f"{self.folder}/cache/new."
            while not any(compiler in line and "cc1plus" in line for line in command_lines()):
                self.assertIsNone(child.poll())
                time.sleep(0.01)
            child.send_signal(number)
            _, errors = child.communicate()
            self.assertEqual((child.returncode, errors), (128 + number, b""))
            self.assertEqual(os.listdir(os.path.join(self.folder, "cache")), [])
            self.assertFalse([line for line in command_lines() if compiler in line])

    def test_what_a_killed_one_has_left_over_goes_with_the_next(self):
        path = self.write("x.cu", "#include <iostream>\n#include <map>\n#include <regex>\nint main() { std::regex r; }\n")
        cache = os.path.join(self.folder, "cache")
        self.assertEqual(self.interpret("int main() {}\n", name="y.cu").returncode, 0)
        before = sorted(os.listdir(cache))
        child = subprocess.Popen(self.command(path), cwd=self.folder)
        while not glob.glob(f"{cache}/new.*/0_x.cu"):
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        child.send_signal(signal.SIGSTOP)  # or it might be faster than the other one
        self.assertEqual(self.run_program(self.folder + "/y.cu").returncode, 0)
        self.assertTrue(glob.glob(f"{cache}/new.*"))  # who lives keeps its own
        child.kill()
        child.wait()
        self.assertTrue(glob.glob(f"{cache}/new.*"))
        self.assertEqual(self.run_program(self.folder + "/y.cu").returncode, 0)
        self.assertEqual(sorted(os.listdir(cache)), before)

    def test_what_cannot_be_read_is_named(self):
        result = self.run_program("/proc/self/mem")
        self.assertEqual((result.returncode, result.stderr), (2, "course: cannot read /proc/self/mem: Input/output error.\n"))

    def test_each_form_of_wmma(self):
        text = """#include <mma.h>
#include <cstdio>
#include <type_traits>
using namespace nvcuda;
template <int m, int n, int k, class T, class S, class LA, class LB>
__global__ void one(const typename std::conditional_t<std::is_same_v<T, wmma::precision::tf32>, std::type_identity<float>, std::type_identity<T>>::type* A, const typename std::conditional_t<std::is_same_v<T, wmma::precision::tf32>, std::type_identity<float>, std::type_identity<T>>::type* B, const S* C, S* D) {
  wmma::fragment<wmma::matrix_a, m, n, k, T, LA> a;
  wmma::fragment<wmma::matrix_b, m, n, k, T, LB> b;
  wmma::fragment<wmma::accumulator, m, n, k, S> c, d;
  constexpr bool ra = std::is_same_v<LA, wmma::row_major>, rb = std::is_same_v<LB, wmma::row_major>;
  wmma::load_matrix_sync(a, A, ra ? k : m);
  wmma::load_matrix_sync(b, B, rb ? n : k);
  wmma::load_matrix_sync(c, C, n, wmma::mem_row_major);
  for (int i = 0; i < c.num_elements; ++i) c.x[i] = c.x[i] + c.x[i];
  wmma::mma_sync(d, a, b, c);
  wmma::store_matrix_sync(D, d, m, wmma::mem_col_major);
}
template <int m, int n, int k, class T, class S, class LA, class LB>
int check(const char* name) {
  using V = typename std::conditional_t<std::is_same_v<T, wmma::precision::tf32>, std::type_identity<float>, std::type_identity<T>>::type;
  V *A, *B; S *C, *D;
  cudaMallocManaged(&A, m * k * sizeof(V)); cudaMallocManaged(&B, k * n * sizeof(V)); cudaMallocManaged(&C, m * n * sizeof(S)); cudaMallocManaged(&D, m * n * sizeof(S));
  constexpr bool ra = std::is_same_v<LA, wmma::row_major>, rb = std::is_same_v<LB, wmma::row_major>;
  const auto at = [](int i, int j, int s) { return (i * 5 + j * 3 + s) % 7; };
  for (int i = 0; i < m; ++i) for (int x = 0; x < k; ++x) A[ra ? i * k + x : x * m + i] = V(float(at(i, x, 1)));
  for (int x = 0; x < k; ++x) for (int j = 0; j < n; ++j) B[rb ? x * n + j : j * k + x] = V(float(at(x, j, 2)));
  for (int i = 0; i < m * n; ++i) C[i] = S(float(at(i / n, i % n, 3)));
  one<m, n, k, T, S, LA, LB><<<1, 32>>>(A, B, C, D);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < m; ++i) for (int j = 0; j < n; ++j) {
    float sum = 2 * at(i, j, 3);
    for (int x = 0; x < k; ++x) sum += at(i, x, 1) * at(x, j, 2);
    wrong += float(D[j * m + i]) != sum;
  }
  if (wrong) std::printf("%s: %d wrong\\n", name, wrong);
  return wrong;
}
template <int m, int n, int k, class T, class S> int all(const char* name) {
  using wmma::row_major, wmma::col_major;
  return check<m, n, k, T, S, row_major, row_major>(name) + check<m, n, k, T, S, row_major, col_major>(name) + check<m, n, k, T, S, col_major, row_major>(name) + check<m, n, k, T, S, col_major, col_major>(name);
}
template <int m, int n> int shape() {
  return all<m, n, 16, half, float>("half float") + all<m, n, 16, half, half>("half half") + all<m, n, 16, __nv_bfloat16, float>("bf16") + all<m, n, 16, signed char, int>("s8") + all<m, n, 16, unsigned char, int>("u8");
}
int main() {
  int wrong = shape<16, 16>() + shape<32, 8>() + shape<8, 32>() + all<16, 16, 8, wmma::precision::tf32, float>("tf32") + all<8, 8, 4, double, double>("double");
  std::printf("%d wrong\\n", wrong);
  return wrong != 0;
}
"""
        result = self.interpret(text)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "0 wrong\n", ""))

    def test_wmma_that_is_not_here_is_refused_where_a_program_needs_it(self):
        text = """#include <mma.h>
using namespace nvcuda::wmma;
inline __device__ void of_bits() {
  fragment<matrix_a, 8, 8, 128, experimental::precision::b1, row_major> a;
  fragment<matrix_b, 8, 8, 128, experimental::precision::b1, col_major> b;
  fragment<accumulator, 8, 8, 128, int> c;
  bmma_sync(c, a, b, c);
}
__global__ void k() {
#ifdef MORE
  of_bits();
#endif
#ifdef SUMS
  fragment<matrix_a, 16, 16, 16, half, row_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, int> c;
  mma_sync(c, a, b, c);
#endif
}
int main() { k<<<1, 32>>>(); }
"""
        self.assertEqual(self.interpret(text).returncode, 0)
        for what in ("MORE", "SUMS"):
            result = self.interpret(text, options=["-D", what])
            self.assertEqual(result.returncode, 2)
            self.assertIn("wmma of this shape and type: the interpreter does not have it.", result.stderr)

    def test_vectors_of_thrust(self):
        text = """#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <cstdio>
__global__ void add(const int* x, int* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] += x[threadIdx.x];
}
int main() {
  thrust::host_vector<int> h(5);
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = i;
  thrust::device_vector<int> x = h, y(5, 10), z;
  add<<<1, 32>>>(x.data().get(), thrust::raw_pointer_cast(y.data()), 5);
  z = y;
  z[0] = 7;
  z.resize(6, 1);
  thrust::host_vector<int> back = z;
  thrust::copy(y.begin(), y.begin() + 2, back.begin());
  thrust::fill(x.begin(), x.end(), 3);
  for (int v : back) std::printf("%d ", v);
  std::printf("%d %d\\n", int(x[4]), int(z.size()));
}
"""
        result = self.interpret(text)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "10 11 12 13 14 1 3 6\n", ""))
        outside = self.interpret(text.replace("threadIdx.x < n", "threadIdx.x <= n"))
        self.assertEqual(outside.returncode, 1)
        self.assertIn("out of bounds", outside.stderr)

    def test_sorting_by_thrust(self):
        ran = self.interpret("""#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/random.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
__global__ void halve(float* x) { x[threadIdx.x] /= 2; }
int main() {
  thrust::default_random_engine engine(1);
  thrust::uniform_real_distribution<float> d(0, 1);
  thrust::host_vector<float> keys(64);
  for (auto& key : keys) key = d(engine);
  thrust::device_vector<float> sorted = keys;
  thrust::device_vector<unsigned> places(64);
  thrust::sequence(places.begin(), places.end());
  thrust::sort_by_key(sorted.begin(), sorted.end(), places.begin());
  if (!thrust::is_sorted(sorted.begin(), sorted.end())) return 1;
  halve<<<1, 64>>>(thrust::raw_pointer_cast(&sorted[0]));
  for (int i = 0; i < 64; ++i)
    if (sorted[i] != keys[places[i]] / 2) return 2;
  thrust::sort(places.begin(), places.end());
  thrust::sort(keys.begin(), keys.end());
  for (int i = 0; i < 64; ++i)
    if (places[i] != i || keys[i] != 2 * sorted[i]) return 3;
}
""")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_a_kernels_address_may_come_by_way_of_a_variable(self):
        text = """#include <cstdio>
template <class T> __global__ void k(T* x, T y) { *x = y; }
struct S { void f(void*) const; };
void S::f(void*) const {}
cudaError_t launch(void const* kernel, void** arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = 1;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}
int main() {
  int *x, y = 8;
  cudaMalloc(&x, 4);
  auto* kernel = &k<int>;
  void* arguments[] = {&x, &y};
  cudaError_t error = launch((void const*) kernel, arguments);
  cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost);
  std::printf("%d %d\\n", error, y);
}
"""
        result = self.interpret(text)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "0 8\n", ""))

    def test_a_standard_that_the_compiler_does_not_know(self):
        result = self.interpret("int main() {}\n", options=("--std", "gnu++99"))
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^course: -std=c\+\+99: .*g\+\+.* is too old for it\. Without the option, the language is C\+\+20\.\n$")

    def test_counters_that_cannot_be_written(self):
        text = "#include <cstdlib>\n__global__ void k() {}\nint main(int argc, char**) {\n  k<<<1, 1>>>();\n  cudaDeviceSynchronize();\n  return argc > 1 ? 3 : 0;\n}\n"
        path = self.write("x.cu", text)
        for arguments, code in ((), 2), (("x",), 3):
            with open("/dev/full", "w", encoding="utf-8") as full:
                command = self.command(path, *arguments, options=("--count",))
                result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=self.folder)
            self.assertEqual((result.returncode, result.stderr), (code, "interpreter: cannot write to stdout: No space left on device.\n"))

    def test_what_a_kernel_frees_is_what_it_has_allocated(self):
        for lines, what in (
            ("free(p);\n  free(p);", "free of released memory: malloc in a kernel (byte 0 of 16), which has been released, at {}:3"),
            ("x[0] = *p;\n  free(p + 1);", "free of a pointer into the middle: malloc in a kernel (byte 4 of 16)"),
            ("*p = x[0];\n  free(x);", "free of memory that the host has allocated: d (byte 0 of 64)"),
            ("*p = x[0];\n  free(h);", "free of what malloc and new in a kernel did not give: address "),
        ):
            head = "__global__ void k(int* x, int* h, int n) {\n  int* p = (int*)malloc(n); p[0] = n;\n  "
            main = "\n}\nint main() {\n  int *d, *h = (int*)malloc(64);\n  cudaMalloc(&d, 64);\n  cudaMemset(d, 0, 64);\n  k<<<1, 1>>>(d, h, 16);\n  cudaDeviceSynchronize();\n  return 3;\n}\n"
            with self.subTest(lines):
                result = self.interpret("#include <cstdlib>\n" + head + lines + main)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(what.format("x.cu").replace("x.cu:3", "x.cu:4"), result.stderr.replace(self.folder + "/", ""))
                self.assertIn("x.cu:5\n", result.stderr)

    def test_what_cannot_be_written_is_named(self):
        text = "int main() {}\n"
        result = self.interpret(text, options=("--keep", self.write("file", "")))
        self.assertEqual((result.returncode, result.stderr), (2, f"course: cannot write to {self.folder}/file: it is a file. Name a folder with --keep.\n"))
        result = self.interpret("no program", options=("--keep", "/proc/none"))  # before it is compiled
        self.assertEqual((result.returncode, result.stderr), (2, "course: cannot write to /proc/none: No such file or directory.\n"))
        path, cache = self.write("x.cu", text), os.path.join(self.folder, "cache")
        for size in (0, 1000, 4000, 16000):  # too small for the copy, the object file, the program
            shutil.rmtree(cache, ignore_errors=True)
            limited = ["bash", "-c", f"trap '' XFSZ; ulimit -f {size // 1000}; exec \"$@\"", "", *self.command(path)]
            result = subprocess.run(limited, capture_output=True, text=True, cwd=self.folder)
            self.assertEqual((result.returncode, result.stderr), (2, f"course: cannot write to {cache}: File too large.\n"))
            self.assertEqual(os.listdir(cache), [])

    def test_what_the_preprocessor_leaves_out_is_not_refused(self):
        result = self.interpret("#if 0\n#include <thrust/device_vector.h>\nthrust::device_vector<int> v;\nint x = tex2D(1);\n#endif\nint main() { return 5; }\n")
        self.assertEqual((result.returncode, result.stderr), (5, ""))

    def test_an_assert_is_an_error_code_too(self):
        text = (
            "#include <cassert>\n__global__ void k() {\n  assert(threadIdx.x < 3);\n}\n"
            "int main(int argc, char**) { k<<<1, 4>>>(); return argc > 1 ? 10 * (cudaDeviceSynchronize() == cudaErrorAssert) : 0; }\n"
        )
        asked, not_asked = self.interpret(text, "ask"), self.interpret(text)
        self.assertEqual((asked.returncode, not_asked.returncode), (10, 1))
        self.assertIn("x.cu:3\n", asked.stderr)

    def test_a_thread_with_a_value_that_no_lane_gave_prints_and_allocates_once(self):
        result = self.interpret(
            "#include <cstdio>\n__global__ void k(int n) {\n  const int lane = threadIdx.x;\n  if (lane >= n) return;\n"
            "  const int other = __shfl_down_sync(0xffffffff, lane, 8);\n"
            '  if (lane == 19) printf("lane %d\\n", lane), printf("once\\n"), printf("!\\n");\n'
            "  int* const mine = (int*)malloc(8);\n  mine[0] = lane + 8 < n ? other : -1;\n"
            '  if (lane % 11 == 8) printf("%d\\n", mine[0]);\n  free(mine);\n}\n'
            "int main() {\n  k<<<1, 32>>>(20);\n  return cudaDeviceSynchronize();\n}\n"
        )
        self.assertEqual((result.returncode, sorted(result.stdout.split())), (0, ["!", "-1", "16", "19", "lane", "once"]), result.stderr)

    def test_clock_counts_as_clock64_does(self):
        result = self.interpret(
            "#include <cstdio>\n__global__ void k(long long* passed) {\n  const long long begin = clock64();\n  const clock_t first = clock();\n"
            "  while (clock64() - begin < 3000000) {}\n  *passed = clock() - first;\n}\n"
            "int main() {\n  long long *d, passed;\n  cudaMalloc(&d, 8);\n  k<<<1, 1>>>(d);\n"
            "  cudaMemcpy(&passed, d, 8, cudaMemcpyDeviceToHost);\n  return passed < 2000000;\n}\n"
        )
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_rest_of_the_language(self):
        result = self.interpret(
            """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/std/array>
#include <cstdlib>
namespace cg = cooperative_groups;
__constant__ const float weights[2] = {1, 2};
__managed__ int total;
__device__ __noinline__ float twice(float x) { return 2 * x; }
__global__ void all(float* out) {
  __shared__ alignas(16) float s[64];
  __shared__ int n;
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) n = 0, init(&barrier, blockDim.x);
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block>(n).fetch_add(1, cuda::memory_order_relaxed);
  barrier.arrive_and_wait();
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  cuda::std::array<float, 2> a{weights[0], weights[1]};
  float* const mine = static_cast<float*>(malloc(sizeof(float)));
  *mine = twice(a[threadIdx.x % 2]);
  s[threadIdx.x] = cg::reduce(warp, *mine, cg::plus<float>()) + n;
  free(mine);
  atomicAdd(&total, 1);
  out[threadIdx.x] = s[threadIdx.x] + (isnan(s[threadIdx.x]) ? 1 : 0);
}
__global__ void by_address(int* x, int y) { *x = y + gridDim.x; }
int main() {
  float* out;
  cudaMallocManaged(&out, 64 * sizeof(float));
  all<<<1, 64>>>(out);
  int* x;
  cudaMallocManaged(&x, sizeof(int));
  int y = 3;
  void* arguments[] = {&x, &y};
  cudaLaunchKernel((const void*)by_address, dim3(2), dim3(1), arguments, 0, 0);
  const bool first = *x == 5;
  cudaLaunchConfig_t config = {};
  config.gridDim = 7, config.blockDim = dim3(1);
  cudaLaunchKernelEx(&config, by_address, x, 1);
  return cudaDeviceSynchronize() == cudaSuccess && out[5] == 160 && total == 64 && first && *x == 8 ? 0 : 1;
}
""".replace("*x = y + gridDim.x", "atomicExch(x, y + gridDim.x)")
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_the_second_time_nothing_is_compiled(self):
        text = "int main() { return 4; }\n"
        self.assertEqual(self.interpret(text).returncode, 4)
        os.environ["PATH"], path = "/nowhere", os.environ["PATH"]
        try:
            self.assertEqual(self.interpret(text).returncode, 4)
        finally:
            os.environ["PATH"] = path

    def test_a_program_may_come_through_a_pipe(self):
        shell = " ".join(map(shlex.quote, self.command("PIPE"))).replace("PIPE", "<(echo 'int main() { return 5; }')")
        for _ in range(2):
            result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual((result.returncode, result.stderr), (5, ""))

    def test_what_a_program_is_made_of_is_looked_at_each_time(self):
        options = ["-I", "first", "-I", "second"]
        self.write("second/n.h", "enum { n = 1 };\n")
        path = self.write("x.cu", "#include <n.h>\nint main() { return n; }\n")
        self.assertEqual(self.run_program(path, options=options).returncode, 1)
        self.assertEqual(self.run_program(path, options=options).returncode, 1)
        self.write("second/n.h", "enum { n = 2 };\n")
        self.assertEqual(self.run_program(path, options=options).returncode, 2)
        self.write("first/n.h", "enum { n = 3 };\n")  # in front of the other one
        self.assertEqual(self.run_program(path, options=options).returncode, 3)
        os.remove(os.path.join(self.folder, "first/n.h"))
        self.assertEqual(self.run_program(path, options=options).returncode, 2)


if __name__ == "__main__":
    unittest.main()
