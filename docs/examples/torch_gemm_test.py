"""Usage: torch_gemm_test.py [LIBRARY]

Compares torch_gemm.matmul() with torch.matmul(). LIBRARY is libcourse_gemm.so, as in COURSE_GEMM_LIBRARY.

Exit code: 0 all is right, 1 something is wrong, 77 this machine has no PyTorch, no GPU for it, or no library."""

import itertools
import os
import sys
import tempfile
import unittest

if len(sys.argv) > 1:
    os.environ["COURSE_GEMM_LIBRARY"] = sys.argv.pop(1)
try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch; install it, for example with pip install torch")
    sys.exit(77)
import torch_gemm as course_gemm

if not torch.cuda.is_available():
    print("skipped: PyTorch finds no GPU")
    sys.exit(77)
try:
    course_gemm.library()
except OSError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

GPU = "cuda"
UNIT = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
LEAKY = "leaky_relu"


def random(*shape, dtype=torch.float16):
    return torch.randn(*shape, device=GPU).to(dtype)


def right(a, b, activation=None):
    """(value, what may add up to rounding errors) in double precision."""
    exact = torch.matmul(a.double(), b.double())
    if activation:
        exact = torch.nn.functional.leaky_relu(exact)
    return exact, torch.matmul(a.double().abs(), b.double().abs())


class Matmul(unittest.TestCase):
    def assert_right(self, got, a, b, activation=None):
        exact, sums = right(a, b, activation)
        self.assertEqual(got.shape, exact.shape)
        allowed = UNIT[got.dtype] * exact.abs() * 1.01 + 2.0**-23 * (a.shape[1] + 4) * sums + 2.0**-24
        beyond = ~((got.double() - exact).abs() <= allowed)  # so that NaN is wrong
        self.assertEqual(int(beyond.sum()), 0, f"{beyond.nonzero()[:3].tolist()} of {tuple(got.shape)} are wrong")

    def check(self, a, b, **options):
        self.assert_right(course_gemm.matmul(a, b, **options), a, b, options.get("activation"))

    def test_like_torch(self):
        a, b = random(300, 200), random(200, 260)
        torch.testing.assert_close(course_gemm.matmul(a, b), torch.matmul(a, b), rtol=2e-3, atol=2e-3)
        torch.testing.assert_close(
            course_gemm.matmul(a, b, activation=LEAKY), torch.nn.functional.leaky_relu(torch.matmul(a, b)), rtol=2e-3, atol=2e-3
        )

    def test_types_and_transposes(self):
        shapes = [(128, 256, 192), (130, 77, 51), (1, 520, 264), (8, 1024, 1024), (700, 1, 96), (1100, 1300, 520)]
        for dtype, out_dtype, (m, n, k) in itertools.product(UNIT, (None, torch.float32), shapes):
            for a_is_transposed, b_is_transposed in itertools.product((False, True), repeat=2):
                a = random(k, m, dtype=dtype).T if a_is_transposed else random(m, k, dtype=dtype)
                b = random(n, k, dtype=dtype).T if b_is_transposed else random(k, n, dtype=dtype)
                with self.subTest(dtype=dtype, out=out_dtype, shape=(m, n, k), a=a_is_transposed, b=b_is_transposed):
                    self.check(a, b, out_dtype=out_dtype)
                    self.check(a, b, out_dtype=out_dtype, activation=LEAKY)

    def test_views(self):
        x, y, cube = random(300, 400), random(500, 260), random(100, 3, 400)
        views = [x[::2], x[:, 1:], x[7:, :399], x[1:250, ::3], x.T[::2].T, x[5:6], x[:, :0], cube[:, 1], cube[4], cube[:, :, 8]]
        views += [x[:1].expand(50, 400), x[:, :1].expand(300, 64), x[0, 0].expand(20, 30), x.unfold(0, 16, 4)[3]]
        for number, a in enumerate(views):
            k = a.shape[1]
            for b in (y[:k], y.T[:200].contiguous()[:, :k].T, y[3 : 3 + k, 1::2]):
                with self.subTest(view=number, b=(tuple(b.shape), b.stride())):
                    self.check(a, b)

    def test_empty(self):
        for m, n, k in ((0, 5, 7), (5, 0, 7), (5, 7, 0), (0, 0, 0), (0, 5, 0)):
            with self.subTest(shape=(m, n, k)):
                c = course_gemm.matmul(random(m, k), random(k, n))
                self.assertTrue(torch.equal(c, torch.zeros(m, n, dtype=torch.float16, device=GPU)))

    def test_out(self):
        a, b = random(40, 64), random(64, 48)
        big = torch.full((200, 200), 7.0, dtype=torch.float16, device=GPU)
        for view in (big[:40, :48], big[3:43, 5:53], big[::5, ::4][:, :48], big.T[8:48, :48], big[40:80, 150:198].T.contiguous().T):
            with self.subTest(strides=view.stride(), offset=view.storage_offset()):
                big.fill_(7)
                untouched = torch.ones_like(big, dtype=torch.bool)
                torch.as_strided(untouched, view.shape, view.stride(), view.storage_offset()).fill_(False)
                version = view._version
                self.assertIs(course_gemm.matmul(a, b, out=view), view)
                self.assertGreater(view._version, version)
                self.assert_right(view, a, b)
                if view.data_ptr() >= big.data_ptr() and view.untyped_storage().data_ptr() == big.untyped_storage().data_ptr():
                    self.assertTrue(bool((big[untouched] == 7).all()))

    def test_current_stream_without_waiting(self):
        stream, done = torch.cuda.Stream(), torch.cuda.Event()
        a, b, late = random(512, 512), random(512, 512), torch.zeros(512, 512, dtype=torch.float16, device=GPU)
        course_gemm.matmul(a, b)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
            late.copy_(a)
            c = course_gemm.matmul(late, b)
            done.record()
        self.assertFalse(done.query(), "the call waited for the GPU")
        done.synchronize()
        self.assert_right(c, a, b)

    def test_graph(self):
        for m, n, k in ((1096, 1032, 520), (8, 1040, 512), (77, 51, 33)):  # shapes that nobody has asked for before
            a, b, graph = random(m, k), random(k, n), torch.cuda.CUDAGraph()
            with self.subTest(shape=(m, n, k)):
                with torch.cuda.graph(graph):
                    c = course_gemm.matmul(a, b)
                for _ in range(2):
                    a.copy_(random(m, k))
                    graph.replay()
                    self.assert_right(c, a, b)

    def test_refused(self):
        a, b = random(16, 24), random(24, 32)
        for error, call in (
            (ValueError, lambda: course_gemm.matmul(a, a)),
            (ValueError, lambda: course_gemm.matmul(a, b, out=random(16, 31))),
            (ValueError, lambda: course_gemm.matmul(b[:, :24], b[:, :24], out=b[:, :24])),
            (ValueError, lambda: course_gemm.matmul(a, b, out=random(1, 32).expand(16, 32))),
            (ValueError, lambda: course_gemm.matmul(a, b, activation="tanh")),
            (ValueError, lambda: course_gemm.matmul(a, b, out_dtype=torch.bfloat16)),
            (TypeError, lambda: course_gemm.matmul(a, b.float())),
            (TypeError, lambda: course_gemm.matmul(a.cpu(), b)),
            (TypeError, lambda: course_gemm.tune(a, b[None])),
            (TypeError, lambda: course_gemm.matmul(a, a[0, 0])),
            (ValueError, lambda: course_gemm.matmul(a.expand(2, 16, 24), b.expand(3, 24, 32))),
            (ValueError, lambda: course_gemm.matmul(a[None], b, out=random(16, 32))),
            (TypeError, lambda: course_gemm.matmul(a.int(), b.int())),
            (TypeError, lambda: course_gemm.matmul(a, b.clone().requires_grad_(), out=random(16, 32))),
            (TypeError, lambda: course_gemm.tune(a, b.clone().requires_grad_())),
        ):
            self.assertRaises(error, call)
        self.assertRaisesRegex(ValueError, "shapes do not fit", course_gemm.matmul, a, a)
        with torch.no_grad():
            self.check(a, b.clone().requires_grad_())

    def test_batches_and_vectors(self):
        a, b = random(3, 2, 40, 64), random(3, 2, 64, 48)
        pairs = [(a, b), (a[0, 0], b), (a, b[0, 0]), (a[:, :1], b[:1]), (a[0], b[0, 0]), (a.transpose(0, 1), b[0, 0]), (a[:, :, ::2], b)]
        pairs += [(a[0, 0, 0], b[0, 0]), (a[0, 0], b[0, 0, :, 0]), (a[0, 0, 0], b[0, 0, :, 0]), (a[0, 0, 0], b), (a, b[0, 0, :, 3])]
        pairs += [(a[:0], b[:0]), (a[:, :, :0], b)]
        for number, (x, y) in enumerate(pairs):
            with self.subTest(pair=number, a=tuple(x.shape), b=tuple(y.shape)):
                want = torch.matmul(x, y)
                got = course_gemm.matmul(x, y)
                self.assertEqual(got.shape, want.shape)
                torch.testing.assert_close(got, want, rtol=4e-3, atol=2e-2)
                out = torch.full_like(want, 7)
                self.assertIs(course_gemm.matmul(x, y, out=out), out)
                torch.testing.assert_close(out, want, rtol=4e-3, atol=2e-2)

    def test_gradient(self):
        for activation, out_dtype in ((None, None), (LEAKY, None), (LEAKY, torch.float32)):
            for x_shape, y_shape in (((40, 64), (64, 48)), ((2, 40, 64), (64, 48)), ((2, 40, 64), (2, 64, 48)), ((64,), (64, 48))):
                with self.subTest(activation=activation, out=out_dtype, a=x_shape, b=y_shape):
                    a, b = random(*x_shape).requires_grad_(), random(*y_shape).requires_grad_()
                    c = course_gemm.matmul(a, b, activation=activation, out_dtype=out_dtype)
                    weight = torch.randn_like(c)
                    got = torch.autograd.grad((c * weight).sum(), (a, b))
                    x, y = a.detach().double().requires_grad_(), b.detach().double().requires_grad_()
                    exact = torch.matmul(x, y)
                    exact = torch.nn.functional.leaky_relu(exact) if activation else exact
                    want = torch.autograd.grad((exact * weight.double()).sum(), (x, y))
                    for mine, right_one in zip(got, want, strict=True):
                        self.assertEqual(mine.shape, right_one.shape)
                        torch.testing.assert_close(mine.double(), right_one, rtol=1e-2, atol=6e-2)
        a, b = random(8, 16).requires_grad_(), random(16, 8)
        with self.assertRaisesRegex(ValueError, "no gradient for one below 0"):
            course_gemm.matmul(a, b, activation=LEAKY, slope=-0.5).sum().backward()

    def test_operator(self):
        a, b = random(40, 64).requires_grad_(), random(64, 48).requires_grad_()
        torch.library.opcheck(torch.ops.course_gemm.matmul, (a, b, 0.1, None))
        torch.library.opcheck(torch.ops.course_gemm.matmul_out, (a.detach(), b.detach(), random(40, 48), 0.1))

    def test_compile(self):
        @torch.compile(fullgraph=True)
        def block(x, w, v, out):
            course_gemm.matmul(x, w, out=out)
            return course_gemm.matmul(course_gemm.matmul(x, w, activation=LEAKY) * 2, v)

        for m in (40, 72):  # the second one, with an unknown size
            x, w, v, out = random(m, 64), random(64, 48), random(48, 32), random(m, 48)
            got = block(x, w, v, out)
            torch.testing.assert_close(out, x @ w, rtol=4e-3, atol=2e-2)
            torch.testing.assert_close(got, torch.nn.functional.leaky_relu(x @ w) * 2 @ v, rtol=1e-2, atol=0.3)
        trained = torch.compile(lambda x, w: course_gemm.matmul(x, w).sum(), fullgraph=True)
        x, w = random(40, 64).requires_grad_(), random(64, 48).requires_grad_()
        trained(x, w).backward()
        torch.testing.assert_close(x.grad, w.detach().sum(1).expand(40, 64), rtol=1e-2, atol=2e-2)

    def test_inference_mode(self):
        a, b = random(16, 24), random(24, 32)
        with torch.inference_mode():
            out = random(16, 32)
            self.assertIs(course_gemm.matmul(a, b, out=out), out)
            out.fill_(7)
        with self.assertRaisesRegex(TypeError, "inference mode"):
            course_gemm.matmul(a, b, out=out)
        self.assertTrue(bool((out == 7).all()))

    def test_tune(self):
        a, b = random(520, 264), random(264, 776)
        self.assertIn("by model", course_gemm.choice(a, b))
        self.assert_right(course_gemm.tune(a, b), a, b)
        self.assertIn("timed", course_gemm.choice(a, b))
        self.check(a, b)
        self.assertNotIn("timed", course_gemm.choice(a[:, 1:], b[1:]))  # other strides


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COURSE_TUNING_CACHE"] = folder
        unittest.main()
