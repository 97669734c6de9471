#include "common/harness/conformance/conformance.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.cuh"
#include "common/device/fallback_block.h"
#include "common/gemm/gemm.h"
#ifdef COURSE_ON_GPU
#include "common/harness/measure/baselines.h"
#endif
#include "common/harness/results/ncu.h"
#ifdef COURSE_ON_INTERPRETER
#include "common/harness/measure/projection.h"
#include "common/harness/results/results.h"
#endif
#include "common/harness/conformance/sparse_memory.h"

namespace harness {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

#ifdef COURSE_ON_GPU
constexpr bool kOnGpu = true;
#else
constexpr bool kOnGpu = false;
#endif

using Inputs = std::function<double(std::int64_t row, std::int64_t col)>;

// Products and sums of these are exact in float, so the result must be exact too.
Inputs small_integers(unsigned seed) {
  return [seed](std::int64_t r, std::int64_t c) {
    const auto h = static_cast<std::uint32_t>(r * 7919 + c * 104729 + seed) * 2654435761u;
    return static_cast<double>(h >> 28) - 7;
  };
}
Inputs fractions(unsigned seed) {
  return [seed](std::int64_t r, std::int64_t c) {
    std::minstd_rand random(static_cast<unsigned>(r * 7919 + c * 104729) + seed);
    random.discard(2);
    return std::uniform_real_distribution<double>(-1, 1)(random);
  };
}
// A few special values among fractions, so that most results are NaN or infinite and the rest are not.
Inputs specials(unsigned seed) {
  return [plain = fractions(seed), seed](std::int64_t r, std::int64_t c) {
    switch ((r * 31 + c * 17 + seed) % 97) {
      case 3: return kNaN;
      case 20: return kInfinity;
      case 41: return -kInfinity;
      case 60: return -0.0;
      default: return plain(r, c);
    }
  };
}

struct Case {
  std::string name;
  Placement A, B, C;
};

// m x n x k in one of the layouts; `padding` says how many elements of nobody follow a row, or column, of so many.
template <class Padding>
Case laid_out(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b, const std::string& words,
              const Padding& padding) {
  return {std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " + (transpose_a ? "t" : "n") +
              (transpose_b ? "t" : "n") + " " + words,
          transpose_a ? column_major(m, k, padding(m)) : row_major(m, k, padding(k)),
          transpose_b ? column_major(k, n, padding(k)) : row_major(k, n, padding(n)), row_major(m, n, padding(n))};
}
// Each matrix padded alike, so that leading dimensions are not what the shape suggests.
Case dense(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b, std::int64_t padding) {
  return laid_out(m, n, k, transpose_a, transpose_b, "padding " + std::to_string(padding), [=](std::int64_t) { return padding; });
}
// Each row, or column, begins at a whole chunk of memory, whatever the length.
Case in_chunks(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
  return laid_out(m, n, k, transpose_a, transpose_b, "rows in chunks", [](std::int64_t length) { return -length & 7; });
}

constexpr char kNotOwn[] = "misaligned by one element";  // that a tile leaves a case to another one is tested with this one
std::vector<Case> cases() {
  std::vector<Case> all;
  struct Shape {
    std::int64_t m, n, k;
  };
  // Tiny, ragged on all sides, more rows than columns and the other way round; one tile exactly, one more, one less.
  for (const Shape s :
       {Shape{1, 1, 1}, {2, 3, 5}, {1, 70, 40}, {70, 1, 40}, {33, 31, 17}, {64, 96, 16}, {129, 131, 37}, {127, 64, 33}})
    for (const bool a : {false, true})
      for (const bool b : {false, true}) all.push_back(dense(s.m, s.n, s.k, a, b, s.m % 2 ? 3 : 0));
  for (const Shape s : {Shape{0, 5, 3}, {5, 0, 3}, {5, 3, 0}, {0, 0, 0}, {0, 0, 7}})
    all.push_back(dense(s.m, s.n, s.k, false, false, 0));

  const std::int64_t m = 45, n = 67, k = 21;
  const auto add = [&](const char* name, Placement A, Placement B, Placement C) { all.push_back({name, A, B, C}); };
  const Placement A = row_major(m, k), B = row_major(k, n), C = row_major(m, n);
  add(kNotOwn, {m, k, k + 1, 1, 1}, {k, n, n + 1, 1, 1}, {m, n, n + 1, 1, 1});
  add("vectors aligned, shape ragged", {m, k, 24, 1, 0}, {k, n, 68, 1, 0}, {m, n, 68, 1, 0});
  add("transposed, vectors aligned, shape ragged", {m, k, 1, 48, 0}, {k, n, 1, 24, 0}, {m, n, 68, 1, 0});
  add("chunks of 16 bytes aligned, shape ragged", {m, k, 24, 1, 0}, {k, n, 72, 1, 0}, {m, n, 72, 1, 0});
  // Each of the three alone, where strides say that there are chunks.
  add("chunks of 16 bytes, A misaligned", {m, k, 24, 1, 1}, {k, n, 72, 1, 0}, {m, n, 72, 1, 0});
  add("chunks of 16 bytes, B misaligned", {m, k, 24, 1, 0}, {k, n, 72, 1, 1}, {m, n, 72, 1, 0});
  add("chunks of 16 bytes, C misaligned", {m, k, 24, 1, 0}, {k, n, 72, 1, 0}, {m, n, 72, 1, 1});
  add("chunks of 16 bytes, nothing to add up", {m, 0, 24, 1, 0}, {0, n, 72, 1, 0}, {m, n, 72, 1, 0});
  add("chunks of 16 bytes aligned, shape ragged, several tiles", {150, 91, 96, 1, 0}, {91, 277, 280, 1, 0}, {150, 277, 280, 1, 0});
  add("chunks of 16 bytes, rows backwards", {150, 96, -96, 1, 0}, {96, 72, -72, 1, 0}, {150, 72, -72, 1, 0});
  add("chunks of 16 bytes, a row of A and of B for all", {150, 96, 0, 1, 0}, {96, 72, 0, 1, 0}, {150, 72, 72, 1, 0});
  add("every second element", {m, k, 2 * k, 2, 0}, {k, n, 2 * n, 2, 0}, {m, n, 2 * n, 2, 0});
  add("both strides odd", {m, k, 50, 3, 0}, {k, n, 3, 64, 0}, {m, n, 211, 3, 0});
  add("column-major C", A, B, column_major(m, n));
  add("column-major C, padded, misaligned", A, B, {m, n, 1, m + 3, 1});
  add("strided column-major C", A, B, {m, n, 2, 2 * m + 1, 0});
  add("rows of A repeated", {m, k, 0, 1, 0}, B, C);
  add("columns of A repeated", {m, k, 1, 0, 0}, B, C);
  add("rows of B repeated", A, {k, n, 0, 1, 0}, C);
  add("columns of B repeated", A, {k, n, 1, 0, 0}, C);
  add("one element for all", {m, k, 0, 0, 0}, {k, n, 0, 0, 0}, C);
  add("rows backwards", {m, k, -k, 1, 0}, {k, n, -n, 1, 0}, {m, n, -n, 1, 0});
  add("columns backwards", {m, k, k, -1, 0}, {k, n, n, -1, 0}, {m, n, n, -1, 0});
  add("everything backwards", {m, k, -k, -1, 0}, {k, n, -n, -1, 0}, {m, n, -n, -1, 0});
  add("overlapping windows (a Toeplitz matrix)", {m, k, 1, 1, 0}, {k, n, 1, 1, 0}, C);
  return all;
}

// Whether a tile runs that case itself: one that is compiled for one layout leaves the others to a tile for all of them.
bool is_own(const Variant& v, const Case& c) {
  const auto chunk = static_cast<std::int64_t>(16 / bytes(v.in));
  const auto has_rows_of_chunks = [&](const Placement& p) {
    return p.col_stride == 1 && p.row_stride > 0 && p.row_stride % chunk == 0 && p.offset % chunk == 0;
  };
  return v.numbers.every_layout || (has_rows_of_chunks(c.A) && has_rows_of_chunks(c.B));
}

// For which layouts a tile is compiled: whether A is transposed, and B.
std::vector<std::pair<bool, bool>> layouts_of(const Variant& v) {
  if (!v.numbers.every_layout) return {{false, false}};
  return {{false, false}, {false, true}, {true, false}, {true, true}};
}

std::string title(const Step& step, const Variant& v) {
  return step.name + " [" + v.tile + "] " + std::string(name(v.in)) + " -> " + std::string(name(v.out));
}

// A case's matrices.
struct Matrices {
  Matrices(const Variant& v, const Case& c, const Inputs& a, const Inputs& b)
      : A("A", v.in, c.A), B("B", v.in, c.B), C("C", v.out, c.C) {
    A.fill(a);
    B.fill(b);
  }
  // Calls gemm(A, B, C) with a C of nobody's values. @return what is wrong with that or with the matrices, or an empty string.
  template <class Gemm>
  std::string run(const Gemm& gemm) {
    C.poison();
    try {
      gemm(A.view(), B.view(), C.view());
      device::synchronize();
    } catch (const std::exception& e) {
      return e.what();
    }
    for (const std::string& wrong : {C.fetch(), A.changed(), B.changed()})
      if (!wrong.empty()) return wrong;
    return "";
  }
  TestMatrix A, B, C;
};

// All of it, row by row.
std::vector<double> elements_of(const TestMatrix& m) {
  std::vector<double> elements;
  for (std::int64_t r = 0; r < m.rows(); ++r)
    for (std::int64_t c = 0; c < m.cols(); ++c) elements.push_back(m.at(r, c));
  return elements;
}

// Runs one case. @return what is wrong, or an empty string.
std::string run(const Variant& v, const Case& c, const Inputs& a, const Inputs& b, bool exact, bool affine = false) {
  Matrices of(v, c, a, b);
  if (const std::string wrong = of.run(affine ? v.gemm_affine : v.gemm); !wrong.empty()) return wrong;
  const Reference reference(of.A, of.B);
  const Reference::Sums sums = exact ? Reference::Sums::kExact : Reference::Sums::kFloat;
  if (!affine) return reference.compare(of.C, sums);
  // A rounding or two, of which each doubles what came in (2 x + 1).
  const auto finish = [](bool in_column) {
    return [in_column](double sum, double tolerance, std::int64_t col) {
      const double value = 2 * sum + 1 + (in_column ? static_cast<double>(col % 16) : 0);
      return Expected{value, 2 * tolerance + 0x1p-23 * std::fabs(value)};
    };
  };
  // Steps up to 06, and 08 to 11, do not ask for the epilogue in a column. What takes the fallback does.
  if (reference.compare(of.C, sums, finish(true)).empty()) return "";
  return reference.compare(of.C, sums, finish(false));
}

// With numbers that leave no doubt. @param order that the backend runs in, as in_all_orders() names it
void check_exactly(const Step& step, const Variant& v, const Case& c, const std::string& order = "") {
  INFO(title(step, v) << ": " << c.name << order);
  CHECK(run(v, c, small_integers(1), small_integers(2), true) == "");
}

// With other types a tile's threads go the same way.
bool has_first_type(const Step& step, const Variant& v) { return v.in == step.variants.front().in && v.out == v.in; }

// Calls `body` once per order in which the backend can run for a step's first tile. The others are the same template:
// each has one of the orders, in turn.
template <class Body>
void in_all_orders([[maybe_unused]] const Step& step, [[maybe_unused]] const Variant& v, Body&& body) {
#if defined(COURSE_ON_INTERPRETER)
  using interpreter::Order;
  struct {
    Order order;
    std::uint64_t seed;
    const char* name;
  } const orders[] = {{Order::kForward, 1, "forward"}, {Order::kReverse, 1, "reverse"}, {Order::kRandom, 42, "random:42"}};
  const auto number = static_cast<std::size_t>(&v - step.variants.data());
  for (const auto& o : orders) {
    if (number > 0 && &o != &orders[number % std::size(orders)]) continue;
    interpreter::options().order = o.order;
    interpreter::options().seed = o.seed;
    body(std::string(", order ") + o.name);
  }
  interpreter::options().order = Order::kForward;
#else
  body(std::string());
#endif
}

// Which cases a step's launcher gives to the fallback, the same kernel for all tiles of a type, and in every step. On the
// interpreter, where they take most of the time, a step's first tile is tested with them, once; each other one with kNotOwn alone.
class FallbackCases {
 public:
  bool has_been_tested(const Variant& v, const Case& c) const { return c.name != kNotOwn && tested_.count(key(v, c)); }
  void note([[maybe_unused]] const Variant& v, [[maybe_unused]] const Case& c) {
#ifdef COURSE_ON_INTERPRETER
    if (!interpreter::profiles().empty() && device::fallback_block(interpreter::profiles().back().kernel))
      tested_.insert(key(v, c));
    interpreter::clear_profiles();  // the next case may launch nothing
#endif
  }

 private:
  static std::string key(const Variant& v, const Case& c) {
    return std::string(name(v.in)) + " " + std::string(name(v.out)) + " " + c.name;
  }
  std::set<std::string> tested_;  // on a GPU nothing is noted
};

void check_shapes_and_strides(const Step& step, bool with_fallback) {
  const std::vector<Case> all = cases();
  FallbackCases of_the_fallback;
  for (const Variant& v : step.variants)
    in_all_orders(step, v, [&](const std::string& order) {
      for (const Case& c : all) {
        if (!is_own(v, c) && c.name != kNotOwn) continue;
        if (!(with_fallback && &v == &step.variants.front()) && of_the_fallback.has_been_tested(v, c)) continue;
        check_exactly(step, v, c, order);
        of_the_fallback.note(v, c);
      }
    });
}

// More tiles along k than stages, chunks in memory everywhere, and last tiles that are not whole: the fast paths of steps that have
// some. The second case has fewer rows than a tile; in the third, rows and columns end within a chunk, and k with a tile, so
// that a fast path copies up to the last element of each matrix.
void check_long_k(const Step& step) {
  for (const Variant& v : step.variants) {
    // Kernels of which no numbers are known have tiles of at most 128 x 128, thin slices and no pipeline.
    const TileNumbers tile =
        v.numbers.threads ? v.numbers : TileNumbers{.block_m = 128, .block_n = 128, .block_k = 32, .stages = 2};
    const std::int64_t m = tile.block_m + 8, n = tile.block_n + 16, k = std::int64_t{tile.block_k} * (tile.stages + 1) + 8;
    const Case rows = dense(m, n, k, false, false, 0);
    if (!has_first_type(step, v)) {
      check_exactly(step, v, rows);
      continue;
    }
    in_all_orders(step, v, [&](const std::string& order) { check_exactly(step, v, rows, order); });
    check_exactly(step, v, dense(5, n, k, false, false, 0));
    for (const auto& [transpose_a, transpose_b] : layouts_of(v)) {
      if (transpose_a || transpose_b) check_exactly(step, v, dense(m, n, k, transpose_a, transpose_b, 0));
      check_exactly(step, v, in_chunks(m - 3, n - 3, k - 8, transpose_a, transpose_b));
    }
  }
}

// The copy engine takes longer to write zeros than to copy. So where A and B have only a part of a tile, no box of it lies wholly
// outside: 24 rows are no panel, nor half of one, and 72 columns are little more than one. Only the interpreter sees boxes.
void check_boxes([[maybe_unused]] const Step& step) {
#ifdef COURSE_ON_INTERPRETER
  if (step.needs.least() < 90) return;  // no copy engine
  for (const Variant& v : step.variants) {
    if (!has_first_type(step, v)) continue;
    for (const auto& [transpose_a, transpose_b] : layouts_of(v)) {
      const Case c = in_chunks(24, 72, 512, transpose_a, transpose_b);
      INFO(title(step, v) << ": " << c.name);
      interpreter::clear_profiles();
      check_exactly(step, v, c);
      REQUIRE(interpreter::profiles().size() == 1);
      CHECK(interpreter::profiles().front().total.bulk_read.requests > 0);
      CHECK(interpreter::profiles().front().total.bulk_zeros == 0);
    }
  }
#endif
}

// Many tiles in both directions, of which the last ones are not whole; rows begin with whole chunks.
void check_many_tiles(const Step& step) { check_exactly(step, step.variants.front(), dense(1411, 1423, 37, false, true, 3)); }

// Runs one case twice, on the interpreter the first time with the blocks from behind. @return what is wrong, or an empty
// string
std::string run_again(const Variant& v, const Case& c) {
  Matrices of(v, c, fractions(9), fractions(10));
  std::vector<double> first;
  for (const bool is_first : {true, false}) {
#ifdef COURSE_ON_INTERPRETER
    interpreter::options().order = is_first ? interpreter::Order::kReverse : interpreter::Order::kForward;
#endif
    if (const std::string wrong = of.run(v.gemm); !wrong.empty()) return wrong;
    const std::vector<double> elements = elements_of(of.C);
    if (is_first)
      first = elements;
    else if (std::memcmp(elements.data(), first.data(), elements.size() * sizeof(double)) != 0)
      return "other bits the second time";
  }
  return Reference(of.A, of.B).compare(of.C, Reference::Sums::kFloat);
}

// Shapes that nobody has thought of, each tile in one of its layouts after the other: right, and with the same bits again. In every
// eighth, rows begin anywhere.
void check_random_problems(const Step& step) {
  constexpr int kProblems = kOnGpu ? 200 : 4, kMost = kOnGpu ? 400 : 150;
  std::mt19937 random(2026);
  const auto extent = [&](int i) { return 1 + static_cast<std::int64_t>(random() % (i % 3 == 0 ? 40 : kMost)); };
  for (int i = 0; i < kProblems; ++i) {
    const std::int64_t m = extent(i), n = extent(i + 1), k = extent(i + 2), padding = static_cast<std::int64_t>(random() % 4);
    for (const Variant& v : step.variants) {
      if (!has_first_type(step, v)) continue;
      // On the interpreter the others have each a short way through all cases above.
      if (!kOnGpu && &v != &step.variants.front()) continue;
      const auto layouts = layouts_of(v);
      const auto [transpose_a, transpose_b] = layouts[static_cast<std::size_t>(i) % layouts.size()];
      const Case c = i % 8 == 7 ? dense(m, n, k, transpose_a, transpose_b, padding) : in_chunks(m, n, k, transpose_a, transpose_b);
      INFO(title(step, v) << ": " << c.name);
      CHECK(run_again(v, c) == "");
    }
  }
}

void check_values(const Step& step) {
  for (const Variant& v : step.variants) {
    for (const Case& c :
         {dense(65, 66, 67, false, false, 0), dense(37, 41, 200, true, true, 3), dense(65, 72, 88, false, false, 0)}) {
      if (!is_own(v, c)) continue;
      INFO(title(step, v) << ": " << c.name);
      CHECK(run(v, c, fractions(3), fractions(4), false) == "");
      CHECK(run(v, c, specials(5), specials(6), false) == "");
    }
    // Sums beyond the range of the result become infinite, sums far below it zero.
    const double large = v.in == DType::kF16 ? 3e3 : 1e19, small = v.in == DType::kF16 ? 6e-5 : 1e-23;
    const Inputs both_signs = [&](std::int64_t r, std::int64_t) { return r % 2 ? -large : large; };
    const Inputs constant = [&](std::int64_t, std::int64_t) { return large; };
    INFO(title(step, v) << ": overflow");
    CHECK(run(v, dense(9, 10, 40, false, false, 0), both_signs, constant, false) == "");
    const auto tiny = [&](std::int64_t, std::int64_t c) { return static_cast<double>(c % 3 + 1) * small; };
    INFO(title(step, v) << ": underflow");
    CHECK(run(v, dense(9, 10, 3, false, false, 0), tiny, tiny, false) == "");
  }
}

void check_epilogue(const Step& step) {
  for (const Variant& v : step.variants) {
    if (!v.gemm_affine) continue;
    // The copy engine takes the operands of the last three, and stores C of the last two.
    for (const Case& c :
         {dense(33, 65, 18, false, false, 0), dense(7, 5, 0, false, false, 0), dense(40, 70, 9, true, true, 1),
          dense(33, 65, 64, false, true, 0), dense(40, 72, 16, false, false, 0), dense(136, 136, 40, true, false, 0)}) {
      INFO(title(step, v) << ": epilogue 2 x + 1, or + col % 16 more, " << c.name);
      CHECK(run(v, c, small_integers(1), small_integers(2), true, true) == "");
    }
  }
}

// Runs one case with a fused epilogue. @return what is wrong, or an empty string.
std::string run_fused(const Variant& v, const Fused& f, bool with_bias, const Case& c, const Inputs& a, const Inputs& b) {
  Matrices of(v, c, a, b);
  TestMatrix bias("bias", v.out, {with_bias ? 1 : 0, c.C.cols, c.C.cols, 1, 1});  // at no multiple of more than an element
  bias.fill(fractions(8));
  const auto gemm = [&](auto... views) { f.gemm(views..., with_bias ? bias.view().data : nullptr); };
  for (const std::string& wrong : {of.run(gemm), bias.changed()})
    if (!wrong.empty()) return wrong;
  return Reference(of.A, of.B).compare(of.C, Reference::Sums::kFloat, {f.activation, with_bias}, bias);
}

void check_fused(const Step& step) {
  for (const Variant& v : step.variants)
    in_all_orders(step, v, [&](const std::string& order) {
      INFO(title(step, v) << order);
      CHECK(wrong_epilogue(v) == "");
    });
}

void check_refusals(const Step& step) {
  for (const Variant& v : step.variants) {
    INFO(title(step, v));
    Matrices of(v, dense(8, 8, 8, false, false, 0), small_integers(1), small_integers(2));
    TestMatrix &A = of.A, &B = of.B, &C = of.C;
    C.poison();
    AnyMatrix overlapping = C.view();
    overlapping.row_stride = 7;
    CHECK_THROWS_AS(v.gemm(A.view(), B.view(), overlapping), gemm::Refused);
    AnyMatrix repeated = C.view();
    repeated.col_stride = 0;
    CHECK_THROWS_AS(v.gemm(A.view(), B.view(), repeated), gemm::Refused);
    if (v.in == v.out) CHECK_THROWS_AS(v.gemm(A.view(), B.view(), A.view()), gemm::Refused);
    AnyMatrix wrong = B.view();
    wrong.rows = 7;
    CHECK_THROWS_AS(v.gemm(A.view(), wrong, C.view()), gemm::Refused);
    CHECK(A.changed() == "");
    CHECK(C.changed() == "");
  }
}

// CUDA allows 65,535 blocks in y and z, and 2^31 - 1 in x: the last kind of matrix has more tiles below each other than that.
void check_long_matrices(const Step& step) {
  std::vector<const Variant*> tiles;
  for (const Variant& v : step.variants)
    // On the interpreter none of those that stay: they have no more blocks than SMs, and so many tiles take a minute.
    if (v.in == step.variants.front().in && (kOnGpu || !v.numbers.stays)) tiles.push_back(&v);
  // On the interpreter one tile for each kind, for all of a step share a launcher: the one that computes the least beyond the 32
  // rows or columns.
  const auto is_asked = [&](const Variant* v, int TileNumbers::*extent) {
    const auto less = [&](const Variant* a, const Variant* b) { return a->numbers.*extent < b->numbers.*extent; };
    return kOnGpu || v == *std::min_element(tiles.begin(), tiles.end(), less);
  };
  for (const Variant* const v : tiles) {
    // Whole chunks, so that steps which have a fallback run their own kernel.
    if (is_asked(v, &TileNumbers::block_n)) check_exactly(step, *v, dense(70'000, 32, 8, false, false, 0));
    if (is_asked(v, &TileNumbers::block_m)) check_exactly(step, *v, dense(32, 70'000, 8, false, false, 0));
    const std::int64_t rows = v->numbers.block_m ? v->numbers.block_m : std::max(32, v->tile_m);
    // Millions of threads: larger tiles and clusters on a GPU only.
    if (kOnGpu || (v == tiles.front() && rows <= 32 && step.needs.least() < 90))
      check_exactly(step, *v, dense(65'536 * rows + 1, 1, 1, false, false, 0));
  }
}

// A matrix whose elements lie so far apart that only they are memory, and copied.
struct SparseMatrix {
  SparseMatrix(const char* name, DType type, std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride)
      : type(type), view{nullptr, rows, cols, row_stride, col_stride}, memory(offset(rows - 1, cols - 1) + bytes(type), name) {
    view.data = memory.data();
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) memory.back(offset(r, c), bytes(type));
  }
  std::size_t offset(std::int64_t r, std::int64_t c) const {
    return static_cast<std::size_t>(r * view.row_stride + c * view.col_stride) * bytes(type);
  }
  void* address(std::int64_t r, std::int64_t c) const { return static_cast<char*>(view.data) + offset(r, c); }
  void fill(const Inputs& values) {
    for (std::int64_t r = 0; r < view.rows; ++r)
      for (std::int64_t c = 0; c < view.cols; ++c) {
        unsigned char element[4];
        store(type, element, values(r, c));
        device::detail::copy_in(address(r, c), element, bytes(type));
      }
  }
  double get(std::int64_t r, std::int64_t c) const {
    unsigned char element[4];
    device::detail::copy_out(element, address(r, c), bytes(type));
    return load(type, element);
  }
  DType type;
  AnyMatrix view;
  SparseMemory memory;
};

struct Strides {
  std::int64_t row, col;
};

// Runs a tile on matrices whose elements lie far apart, and checks each of C's.
void check_sparse(const Variant& v, std::int64_t m, std::int64_t n, std::int64_t k, Strides of_a, Strides of_b, Strides of_c) {
  SparseMatrix A("A", v.in, m, k, of_a.row, of_a.col), B("B", v.in, k, n, of_b.row, of_b.col),
      C("C", v.out, m, n, of_c.row, of_c.col);
  const Inputs a = small_integers(1), b = small_integers(2);
  A.fill(a);
  B.fill(b);
  C.fill([](std::int64_t, std::int64_t) { return kNaN; });
  REQUIRE_NOTHROW(v.gemm(A.view, B.view, C.view));
  device::synchronize();
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t x = 0; x < k; ++x) sum += a(i, x) * b(x, j);
      unsigned char rounded[4];
      store(v.out, rounded, sum);
      CHECK(C.get(i, j) == load(v.out, rounded));
    }
}

// Offsets of more than 2^31 elements, without as much memory.
void check_offsets_past_2_31(const Step& step) {
  if (const std::string why = SparseMemory::why_not(); !why.empty()) {
    MESSAGE("offsets past 2^31 elements are not tested: " << why);
    return;
  }
  constexpr std::int64_t kFar = (std::int64_t(1) << 31) + 24;
  for (const Variant& v : step.variants) {
    if (v.in == DType::kBF16) continue;
    for (const bool along_rows : {true, false}) {
      INFO(title(step, v) << ": strides of 2^31 + 24 elements, " << (along_rows ? "rows" : "columns"));
      if (along_rows)
        check_sparse(v, 3, 2, 4, {kFar, 1}, {kFar / 2, 1}, {kFar, 1});
      else
        check_sparse(v, 3, 2, 4, {1, kFar / 2}, {1, kFar}, {1, kFar});
    }
  }
  // Here it is steps of several rows, or of a tile of k, that are as long; with chunks in memory, and without.
  constexpr std::int64_t m = 40, n = 72, k = 136, kFarA = std::int64_t(1) << 27, kFarC = std::int64_t(1) << 29;
  const Variant& v = step.variants.front();
  INFO(title(step, v) << ": several tiles of k, rows far from each other");
  for (const std::int64_t ragged : {8, 9}) {
    CAPTURE(ragged);
    check_sparse(v, m, n, k, {kFarA + ragged, 1}, {80, 1}, {80, 1});
    check_sparse(v, m, n, k, {k, 1}, {kFarA + ragged, 1}, {80, 1});
    check_sparse(v, 9, n, k, {k, 1}, {80, 1}, {kFarC + ragged, 1});
  }
  if (kOnGpu) return;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  MESSAGE("peak resident memory: " << usage.ru_maxrss / 1024 << " MB");
  CHECK(usage.ru_maxrss < 1024 * 1024);  // kilobytes
}

// So many elements of C that the fallback takes its large tiles.
void check_large_fallback(const Step& step) {
  const Variant& v = step.variants.front();
  // The rows are no whole chunks. The first case ends within a tile, the others are long.
  for (const Case& c :
       {dense(1411, 1423, 37, false, true, 2), dense(70'000, 32, 2, false, false, 0), dense(32, 70'000, 2, false, false, 0)}) {
    INFO(title(step, v) << ": " << c.name);
#ifdef COURSE_ON_INTERPRETER
    interpreter::clear_profiles();
#endif
    check_exactly(step, v, c);
#ifdef COURSE_ON_INTERPRETER
    CHECK(device::fallback_block(interpreter::profiles().back().kernel) == 128);
#endif
  }
}

}  // namespace

void check_conformance(const Step& step, bool with_fallback) {
  SUBCASE("shapes and strides, exactly") { check_shapes_and_strides(step, with_fallback); }
  SUBCASE("long k, exactly") { check_long_k(step); }
  SUBCASE("no box that lies wholly outside") { check_boxes(step); }
  SUBCASE("many tiles, of which the last ones are not whole") { check_many_tiles(step); }
  SUBCASE("random problems, and the same bits again") { check_random_problems(step); }
  SUBCASE("fractions within the bound, NaN and infinity, overflow and underflow") { check_values(step); }
  SUBCASE("epilogue") { check_epilogue(step); }
  SUBCASE("fused epilogues") { check_fused(step); }
  SUBCASE("refusals") { check_refusals(step); }
  SUBCASE("more rows or columns than a grid has blocks in y") { check_long_matrices(step); }
  SUBCASE("offsets past 2^31 elements") { check_offsets_past_2_31(step); }
  if (with_fallback) {
    SUBCASE("the fallback's large tiles") { check_large_fallback(step); }
  }
}

std::string wrong_epilogue(const Variant& v) {
  // Products up to the largest that the type has, so that there is something to saturate.
  const Inputs huge = [&](std::int64_t r, std::int64_t c) { return (r + c) % 2 ? -(v.in == DType::kF16 ? 250. : 1e19) : 1 / 128.; };
  struct {
    const char* name;
    Inputs a, b;
  } const values[] = {
      {"fractions", fractions(3), fractions(4)}, {"special values", specials(5), specials(6)}, {"huge values", huge, huge}};
  const Case all[] = {dense(33, 65, 18, false, false, 0),  dense(40, 72, 16, false, false, 0), dense(7, 5, 0, false, false, 0),
                      dense(129, 131, 9, true, false, 3),  dense(64, 136, 32, true, true, 0),  dense(70, 1, 40, false, true, 0),
                      dense(129, 136, 40, false, false, 0)};
  for (const Fused& f : v.fused)
    for (const bool with_bias : {false, true})
      for (const Case& c : all)
        for (const auto& value : values) {
          // What a tile leaves to another one is tested with the first.
          if ((with_bias && !f.takes_bias) || (!is_own(v, c) && &c != all)) continue;
          if (const std::string wrong = run_fused(v, f, with_bias, c, value.a, value.b); !wrong.empty())
            return harness::name({f.activation, with_bias}) + ", " + c.name + ", " + value.name + ": " + wrong;
        }
  return "";
}

void check_lesson_problem(const Step& step) {
  std::mt19937_64 engine(0);
  const auto uniform = [&] { return static_cast<double>((engine() >> 11) * 2 + 1) * 0x1p-54 - 0.5; };
  constexpr int kRows = kOnGpu ? 512 : 256;  // a quarter of it on the interpreter: sums as long, and still several tiles
  const Spec spec{kRows, kRows, 512, DType::kF16, DType::kF16};
  Problem problem(spec, uniform);
  TestMatrix expected("expected", spec.out, row_major(spec.m, spec.n));
#ifdef COURSE_ON_GPU
  expected.poison();
  const Cublas cublas;
  const Operands operands{problem.A.view(), problem.B.view(), expected.view()};
  cublas.gemm_ex(operands, spec.in, spec.out).at(0)(operands);
  REQUIRE(expected.fetch() == "");
#else
  expected.fill([&](std::int64_t r, std::int64_t c) { return problem.reference.sum(r, c); });
#endif
  for (const Variant& v : step.variants) {
    if (v.in != spec.in || v.out != spec.out) continue;
    INFO(title(step, v));
    problem.C.poison();
    REQUIRE_NOTHROW(problem.run(v));
    CHECK(problem.verify() == "");
    double worst = 0;
    for (std::int64_t r = 0; r < spec.m; ++r)
      for (std::int64_t c = 0; c < spec.n; ++c) {
        const double difference = std::fabs(problem.C.at(r, c) - expected.at(r, c));
        if (!std::isnan(worst) && !(difference <= worst)) worst = difference;  // NaN too, for good
      }
    CHECK(worst < 1e-2);
  }
}

void check_counters([[maybe_unused]] const Step& step, [[maybe_unused]] std::size_t count,
                    [[maybe_unused]] const std::vector<std::string>& but) {
#ifdef COURSE_ON_INTERPRETER
  const std::vector<std::string> tables = find_ncu_tables(step.name);
  REQUIRE(tables.size() == count);
  for (const std::string& path : tables) {
    // <step>-<m>x<n>x<k>-<dtype>.csv
    long long m = 0, n = 0, k = 0;
    char type[8] = {};
    const std::string file = path.substr(path.rfind('/') + 1 + step.name.size());
    REQUIRE(std::sscanf(file.c_str(), "-%lldx%lldx%lld-%7[a-z0-9]", &m, &n, &k, type) == 4);
    const std::vector<NcuRow> rows = read_ncu_table(path);
    std::size_t at = 0;
    for (const Variant& v : step.variants) {
      if (name(v.in) != type || name(v.out) != type) continue;
      INFO(path << " [" << v.tile << "]");
      REQUIRE(at < rows.size());
      interpreter::clear_profiles();
      REQUIRE(run(v, dense(m, n, k, false, false, 0), fractions(1), fractions(2), false) == "");
      REQUIRE(interpreter::profiles().size() == 1);
      std::map<std::string, double> counted;
      for (const auto& metric : interpreter::metrics(interpreter::profiles().back().total)) counted[metric.name] = metric.value;
      NcuRow row = rows[at++];
      for (const std::string& metric : but) REQUIRE(counted.erase(metric) + row.erase(metric) == 2);
      CHECK(differences(row, counted) == "");
    }
    CHECK(at == rows.size());
  }
#endif
}

void check_candidates([[maybe_unused]] const Step& step) {
#ifdef COURSE_ON_INTERPRETER
  for (const Variant& v : step.variants) {
    if (v.in != DType::kF16 || v.out != v.in) continue;
    for (const auto& [transpose_a, transpose_b] : layouts_of(v)) {
      const Case c = dense(v.numbers.block_m, v.numbers.block_n, 2 * v.numbers.block_k, transpose_a, transpose_b, 0);
      INFO(title(step, v) << ": " << c.name);
      interpreter::clear_profiles();
      REQUIRE(run(v, c, fractions(1), fractions(2), false) == "");
      const interpreter::KernelProfile& profile = interpreter::profiles().back();
      CHECK(profile.block.x == static_cast<unsigned>(v.numbers.threads));  // another tile's kernel would be as right
      CHECK(profile.dynamic_shared_bytes == v.numbers.shared_bytes);
      const auto& fragments = profile.total.matrix_load;
      CHECK(fragments.requests > 0);
      CHECK(fragments.wavefronts == fragments.ideal_wavefronts);
    }
  }
#endif
}

void check_projection([[maybe_unused]] const Step& step, [[maybe_unused]] DType type, [[maybe_unused]] double error) {
#ifdef COURSE_ON_INTERPRETER
  const Spec counted{256, 256, 1024, type, type}, large{4096, 4096, 4096, type, type};
  const std::string file = "docs/results/h200/ladder-" + std::string(name(type)) + ".json";
  Problem problem(counted);
  for (const Variant& v : step.variants) {
    if (v.in != type || v.out != type) continue;
    INFO(title(step, v));
    const std::optional<double> measured = measured_rate(file, step.name, v.tile, large);
    REQUIRE_MESSAGE(measured, "not in " << file << "; record it: tools/gpu-checks results");
    interpreter::clear_profiles();
    problem.run(v);
    const double projected =
        projected_flops_per_second(counted, interpreter::profiles().back().total, interpreter::find_gpu("h200"));
    MESSAGE(title(step, v) << ": projected " << with_prefix(projected) << "FLOP/s, measured " << with_prefix(*measured)
                           << "FLOP/s");
    CHECK(std::fabs(projected / *measured - 1) <= error);
  }
#endif
}

std::vector<double> product(Problem& problem, const Variant& variant) {
  problem.C.poison();
  problem.run(variant);
  device::synchronize();
  REQUIRE(problem.C.fetch() == "");
  return elements_of(problem.C);
}

void check_launches_in_a_row(const Step& step) {
  constexpr std::int64_t kRows = 328, kColumns = 264, kShift = 3;
  constexpr int kLaunches = kOnGpu ? 64 : 3;
  const auto first = [](std::int64_t row, std::int64_t column) { return static_cast<double>((row * 7 + column) % 512); };
  for (const Variant& v : step.variants) {
    if (v.in != DType::kF16 || v.out != DType::kF16) continue;
    INFO(v.tile);
    TestMatrix x("x", v.in, row_major(kRows, kColumns)), y("y", v.in, row_major(kRows, kColumns));
    // B moves columns to the right, so the last product is known exactly.
    TestMatrix shift("shift", v.in, row_major(kColumns, kColumns));
    x.fill(first);
    shift.fill([](std::int64_t row, std::int64_t column) { return (row + kShift) % kColumns == column ? 1.0 : 0.0; });
    y.poison();
    TestMatrix *from = &x, *to = &y;
    for (int i = 0; i < kLaunches; ++i, std::swap(from, to)) v.gemm(from->view(), shift.view(), to->view());
#ifdef COURSE_ON_GPU
    CHECK(device::last_launch().dependent);
#endif
    device::synchronize();
    REQUIRE(from->fetch() == "");
    int wrong = 0;
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t column = 0; column < kColumns; ++column)
        wrong += from->at(row, (column + kShift * kLaunches) % kColumns) != first(row, column);
    CHECK(wrong == 0);
  }
}

std::vector<double> check_same_bits(Problem& problem, const Variant& variant) {
  const std::vector<double> first = product(problem, variant);
  CHECK(problem.verify() == "");
#ifdef COURSE_ON_INTERPRETER
  for (const std::uint64_t seed : {0, 1, 2}) {
    interpreter::options().order = seed ? interpreter::Order::kRandom : interpreter::Order::kReverse;
    interpreter::options().seed = seed;
    CHECK(product(problem, variant) == first);
  }
  interpreter::options().order = interpreter::Order::kForward;
#else
  for (int run = 0; run < 100; ++run) REQUIRE(product(problem, variant) == first);
#endif
  return first;
}

}  // namespace harness
