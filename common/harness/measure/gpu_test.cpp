// What only a GPU can test of the harness: cuBLAS as a baseline, timing, ceilings.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <vector>

#include "common/device/device.cuh"
#include "common/harness/measure/baselines.h"
#include "common/harness/measure/ceilings.h"
#include "common/harness/measure/timing.h"
#include "common/harness/problem/problem.h"
#include "common/harness/tuning/here.h"

using namespace harness;

namespace {

struct Layout {
  const char* name;
  Placement A, B, C;
};

// 70 x 50 x 90 in every layout that cuBLAS has.
std::vector<Layout> layouts() {
  constexpr std::int64_t m = 70, n = 50, k = 90;
  std::vector<Layout> all;
  for (const std::int64_t padding : {0, 8, 3})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const bool tc : {false, true})
          all.push_back({"", ta ? column_major(m, k, padding) : row_major(m, k, padding),
                         tb ? column_major(k, n, padding) : row_major(k, n, padding),
                         tc ? column_major(m, n, padding) : row_major(m, n, padding)});
  all.push_back({"one row", row_major(1, k), row_major(k, n), row_major(1, n)});
  all.push_back({"one column", row_major(m, k), row_major(k, 1), row_major(m, 1)});
  all.push_back({"k = 1", row_major(m, 1), row_major(1, n), row_major(m, n)});
  return all;
}

double value(std::int64_t r, std::int64_t c) { return static_cast<double>((r * 7 + c * 13) % 11 - 5); }

// One thread counts clocks: how long it takes depends neither on memory nor on what else runs on the GPU.
__global__ void wait_kernel(long long clocks) {
  const long long begin = clock64();
  while (clock64() - begin < clocks) {
  }
}
constexpr long long kShort = 30'000, kLong = 4 * kShort;  // some 15 and 60 us
void wait(long long clocks) {
  wait_kernel<<<1, 1, 0, device::stream()>>>(clocks);
  DEVICE_CHECK(cudaGetLastError());
}

}  // namespace

TEST_CASE("cuBLAS computes the same in every layout that it has, with each algorithm that it proposes") {
  const Cublas cublas;
  const std::pair<DType, DType> types[] = {
      {DType::kF32, DType::kF32}, {DType::kF16, DType::kF16}, {DType::kF16, DType::kF32}, {DType::kBF16, DType::kBF16}};
  for (const auto& [in, out] : types)
    for (const Layout& l : layouts()) {
      TestMatrix A("A", in, l.A), B("B", in, l.B), C("C", out, l.C);
      A.fill(value);
      B.fill(value);
      const Reference reference(A, B);
      const Operands operands{A.view(), B.view(), C.view()};
      std::vector<Cublas::Algorithm> algorithms = cublas.gemm_ex(operands, in, out);
      CHECK(algorithms.size() == 1);
      for (const Cublas::Algorithm& a : cublas.lt_candidates(operands, in, out)) algorithms.push_back(a);
      for (const Cublas::Algorithm& a : algorithms) {
        C.poison();
        a(operands);
        device::synchronize();
        CHECK(C.fetch() == "");
        CHECK(reference.compare(C, Reference::Sums::kInParts) == "");
      }
    }
}

TEST_CASE("cublasLt fuses ReLU, GELU and a bias, and nothing else") {
  const Cublas cublas;
  for (const DType type : {DType::kF16, DType::kBF16})
    for (const Activation a : kActivations)
      for (const bool with_bias : {false, true}) {
        Spec spec{72, 56, 96, type, type};
        spec.epilogue = {a, with_bias};
        Problem p(spec);
        const Operands operands{p.A.view(), p.B.view(), p.C.view(), with_bias ? p.bias.view().data : nullptr};
        const auto algorithms = cublas.lt_candidates(operands, type, type, spec.epilogue);
        INFO(name(spec.epilogue) << ", " << name(type));
        CHECK(algorithms.empty() == (a == kActivation<gemm::LeakyRelu> || a == kActivation<gemm::Silu>));
        for (const Cublas::Algorithm& algorithm : algorithms) {
          p.C.poison();
          algorithm(operands);
          device::synchronize();
          CHECK(p.C.fetch() == "");
          CHECK(p.reference.compare(p.C, Reference::Sums::kInParts, spec.epilogue, p.bias) == "");
        }
      }
}

TEST_CASE("cublasLt's GELU is the tanh form, not x times the normal distribution's integral") {
  // x · 1 for x from -4 to 4, in steps that f16 has; C in f32, so that rounding does not hide the difference.
  constexpr std::int64_t kRows = 512;
  TestMatrix A("A", DType::kF16, row_major(kRows, 8)), B("B", DType::kF16, row_major(8, 8)),
      C("C", DType::kF32, row_major(kRows, 8));
  const auto x = [](std::int64_t r) { return static_cast<double>(r - kRows / 2) / 64; };
  A.fill([&](std::int64_t r, std::int64_t k) { return k == 0 ? x(r) : 0; });
  B.fill([](std::int64_t, std::int64_t) { return 1; });
  const Operands operands{A.view(), B.view(), C.view()};
  const auto algorithms = Cublas().lt_candidates(operands, DType::kF16, DType::kF32, {kActivation<gemm::GeluTanh>, false});
  REQUIRE(!algorithms.empty());
  C.poison();
  algorithms[0](operands);
  device::synchronize();
  REQUIRE(C.fetch() == "");
  double from_tanh = 0, from_erf = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    from_tanh = std::max(from_tanh, std::fabs(C.at(r, 0) - expected(kActivation<gemm::GeluTanh>, x(r)).value));
    from_erf = std::max(from_erf, std::fabs(C.at(r, 0) - x(r) / 2 * (1 + std::erf(x(r) / std::sqrt(2.0)))));
  }
  MESSAGE("from the tanh form " << from_tanh << ", from the integral " << from_erf);
  CHECK(from_tanh < 2e-4);
  CHECK(from_erf > 4e-4);
}

TEST_CASE("layouts that cuBLAS does not have give no baseline") {
  const Cublas cublas;
  const auto has_none = [&](const Placement& a, const Placement& b, const Placement& c) {
    TestMatrix A("A", DType::kF32, a), B("B", DType::kF32, b), C("C", DType::kF32, c);
    const Operands operands{A.view(), B.view(), C.view()};
    CHECK(cublas.gemm_ex(operands, DType::kF32, DType::kF32).empty());
    CHECK(cublas.lt_candidates(operands, DType::kF32, DType::kF32).empty());
  };
  has_none({8, 8, 16, 2}, row_major(8, 8), row_major(8, 8));    // every second element
  has_none(row_major(8, 8), {8, 8, 0, 1}, row_major(8, 8));     // one row repeated
  has_none(row_major(8, 8), row_major(8, 8), {8, 8, -8, 1});    // rows backwards
  has_none(row_major(0, 8), row_major(8, 8), row_major(0, 8));  // nothing to do
  has_none(row_major(8, 0), row_major(0, 8), row_major(8, 8));  // nothing to add up
}

TEST_CASE("rounds: who is slower, by how much; cold, sets in turn; graphs where launches are short") {
  std::multiset<int> sets;
  TimingPlan plan;
  plan.sets = 3, plan.cold = true, plan.min_rounds = 9, plan.max_rounds = 15, plan.seconds = 0.05;
  int conditions = 0;
  std::vector<int> of_long;
  const Timings t = time_in_rounds({{[&](int set) { wait(kShort), sets.insert(set); }}, {[&](int) { wait(kLong); }}, {[&](int set) {
                                      of_long.push_back(set);
                                      wait(50 * kLong);
                                    }}},
                                   plan, [&] { ++conditions; });
  CHECK(conditions == 1);
  for (const auto& seconds : t.seconds) {
    CHECK(seconds.size() >= 9);
    CHECK(seconds.size() <= 15);
  }
  CHECK(t.graph[0]);
  CHECK(t.launches[0] % 3 == 0);
  CHECK(!t.graph[2]);
  CHECK(t.launches[2] == 1);
  CHECK(t.ratio(0, 1).median > 3);  // what a launch costs by itself makes it less than 4
  CHECK(t.ratio(0, 1).median < 4.5);
  CHECK(t.ratio(1, 2).median > 40);
  CHECK(t.ratio(1, 2).median < 60);
  CHECK(t.sample(0).q20 <= t.sample(0).median);
  CHECK(t.sample(0).median <= t.sample(0).q80);
  for (const int set : {0, 1, 2}) CHECK(sets.count(set) >= static_cast<std::size_t>(t.launches[0]) / 3);
  CHECK(sets.count(3) == 0);
  // Two launches a round, of which the second must not find what the first has read.
  for (std::size_t i = of_long.size() - 18; i + 1 < of_long.size(); ++i) CHECK(of_long[i + 1] == (of_long[i] + 1) % 3);
  CHECK(device::stream() == nullptr);  // as it was before

  plan.graphs = false;
  const Timings single = time_in_rounds({{[&](int) { wait(kShort); }}}, plan);
  CHECK(!single.graph[0]);
  CHECK(single.launches[0] == 1);
}

TEST_CASE("rounds: hot, a run is of one set, and rounds take them in turn; each runs twice") {
  struct Mark {
    std::vector<int>* executed;
    int set;
  };
  // Waits, and lets the GPU say when it is done; in a graph, at each replay.
  const auto wait_and_note = [&](long long clocks, Mark& mark) {
    wait(clocks);
    const auto note = [](void* p) { static_cast<Mark*>(p)->executed->push_back(static_cast<Mark*>(p)->set); };
    DEVICE_CHECK(cudaLaunchHostFunc(device::stream(), note, &mark));
  };
  std::vector<int> of_short, of_long;
  Mark marks[][3] = {{{&of_short, 0}, {&of_short, 1}, {&of_short, 2}}, {{&of_long, 0}, {&of_long, 1}, {&of_long, 2}}};
  TimingPlan plan;
  plan.sets = 3, plan.min_rounds = plan.max_rounds = 8;
  const Timings t = time_in_rounds(
      {{[&](int set) { wait_and_note(kShort, marks[0][set]); }}, {[&](int set) { wait_and_note(200 * kShort, marks[1][set]); }}},
      plan);
  device::synchronize();
  REQUIRE(t.graph[0]);
  REQUIRE(!t.graph[1]);
  for (const auto& [executed, launches] : {std::pair{of_short, t.launches[0]}, {of_long, 1}}) {
    std::vector<int> expected;
    for (int round = 0; round < 8; ++round) expected.insert(expected.end(), 2 * static_cast<std::size_t>(launches), round % 3);
    REQUIRE(executed.size() > expected.size());
    CHECK(std::vector<int>(executed.end() - static_cast<std::ptrdiff_t>(expected.size()), executed.end()) == expected);
    // Before that, all warm up with the first set.
    CHECK(std::count(executed.begin(), executed.end() - static_cast<std::ptrdiff_t>(expected.size()), 0) ==
          static_cast<std::ptrdiff_t>(executed.size() - expected.size()));
  }
}

TEST_CASE("rounds: all that a process times is on one stream") {
  std::set<cudaStream_t> streams;
  for (int i = 0; i < 3; ++i)
    time_in_rounds({{[&](int) {
                     streams.insert(device::stream());
                     wait(kShort);
                   }}},
                   {.min_rounds = 1, .max_rounds = 1, .warm_up = 1e-4});
  CHECK(streams.size() == 1);
  CHECK(*streams.begin() != nullptr);
}

TEST_CASE(
    "energy: of who runs alone; four times the work takes four times as much; a counter that stands still is no measurement") {
  // A counter like NVML's: 100 W, written down every 20 ms.
  const auto begin = std::chrono::steady_clock::now();
  const auto joules = [&] {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return 100 * 0.02 * std::floor(seconds / 0.02);
  };
  TimingPlan plan;
  plan.seconds = 0.5;
  const std::vector<Contestant> contestants = {{[](int) { wait(kShort); }}, {[](int) { wait(kLong); }}};
  const std::vector<Energy> energies = measure_energy(contestants, plan, joules);
  REQUIRE(energies.size() == 2);
  for (const Energy& e : energies) CHECK(e.joules / e.seconds == doctest::Approx(100).epsilon(0.05));
  CHECK(energies[1].seconds / energies[0].seconds > 3);
  CHECK(energies[1].seconds / energies[0].seconds < 4.5);
  CHECK_THROWS_AS(measure_energy(contestants, plan, [] { return 1.0; }), device::Error);
}

TEST_CASE("ceilings are those of a GPU") {
  const Ceilings c = measure_ceilings();
  CHECK(c.copy_bytes > 1e11);
  CHECK(c.fma_f32 > 1e12);
  // The tensor cores of every GPU that is supported do more than its CUDA cores.
  CHECK(c.mma_f16 > 1.5 * c.fma_f32);
  CHECK(c.mma_bf16 > 1.5 * c.fma_f32);
  // Hopper's do more through wgmma, wherever A lies.
  for (const double wgmma : {c.wgmma_f16, c.wgmma_bf16, c.wgmma_registers_f16, c.wgmma_registers_bf16})
    CHECK((limits_here().capability == 90 ? wgmma > 1.1 * c.mma_f16 : wgmma == 0));
  cudaDeviceProp p{};
  DEVICE_CHECK(cudaGetDeviceProperties(&p, 0));
  int clock_khz = 0;
  DEVICE_CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0));
  CHECK(c.fma_f32 < 1.05 * 2 * 128 * p.multiProcessorCount * 1e3 * clock_khz);
}

TEST_CASE("a launcher that allocates is timed like one that does not, and gets memory that is its own") {
  constexpr std::size_t kBytes = 1 << 20;
  std::set<void*> seen;
  const auto allocating = [&](int) {
    const device::Buffer<unsigned char> first(kBytes, "first"), second(kBytes, "second");
    CHECK(first.data() != second.data());
    seen.insert({first.data(), second.data()});
    wait(kShort);
  };
  TimingPlan plan;
  plan.seconds = 0.1;
  const Timings timings = time_in_rounds({{allocating}, {[](int) { wait(kShort); }}}, plan);
  CHECK(timings.graph[0]);
  CHECK(timings.ratio(0, 1).median == doctest::Approx(1).epsilon(0.1));
  CHECK(seen.size() == 2);  // kept from launch to launch
  CHECK(device::lender() == nullptr);
}
