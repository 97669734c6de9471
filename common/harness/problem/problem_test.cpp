#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "common/device/device.cuh"
#include "common/harness/problem/activation_kernel.h"
#include "common/harness/problem/problem.h"

using namespace harness;

namespace {

Spec cube(std::int64_t n, DType type = DType::kF32) { return {n, n, n, type, type}; }

}  // namespace

TEST_CASE("the device's reference equals the host's") {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16})
    for (const Spec& s :
         {Spec{1, 1, 1}, {33, 17, 40}, {16, 48, 5, type, type, true, false}, {20, 19, 35, type, type, true, true}, {3, 4, 0}}) {
      Spec spec = s;
      spec.in = spec.out = type;
      const Problem p(spec);
      const Reference device(p.A, p.B, Reference::Where::kDevice);
      double difference = 0;
      for (std::int64_t r = 0; r < spec.m; ++r)
        for (std::int64_t c = 0; c < spec.n; ++c) {
          difference = std::max(difference, std::fabs(device.sum(r, c) - p.reference.sum(r, c)));
          difference = std::max(difference, std::fabs(device.magnitude(r, c) - p.reference.magnitude(r, c)));
        }
      CHECK(difference <= 1e-13 * static_cast<double>(spec.k));
    }
}

TEST_CASE("the reference finds what is wrong") {
  Problem p(cube(40));
  const auto with = [&](std::int64_t row, std::int64_t col, double factor, double value) {
    p.C.fill([&](std::int64_t r, std::int64_t c) {
      const double right = p.reference.sum(r, c);
      return r == row && c == col ? right * factor + value : right;
    });
    return p.verify();
  };
  CHECK(with(0, 0, 1, 0) == "");
  CHECK(with(39, 39, 1 + 1e-2, 0) != "");
  CHECK(with(7, 21, 0, std::numeric_limits<double>::quiet_NaN()).find("C[7, 21] is nan, expected ") == 0);
  CHECK(with(7, 21, 0, std::numeric_limits<double>::infinity()).find("C[7, 21] is inf") == 0);
  // Of several, the first in row-major order, also when several threads search.
  p.C.fill([&](std::int64_t r, std::int64_t c) { return r >= 13 ? 1e9 : p.reference.sum(r, c); });
  CHECK(p.verify().find("C[13, 0] is 1e+09") == 0);
}

TEST_CASE("the reference knows fused epilogues, and finds what is wrong with them") {
  for (const Activation a : kActivations)
    for (const bool bias : {false, true}) {
      Spec spec = cube(24, DType::kF16);
      spec.epilogue = {a, bias};
      Problem p(spec);
      const auto with = [&](double before, double after) {
        p.C.fill([&](std::int64_t r, std::int64_t c) {
          return expected(a, p.reference.sum(r, c) + (bias ? p.bias.at(0, c) : 0) + before).value + after;
        });
        return p.verify();
      };
      INFO(name(spec.epilogue));
      CHECK(with(0, 0) == "");
      CHECK(with(1, 0) != "");  // x + 1 first
      CHECK(with(0, 1) != "");
      CHECK(with(0x1p-6, 0) != "");
      // As if there were no epilogue.
      p.C.fill([&](std::int64_t r, std::int64_t c) { return p.reference.sum(r, c); });
      CHECK((p.verify() == "") == spec.epilogue.is_identity());
      p.C.fill([&](std::int64_t r, std::int64_t c) { return expected(a, p.reference.sum(r, c)).value; });
      CHECK((p.verify() == "") == !bias);
    }
}

TEST_CASE("a tile that fuses nothing leaves the epilogue to another kernel, and is allowed one rounding more") {
  static Problem* problem = nullptr;
  Variant v;
  v.tile = "8x8";
  v.gemm = [](const AnyMatrix&, const AnyMatrix&, const AnyMatrix&) {
    problem->C.fill([](std::int64_t r, std::int64_t c) { return problem->reference.sum(r, c); });
  };
  for (const DType type : {DType::kF16, DType::kBF16})
    for (const Activation a : kActivations)
      for (const bool bias : {false, true}) {
        v.in = v.out = type;
        const Variant unfused = without_fusing(v);
        CHECK(unfused.tile == "8x8, unfused");
        Spec spec = cube(24, type);
        spec.epilogue = {a, bias};
        INFO(name(spec.epilogue) << ", " << name(type));
        CHECK(v.has(spec.epilogue) == spec.epilogue.is_identity());
        REQUIRE(unfused.has(spec.epilogue));
        Problem p(spec);
        problem = &p;
        unfused.run(spec.epilogue, p.A.view(), p.B.view(), p.C.view(), p.bias.view().data);
        device::synchronize();
        CHECK(p.verify(sums_of(unfused, spec)) == "");
        const bool rounds_once = spec.epilogue.is_identity();
        CHECK(sums_of(unfused, spec) == (rounds_once ? Reference::Sums::kFloat : Reference::Sums::kInParts));
        CHECK(sums_of(v, spec) == Reference::Sums::kFloat);
        // Another epilogue than the one that was asked for.
        if (!spec.epilogue.is_identity()) {
          unfused.run({}, p.A.view(), p.B.view(), p.C.view(), nullptr);
          device::synchronize();
          CHECK(p.verify(sums_of(unfused, spec)) != "");
        }
      }
}

TEST_CASE("the separate pass over C: any placement, type and epilogue, in place") {
  struct {
    const char* name;
    Placement C;
  } const placements[] = {
      {"dense", row_major(40, 64)},          {"ragged", row_major(33, 37)},     {"rows padded to chunks", row_major(9, 21, 11)},
      {"column-major", column_major(17, 8)}, {"misaligned", {5, 16, 16, 1, 1}}, {"every second element", {6, 20, 40, 2, 0}},
      {"one row", row_major(1, 3)},          {"no rows", row_major(0, 8)},      {"no columns", row_major(8, 0)}};
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16})
    for (const auto& [place, placement] : placements)
      for (const Activation a : kActivations)
        for (const bool with_bias : {false, true}) {
          const char* const where = place;  // clang 14 does not capture a structured binding
          INFO(name(Epilogue{a, with_bias}) << ", " << name(type) << ", " << where);
          const auto x = [](std::int64_t r, std::int64_t c) { return static_cast<double>((r * 7 + c * 13) % 23 - 11) / 4; };
          TestMatrix C("C", type, placement), bias("bias", type, row_major(1, C.cols()));
          C.fill(x);
          bias.fill([](std::int64_t, std::int64_t c) { return static_cast<double>(c % 5) / 2 - 1; });
          launch_activation(type, C.view(), {a, with_bias}, bias.view().data);
          device::synchronize();
          REQUIRE(C.fetch() == "");
          CHECK(bias.changed() == "");
          bool right = true;
          for (std::int64_t r = 0; r < C.rows(); ++r)
            for (std::int64_t c = 0; c < C.cols(); ++c) {
              Expected e = expected(a, x(r, c) + (with_bias ? bias.at(0, c) : 0));
              e.tolerance += unit_roundoff(type) * std::fabs(e.value);
              right = right && agrees(C.at(r, c), e);
            }
          CHECK(right);
        }
}

TEST_CASE("the same problem has the same numbers everywhere") {
  const Problem p(cube(3));
  CHECK(p.A.at(0, 0) == doctest::Approx(1.9128).epsilon(1e-4));
  double sum = 0, squares = 0;
  const Problem large(cube(200));
  for (int i = 0; i < 40000; ++i) {
    const double x = large.A.at(i / 200, i % 200);
    sum += x, squares += x * x;
  }
  CHECK(std::fabs(sum / 40000) < 0.02);
  CHECK(std::fabs(squares / 40000 - 1) < 0.03);
}

TEST_CASE("the numbers are Box and Muller's, pair after pair, whatever the matrices' sizes") {
  for (const Spec& s : {Spec{3, 5, 7}, Spec{1, 1, 1}, Spec{700, 3, 1501}}) {
    const Problem p(s);
    std::mt19937_64 engine(0);
    const auto uniform = [&](int more) { return static_cast<double>((engine() >> 11) + static_cast<unsigned>(more)) * 0x1p-53; };
    double pair[2] = {};
    int next = 2;
    const auto normal = [&] {
      if (next == 2) {
        const double u = uniform(1), angle = 2 * std::numbers::pi * uniform(0), radius = std::sqrt(-2 * std::log(u));
        pair[0] = radius * std::cos(angle), pair[1] = radius * std::sin(angle), next = 0;
      }
      return static_cast<double>(static_cast<float>(pair[next++]));
    };
    bool same = true;
    for (const TestMatrix* matrix : {&p.A, &p.B})
      for (std::int64_t r = 0; r < matrix->rows(); ++r)
        for (std::int64_t c = 0; c < matrix->cols(); ++c) same = same && matrix->at(r, c) == normal();
    CHECK(same);
  }
}

TEST_CASE("a byte outside a matrix that was overwritten is found, wherever it is, and once") {
  for (const Placement& place : {row_major(5, 7), row_major(5, 7, 3), column_major(5, 7, 2), Placement{5, 7, 16, 2, 1},
                                 Placement{5, 7, -8, 1, 0}, Placement{5, 7, 0, 1, 0}, row_major(0, 7)})
    for (const DType type : {DType::kF32, DType::kF16}) {
      TestMatrix m("X", type, place);
      m.fill([](std::int64_t, std::int64_t) { return 1; });
      CHECK(m.fetch() == "");
      CHECK(m.changed() == "");
      const std::size_t size = bytes(type), cells = m.allocated_bytes() / size;
      std::vector<bool> is_element(cells);
      const std::int64_t first = (static_cast<char*>(m.view().data) - static_cast<char*>(m.allocation())) / static_cast<int>(size);
      for (std::int64_t r = 0; r < place.rows; ++r)
        for (std::int64_t c = 0; c < place.cols; ++c)
          is_element[static_cast<std::size_t>(first + r * place.row_stride + c * place.col_stride)] = true;
      for (std::size_t cell = 0; cell < cells; ++cell) {
        unsigned char* const byte = static_cast<unsigned char*>(m.allocation()) + cell * size + cell % size;
        const unsigned char other = 0x11;
        device::detail::copy_in(byte, &other, 1);
        CHECK(m.changed() != "");
        CHECK((m.fetch() == "") == is_element[cell]);
        m.poison();
        CHECK(m.fetch() == "");
        for (std::int64_t r = 0; r < place.rows; ++r)
          for (std::int64_t c = 0; c < place.cols; ++c) REQUIRE(std::isnan(m.at(r, c)));
      }
    }
}
