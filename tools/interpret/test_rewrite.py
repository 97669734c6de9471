"""Tests of what is replaced in a CUDA program, and that all else keeps its place."""

import os
import re
import subprocess
import tempfile
import unittest

from own_names import rename_own, restore
from rewrite import DEVICE, HOST, File, launches, rewrite_macro
from structure import functions, marking_macros, matching
from tokens import tokens


def rewritten(text, name="x.cu", view=DEVICE):
    file = File(text, view)
    file.rewrite()
    return file.result(name)


def places(text):
    """Where the compiler sees each word: (line, column), following '#line'."""
    found, line = {}, 1
    for row in text.split("\n"):
        if match := re.match(r'#line (\d+)', row):
            line = int(match[1])
            continue
        for word in re.finditer(r"\w+", row):
            found.setdefault(word[0], []).append((line, word.start() + 1))
        line += 1
    return found


def launch_texts(text):
    """The parts of each launch: kernel and configuration."""
    visible = [t for t in tokens(text) if t.is_seen]
    parts = []
    for launch in launches(visible, matching(visible)):
        kernel = text[visible[launch.kernel].start : visible[launch.opening].start]
        parts.append((kernel.strip(), text[visible[launch.opening].end : visible[launch.closing].start].strip()))
    return parts


class Tokens(unittest.TestCase):
    def kinds(self, text):
        return [(t.kind, t.text) for t in tokens(text) if t.kind not in ("space", "newline")]

    def test_nothing_is_lost(self):
        text = '#define A(x) \\\n  k<<<1, 2>>>(x)\nint a = 1\'000; // end \\\n still\nauto s = R"ab(<<<)" )ab";\n\tchar c = \'"\';\f\x80 @'
        self.assertEqual("".join(t.text for t in tokens(text)), text)

    def test_comments_strings_and_directives_hide_what_is_in_them(self):
        text = '// k<<<1,1>>>()\n/* k<<<1,1>>>() */ f("k<<<1,1>>>()", R"(k<<<1,1>>>()")"); \n # define X "a" /* \n */ k<<<1,1>>>()\n'
        self.assertEqual(launch_texts(text), [])
        self.assertEqual([k for k, _ in self.kinds(text)].count("directive"), 1)

    def test_a_hash_inside_a_line_begins_no_directive(self):
        self.assertNotIn("directive", [k for k, _ in self.kinds("int a; # define\n")])
        self.assertIn("directive", [k for k, _ in self.kinds("/* c */ # define A\n")])

    def test_digit_separators_are_no_characters(self):
        self.assertEqual(self.kinds("1'000'000 'a'"), [("number", "1'000'000"), ("character", "'a'")])


class Launches(unittest.TestCase):
    def test_lines_behind_what_the_preprocessor_leaves_out(self):
        text = "#ifdef A\n#ifdef B\nvoid f() { k<<<1, 2>>>(3); }\n#endif // B\n#else\nint x;\n#endif\nint here;\n#if C\n#endif\nint there;\n"
        file = File(text)
        file.rewrite()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.cpp")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(file.result("x.cu"))
            told = subprocess.run(["g++", "-E", path], capture_output=True, text=True, check=True).stdout
        line, found = 0, {}
        for row in told.split("\n"):
            if marker := re.match(r"# (\d+) ", row):
                line = int(marker[1])
                continue
            found.update({word: line for word in ("x;", "here;", "there;") if word in row.split()})
            line += 1
        self.assertEqual(found, {"x;": 6, "here;": 8, "there;": 11})

    def test_kernels(self):
        for kernel in (
            "k", "k<float>", "ns::k<a<b>>", "::k", "k<T, (3 > 2)>", "a::b<int>::template k<4>", "(*pointer)", "table[2]",
            "object.k", "object->k", "choose(1, 2)", "k<sizeof(x) / 2>", "k<x<y<z<int>>>>", "name##_kernel",
        ):  # fmt: skip
            with self.subTest(kernel):
                self.assertEqual(launch_texts(f"f(); {kernel}<<<1, 2>>>(x);"), [(kernel, "1, 2")])
                self.assertEqual(launch_texts(f"if (a) {kernel}<<<1, 2>>>(x);"), [(kernel, "1, 2")])
                self.assertEqual(launch_texts(f"return {kernel} <<<1, 2>>> (x);"), [(kernel, "1, 2")])

    def test_configurations(self):
        for configuration in (
            "1, 2", "dim3(1, 2), dim3{3, 4}, n * sizeof(float), stream", "(n + 255) / 256, 256", "a<b>::v, c", "f<g<h<1>>>(2), 3",
            "n >> 1, 2", "x < y ? 1 : 2, 3",
        ):  # fmt: skip
            with self.subTest(configuration):
                self.assertEqual(launch_texts(f"k<<<{configuration}>>>(x);"), [("k", configuration)])

    def test_several_in_a_line(self):
        self.assertEqual(launch_texts("a<<<1, 2>>>(x), b<<<3, 4>>>(y); c<<<5, 6>>>();"), [("a", "1, 2"), ("b", "3, 4"), ("c", "5, 6")])

    def test_shifts_and_comparisons_are_none(self):
        self.assertEqual(launch_texts("a << b; c >> d; x<y<z>>(3); cout << 1 << 2;"), [])

    def test_lines_and_columns_stay(self):
        text = "int main() {\n\tbefore(); kernel<float,\n  4><<<grid,\n block>>>(alpha, beta); behind();\n\tlast();\n}\n"
        wanted, got = places('#line 1 "x.cu"\n' + text), places(rewritten(text))
        for word in ("main", "before", "float", "grid", "block", "alpha", "beta", "behind", "last"):
            with self.subTest(word):
                self.assertIn(wanted[word][0], got[word])
        self.assertEqual(got["behind"], wanted["behind"])

    def test_in_parentheses_lines_stay(self):
        text = "int main() {\n  CHECK(k<<<1, 2>>>(x));\n  behind();\n}\n"
        result = rewritten(text)
        self.assertEqual(places(result)["behind"], [(3, 3)])
        self.assertNotIn("\n#line", result.split("\n", 1)[1])

    def test_macros(self):
        result = rewrite_macro("#define RUN(k, ...) \\\n  k<<<1, 2>>>(__VA_ARGS__)")
        self.assertNotIn("<<<", result)
        self.assertEqual(result.count("\n"), 1)
        self.assertTrue(result.endswith("(__VA_ARGS__)"))

    def test_a_macro_for_the_configuration_alone(self):
        result = rewrite_macro("#define ARGS(g, b) <<<g, b>>>")
        self.assertTrue(result.endswith("Configuration(g, b))"), result)
        self.assertIn("^::", result)
        self.assertEqual(rewrite_macro("#define EMPTY"), "#define EMPTY")

    def test_the_file_keeps_its_name(self):
        self.assertTrue(rewritten("int x;\n", 'a "b".cu').startswith('#line 1 "a \\"b\\".cu"\nint x;'))


class Words(unittest.TestCase):
    def test_nvccs_words(self):
        self.assertIn("#ifdef COURSE_CUDA\n", rewritten("#ifdef __CUDACC__\n#endif\n"))
        self.assertIn("CUDANOINLINE int f()", rewritten("__noinline__ int f() { return 1; }\n"))
        self.assertIn("__attribute__((__noinline__))", rewritten("__attribute__((__noinline__)) int f();\n"))
        self.assertIn("my__CUDACC__x", rewritten("int my__CUDACC__x;\n"))

    def test_each_view_has_the_architecture_or_has_none(self):
        text = "#if __CUDA_ARCH__ >= 800 && defined(__CUDA_ARCH_FEAT_SM90_ALL)\n#define A __CUDA_ARCH__\n#endif\n"
        self.assertIn("#if COURSE_ARCH_D >= 800 && defined(COURSE_ARCH_FEAT_SM90_ALL)\n#define A COURSE_ARCH_D\n", rewritten(text))
        self.assertNotRegex(rewritten(text, view=HOST), "CUDA_ARCH|COURSE_ARCH")
        self.assertEqual({len(word) for word in DEVICE}, {len(word) for word in HOST.values()})

    def test_one_view_is_enough_where_only_device_code_asks(self):
        for text in (
            "__global__ void k() {\n#if __CUDA_ARCH__ >= 800\n  f();\n#else\n#define X 1\n#endif\n}\nint main() { f(); }\n",
            "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600\n// as everybody has it\n__device__ double atomicAdd(double* p, double v) { return 0; }\n#endif\n",
            "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700\n#error not for this one\n#endif\nint main() {}\n",
            "#define ONLY __device__\nONLY int f() { return __CUDA_ARCH__; }\nint main() {}\n",
            "#ifdef X\n#define Y 1\n#endif\nint main() {}\n",
            "// __CUDA_ARCH__\nint main() {}\n",
        ):
            with self.subTest(text):
                self.assertFalse(self.differs(text))

    def test_two_are_needed_where_it_decides_more(self):
        for text in (
            "#ifdef __CUDA_ARCH__\n#define A 1\n#endif\n",
            "#ifdef X\n#elif defined(__CUDA_ARCH__)\n#include <a.h>\n#endif\n",
            "#ifndef __CUDA_ARCH__\nconst int n = 1;\n#endif\n",
            "#ifdef __CUDA_ARCH__\n#else\nint host() { return 1; }\n#endif\n",
            "#define A (__CUDA_ARCH__ >= 900)\n",
            "__host__ __device__ int f() {\n#ifdef __CUDA_ARCH__\n  return 1;\n#endif\n  return 2;\n}\n",
            "#define BOTH __host__ __device__\nBOTH int f() { return __CUDA_ARCH__; }\n",
            "int main() { auto f = [=] __device__(int i) { int x = __CUDA_ARCH__; }; }\n",
            "#if defined(__CUDA_ARCH_FEAT_SM90_ALL)\nusing T = int;\n#endif\n",
        ):
            with self.subTest(text):
                self.assertTrue(self.differs(text))

    @staticmethod
    def differs(text):
        file = File(text)
        file.mark(marking_macros((name, body) for name, body, _ in file.definitions()))
        return file.differs_between_views()

    def test_the_hosts_view_has_no_kernels_bodies(self):
        text = "__global__ void k() {\n#if A\n  f();\n#endif\n}\n__device__ int f() { return 1; }\n"
        self.assertEqual(File(text).without_kernels(), "__global__ void k() {\n     \n      \n      \n}\n__device__ int f() { return 1; }\n")
        torn = "__global__ void k() {\n#if A\n  f(); }\n#else\n  g(); }\n#endif\n"
        self.assertEqual(File(torn).without_kernels(), torn)


class OwnNames(unittest.TestCase):
    def own(self, text):
        """The text with each of the program's own names in '[]'."""
        return re.sub(r"_(ThreadId|BlockId|BlockDi|GridDi)\b", r"[\1]", rename_own(text))

    def test_they_are_told_from_the_built_in_variables(self):
        for text, expected in (
            ("int main() { dim3 gridDim(2), blockDim(32); f(gridDim, blockDim.x); }", "int main() { dim3 [GridDi](2), [BlockDi](32); f([GridDi], [BlockDi].x); }"),
            ("int main() { int n = 1, blockDim = 32; g(n * blockDim); }", "int main() { int n = 1, [BlockDi] = 32; g(n * [BlockDi]); }"),
            ("int main() { dim3 b = dim3(32), gridDim = {2, 1}; }", "int main() { dim3 b = dim3(32), [GridDi] = {2, 1}; }"),
            ("void f(int* p, const dim3& gridDim, dim3 = 1) { k<<<gridDim, 1>>>(p); }", "void f(int* p, const dim3& [GridDi], dim3 = 1) { k<<<[GridDi], 1>>>(p); }"),
            ("void f(dim3 gridDim); __device__ int x = gridDim.x;", "void f(dim3 [GridDi]); __device__ int x = gridDim.x;"),
            ("__device__ int f(uint3 threadIdx) { return threadIdx.x * blockDim.x; }", "__device__ int f(uint3 [ThreadId]) { return [ThreadId].x * blockDim.x; }"),
            ("template <int blockDim> __global__ void k() { g(blockDim, threadIdx); }", "template <int [BlockDi]> __global__ void k() { g([BlockDi], threadIdx); }"),
            ("int main() { auto f = [](dim3 gridDim) { return gridDim.x; }; }", "int main() { auto f = [](dim3 [GridDi]) { return [GridDi].x; }; }"),
            ("int main() { auto& [gridDim, blockDim] = c; g(blockDim); }", "int main() { auto& [[GridDi], [BlockDi]] = c; g([BlockDi]); }"),
            ("int main() { for (int blockDim : all) g(blockDim); }", "int main() { for (int [BlockDi] : all) g([BlockDi]); }"),
            ("__global__ void k() { { int blockDim = gridDim.x; g(blockDim); } g(blockDim.x); }", "__global__ void k() { { int [BlockDi] = gridDim.x; g([BlockDi]); } g(blockDim.x); }"),
            ("struct C { dim3 gridDim, blockDim; C() : gridDim(1) {} };", "struct C { dim3 [GridDi], [BlockDi]; C() : [GridDi](1) {} };"),
            ("struct C : B { int get() const { return blockDim; } int blockDim; }; __device__ int x = blockDim.x;",
             "struct C : B { int get() const { return [BlockDi]; } int [BlockDi]; }; __device__ int x = blockDim.x;"),
            ("struct C { void f(); int blockDim; }; void C::f() { g(blockDim); } __device__ void f() { g(blockDim.x); }",
             "struct C { void f(); int [BlockDi]; }; void C::f() { g([BlockDi]); } __device__ void f() { g(blockDim.x); }"),
            ("__global__ void k(C c) { x = c.gridDim.x + p->blockDim.y + C::blockIdx + gridDim.x; }",
             "__global__ void k(C c) { x = c.[GridDi].x + p->[BlockDi].y + C::[BlockId] + gridDim.x; }"),
            ("C c{.gridDim = 2};", "C c{.[GridDi] = 2};"),
            ("#define RUN(k, c) k<<<gridDim, c.blockDim>>>()\n", "#define RUN(k, c) k<<<[GridDi], c.[BlockDi]>>>()\n"),
            ("#define DIMS dim3 gridDim(2)\n", "#define DIMS dim3 [GridDi](2)\n"),
        ):  # fmt: skip
            with self.subTest(text):
                self.assertEqual(self.own(text), expected)

    def test_the_built_in_variables_stay(self):
        for text in (
            "__global__ void k() { int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x; f(threadIdx, blockDim); dim3 b = blockDim, g(gridDim); }",
            "DEVICE int f(int* x) { x[threadIdx.x] &= blockDim.x; const auto t = threadIdx; if (n > blockDim.x) return blockIdx.x; }",
            "template <class T> struct S { T n; __device__ int at() { return n * blockDim.x + (unsigned)threadIdx.x; } };",
            "__global__ void k() { for (int i = threadIdx.x, n = blockDim.x; i < n; i += blockDim.x) f<T>(blockIdx, {gridDim}); }",
            "auto f = [=] __device__(int i) { return g(i, threadIdx); };",
            "#define ID (blockIdx.x * blockDim.x + threadIdx.x)\n",
            "#define RUN(k, gridDim) k<<<gridDim, 1>>>()\n",
            '// dim3 gridDim(2);\nconst char* s = "dim3 gridDim";',
        ):
            with self.subTest(text):
                self.assertEqual(rename_own(text), text)

    def test_messages_have_the_programs_names(self):
        self.assertEqual(restore(rename_own("int main() { int blockDim = 1, gridDim; }")), "int main() { int blockDim = 1, gridDim; }")


class Pragmas(unittest.TestCase):
    def test_a_macro_may_be_a_pragma(self):
        self.assertIn('#define UNROLL _Pragma("unroll 4")', rewritten("#define UNROLL #pragma unroll 4\n"))
        self.assertIn("#define TEXT(x) #x", rewritten("#define TEXT(x) #x\n"))


class Shared(unittest.TestCase):
    def body(self, declaration):
        return " ".join(re.sub(r"\n#line.*\n *", " ", rewritten(f"__global__ void k() {{ {declaration} }}\n")).split())

    def test_extern_in_a_function(self):
        for declaration, cast in (
            ("extern __shared__ float s[];", "float (*)[]"),
            ("extern __shared__ __align__(16) unsigned char s[];", "unsigned char (*)[]"),
            ("extern volatile __shared__ int s[][32];", "volatile int (*)[][32]"),
            ("__shared__ extern alignas(128) ns::T<int> s[];", "ns::T < int > (*)[]"),
            ("extern __shared__ float4 s;", "float4 *"),
        ):
            with self.subTest(declaration):
                self.assertIn(f"auto& s = *reinterpret_cast<{cast}>(::interpreter::dynamic_shared()) ;", self.body(declaration))

    def test_extern_for_the_whole_file(self):
        result = rewritten(
            "extern __shared__ int s[];\n__global__ void a() { s[0] = 1; }\n__device__ void b(int* s) { s[0] = 1; }\n"
            "__global__ void c() { x.s = 1; }\nint main() { int s; }\n"
        )
        self.assertEqual(result.count("auto& s = "), 1)
        self.assertEqual(places(result)["main"], [(5, 5)])

    def test_alignas_goes_first(self):
        self.assertIn("alignas(16) __shared__ float s[64]; t", rewritten("__global__ void k() { __shared__ alignas(16) float s[64]; t(); }"))
        self.assertIn("alignas(16) static __shared__ int x;", rewritten("__global__ void k() { static __shared__ alignas(16) int x; }"))
        untouched = "__global__ void k() { __shared__ float s[64], t[2]; alignas(16) __shared__ int x; }"
        self.assertIn(untouched, rewritten(untouched))


class Clusters(unittest.TestCase):
    def test_the_kernel_says_it_when_it_begins(self):
        for text in (
            "__global__ void __cluster_dims__(2, 1, 1) k(int* x) { *x = 1; }\n",
            "template <int n> __global__ __cluster_dims__(2, 1, 1) void __launch_bounds__(32) k(int* x) { *x = 1; }\n",
        ):
            with self.subTest(text):
                self.assertIn("{::interpreter::cuda_runtime::in_clusters_of(dim3(2, 1, 1));*x = 1;", re.sub(r"\n#line.*\n *", "", rewritten(text)))
        self.assertNotIn("in_clusters_of", rewritten("__global__ void k(int* x) { *x = 1; }\n"))


class Constants(unittest.TestCase):
    def test_const_is_left_out(self):
        for text, expected in (
            ("static __constant__ const float x[2] = {1, 2};", "static __constant__       float x[2] = {1, 2};"),
            ("const __constant__ int x = 1, y = 2;", "      __constant__ int x = 1, y = 2;"),
            ("__constant__ const char* x;", "__constant__ const char* x;"),
            ("const int y = 1; __constant__ int x;", "const int y = 1; __constant__ int x;"),
        ):
            with self.subTest(text):
                self.assertEqual(rewritten(text).split("\n", 1)[1], expected)


class Functions(unittest.TestCase):
    def names(self, text):
        visible = [t for t in tokens(text) if t.is_seen]
        return [(f.scope, f.name, f.is_kernel) for f in functions(visible, matching(visible))]

    def test_functions_are_found_in_their_scopes(self):
        text = (
            "struct A { int x{1}; A() : x(2) {} void m() const { if (x) { y(); } } };\n"
            "namespace n { namespace { template <class T, int k = f(3)> __global__ void __launch_bounds__(256) g(T* p) {} } }\n"
            'extern "C" { __global__ void h() {} }\nint table[] = {1, 2};\nenum class E { a };\nstatic int v() noexcept { return 1; }\n'
        )
        self.assertEqual(
            self.names(text),
            [(("A",), "A", False), (("A",), "m", False), (("n",), "g", True), ((), "h", True), ((), "v", False)],
        )

    def test_kernels_are_made_known_to_programs_that_launch_by_address(self):
        text = "namespace n { __global__ void a() {} }\ntemplate <class T> __global__ void b() {}\nint main() { cudaLaunchKernel((void*)n::a, 1, 2, 0); }\n"
        file = File(text)
        file.rewrite()
        self.assertIn("make_known<&::n::a>()", file.known_kernels())
        self.assertNotIn("::b", file.known_kernels())
        self.assertIn("cudaLaunchKernel(       n::a, 1", file.result("x.cu"))
        self.assertEqual(File("__global__ void a() {}\nint main() { a<<<1, 1>>>(); }").known_kernels(), "")


if __name__ == "__main__":
    unittest.main()
