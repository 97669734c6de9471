#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/device.cuh"
#include "common/device/element.cuh"
#include "common/harness/program/tile.h"
#include "common/harness/tuning/here.h"
#include "common/library/c_interface.h"
#include "common/library/choose.h"
#include "common/library/course_gemm.h"
#include "common/library/relayout.h"
#ifdef COURSE_ON_INTERPRETER
#include "common/interpreter/count/gpus.h"
#endif

using namespace gemm;
using namespace gemm::library;
using harness::DType, harness::GpuLimits;

namespace {

template <class... Of>
Call call(const Of&... of) {
  return call_of(arguments(of...));
}

// Nobody's own results are read, and none of ours are left behind.
struct OwnCache {
  OwnCache() {
    char name[] = "/tmp/course-gemm-XXXXXX";
    folder = mkdtemp(name);
    setenv("COURSE_TUNING_CACHE", folder.c_str(), 1);
  }
  ~OwnCache() { std::filesystem::remove_all(folder); }
  std::string folder;
} own_cache;

// Small integers, so that all sums are exact whatever their order: k <= 200 of them stay below 1024.
float element(std::int64_t r, std::int64_t c, int salt) {
  const auto mixed = static_cast<std::uint32_t>(r * 7919 + c * 104729 + salt * 1299709) * 2654435761u;
  return static_cast<float>(static_cast<int>((mixed >> 16) % 5) - 2);
}

// A matrix in device memory whose elements stand anywhere, other bytes between them.
template <class T>
struct Placed {
  Placed(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride, int salt, std::int64_t first = 0,
         std::int64_t behind = 8)
      : salt(salt) {
    const auto reach = [](std::int64_t count, std::int64_t stride) { return count > 0 ? (count - 1) * stride : 0; };
    const std::int64_t r = reach(rows, row_stride), c = reach(cols, col_stride);
    const std::int64_t begin = first - std::min<std::int64_t>(r, 0) - std::min<std::int64_t>(c, 0);
    host.assign(static_cast<std::size_t>(begin + std::max<std::int64_t>(r, 0) + std::max<std::int64_t>(c, 0) + behind), T(77.0f));
    at_host = {host.data() + begin, rows, cols, row_stride, col_stride};
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) *at_host.at(i, j) = T(value(i, j));
    memory = device::Buffer<T>(host);
    view = {memory.data() + begin, rows, cols, row_stride, col_stride};
  }
  // Where a stride is zero, the index does not count.
  float value(std::int64_t i, std::int64_t j) const {
    return element(at_host.row_stride ? i : 0, at_host.col_stride ? j : 0, salt);
  }

  int salt;
  std::vector<T> host;
  device::Buffer<T> memory;
  Matrix<T> at_host, view;
};

// Whether C is right, bit by bit, and what lies between its elements is as it was.
template <class In, class Out>
bool is_right(const Placed<In>& A, const Placed<In>& B, const Placed<Out>& C, float slope) {
  std::vector<Out> right = C.host;
  const std::int64_t begin = C.at_host.data - C.host.data();
  const Matrix<Out> c = {right.data() + begin, C.view.rows, C.view.cols, C.view.row_stride, C.view.col_stride};
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < A.view.cols; ++l) sum += A.value(i, l) * B.value(l, j);
      *c.at(i, j) = Out(sum >= 0 ? sum : slope * sum);
    }
  const std::vector<Out> got = C.memory.download();
  return std::memcmp(got.data(), right.data(), got.size() * sizeof(Out)) == 0;
}

// A layout by its letter: n is row by row, t column by column, both of whole chunks.
template <class T>
Placed<T> placed(char layout, std::int64_t rows, std::int64_t cols, int salt) {
  const auto padded = [](std::int64_t x) { return (x + 7) / 8 * 8; };
  return layout == 'n' ? Placed<T>(rows, cols, padded(cols), 1, salt) : Placed<T>(rows, cols, 1, padded(rows), salt);
}

template <class In, class Out>
void check_layouts() {
  for (const char a : {'n', 't'})
    for (const char b : {'n', 't'})
      for (const char c : {'n', 't'}) {
        INFO(a << b << c << ", " << name(harness::kDType<In>) << " -> " << name(harness::kDType<Out>));
        const auto A = placed<In>(a, 70, 100, 1), B = placed<In>(b, 100, 50, 2);
        const auto C = placed<Out>(c, 70, 50, 3);
        run(A.view, B.view, C.view);
        CHECK(is_right(A, B, C, 1));
        run(A.view, B.view, C.view, LeakyRelu{0.5f});
        CHECK(is_right(A, B, C, 0.5f));
        CHECK_FALSE(choice(A.view, B.view, C.view).is_fallback);
      }
}

template <class In>
bool run_is_right(const Placed<In>& A, const Placed<In>& B, const Placed<In>& C) {
  run(A.view, B.view, C.view);
  device::synchronize();
  return is_right(A, B, C, 1);
}

Task task(std::int64_t m, std::int64_t n, std::int64_t k, DType type = DType::kF16, Operands operands = Operands::kBoxes) {
  const harness::Spec spec{m, n, k, type, type};
  const harness::Requests requests = harness::requests_of(spec);
  return {spec, {operands, requests.a}, {operands, requests.b}};
}

GpuLimits invented_gpu(int capability) {
  GpuLimits gpu{"invented", 132, 2048, 32, 65536, 228 << 10, 227 << 10, 1.98e9};
  const harness::Rates rates = harness::typical_rates(capability);
  gpu.capability = capability;
  gpu.mma_flops = rates.mma * 132 * 1.98e9, gpu.wgmma_flops = rates.wgmma * 132 * 1.98e9, gpu.fma_flops = rates.fma * 132 * 1.98e9;
  return gpu;
}

template <class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

#ifdef COURSE_ON_GPU
constexpr bool kIsTimed = true;
#else
constexpr bool kIsTimed = false;
#endif

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("one call: right for every layout, type and epilogue") {
  check_layouts<float, float>();
  check_layouts<__half, __half>();
  check_layouts<__half, float>();
  check_layouts<__nv_bfloat16, __nv_bfloat16>();
  check_layouts<__nv_bfloat16, float>();
}

TEST_CASE("one call: each kernel of the library is right") {
  const GpuLimits gpu = harness::limits_here();
  int tried = 0;
  for (const Kernel& kernel : kernels()) {
    if (kernel.variant.in != DType::kF16) continue;  // the others are the same templates
    INFO(kernel.variant.tile << " -> " << name(kernel.variant.out));
    Task t = task(150, 270, 136);
    t.spec.out = kernel.variant.out;
    const std::vector<const Kernel*> able = candidates(kernels(), t, gpu);
    if (std::find(able.begin(), able.end(), &kernel) == able.end()) continue;
    const auto A = placed<__half>('n', 150, 136, 1), B = placed<__half>('t', 136, 270, 2);
    const auto check = [&](const auto& C) {
      kernel.run(harness::untyped(A.view), harness::untyped(B.view), harness::untyped(C.view), 0.25f);
      CHECK(is_right(A, B, C, 0.25f));
    };
    if (kernel.variant.out == DType::kF32)
      check(placed<float>('n', 150, 270, 3));
    else
      check(placed<__half>('n', 150, 270, 3));
    ++tried;
  }
  CHECK(tried >= 5);
}

TEST_CASE("one call: views, odd strides, repeated rows, vectors") {
  using T = __half;
  const Placed<T> A(40, 24, 24, 1, 1), B(24, 30, 32, 1, 2);
  SUBCASE("odd addresses") {
    const Placed<T> odd(40, 24, 24, 1, 1, 1), C(40, 30, 30, 1, 3);
    CHECK(run_is_right(odd, B, C));
    CHECK(choice(odd.view, B.view, C.view).kernel == "fallback");
  }
  SUBCASE("odd strides of all three") {
    const Placed<T> a(40, 24, 51, 2, 1), b(24, 30, 3, 75, 2), C(40, 30, 3, 121, 3);
    CHECK(run_is_right(a, b, C));
    CHECK(choice(a.view, b.view, C.view).is_fallback);
  }
  SUBCASE("backwards") {
    const Placed<T> a(40, 24, -24, 1, 1), b(24, 30, 32, -1, 2), C(40, 30, -30, 1, 3);
    CHECK(run_is_right(a, B, C));
    CHECK(run_is_right(a, b, C));
  }
  SUBCASE("a row again and again, as expanded tensors have it: no boxes, but chunks") {
    const Placed<T> a(40, 24, 0, 1, 1), C(40, 30, 30, 1, 3);
    CHECK(run_is_right(a, B, C));
    CHECK_FALSE(choice(a.view, B.view, C.view).is_fallback);
    CHECK(task_of(call(a.view, B.view, C.view, Identity{})).operands() == Operands::kChunks);
    const Placed<T> everywhere(40, 24, 0, 0, 1);
    CHECK(run_is_right(everywhere, B, C));
  }
  SUBCASE("C between other elements") {
    const Placed<T> C(40, 30, 100, 1, 3, 5), D(40, 30, 100, 3, 3, 5), E(40, 30, 1, 64, 3);
    CHECK(run_is_right(A, B, C));
    CHECK(run_is_right(A, B, D));
    CHECK(run_is_right(A, B, E));
  }
  SUBCASE("vectors") {
    const Placed<T> row(1, 24, 24, 1, 1), column(24, 1, 1, 1, 2), C(1, 30, 30, 1, 3), D(40, 1, 1, 1, 3), E(1, 1, 1, 1, 3),
        F(40, 1, 3, 1, 3);
    CHECK(run_is_right(row, B, C));
    CHECK(run_is_right(A, column, D));
    CHECK(run_is_right(A, column, F));
    CHECK(run_is_right(row, column, E));
  }
}

TEST_CASE("operands laid out anew: each element in its place, zeros behind a row's last one, and nothing else is written") {
  using T = __half;
  const auto check = [](const std::vector<const Placed<T>*>& matrices) {
    std::size_t bytes = 0;
    for (const auto* each : matrices) bytes += bytes_in_lines(harness::untyped(each->view), DType::kF16);
    device::Buffer<T> memory(std::vector<T>(bytes / sizeof(T), T(55.0f)));
    std::vector<T> right(memory.size(), T(55.0f));
    std::vector<Copy> copies;
    std::size_t at = 0;
    for (const auto* each : matrices) {
      const harness::AnyMatrix from = harness::untyped(each->view), to = in_lines(from, DType::kF16, memory.data() + at);
      copies.push_back({from, to});
      const bool turned = lies_by_columns(from);
      const std::int64_t pitch = turned ? to.col_stride : to.row_stride, rows = turned ? to.cols : to.rows;
      CHECK(pitch % 64 == 0);
      CHECK((turned ? to.row_stride : to.col_stride) == 1);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < ceil_div<std::int64_t>(turned ? to.rows : to.cols, 8) * 8; ++c)
          right[at + static_cast<std::size_t>(r * pitch + c)] =
              T(c < (turned ? to.rows : to.cols) ? (turned ? each->value(c, r) : each->value(r, c)) : 0.0f);
      at += bytes_in_lines(from, DType::kF16) / sizeof(T);
    }
    lay_out(copies);
    CHECK(std::memcmp(memory.download().data(), right.data(), bytes) == 0);
  };
  const Placed<T> other(3, 5, 1, 7, 9, 3);
  for (const std::int64_t first : {0, 1, 3, 4, 7, 8})  // each place in a chunk, for the rows lie an odd number of elements apart
    for (const std::int64_t cols : {1, 7, 8, 15, 16, 17, 33, 300}) {
      INFO(cols << " columns, the first element " << first);
      const Placed<T> rows(70, cols, cols + (cols + 1) % 2, 1, 1, first), columns(cols, 70, 1, cols + (cols + 1) % 2, 2, first);
      check({&rows});
      check({&columns, &rows});
    }
  const Placed<T> even(40, 100, 102, 1, 1, 2), lines(40, 64, 64, 1, 1), backwards(20, 100, -101, -1, 2),
      apart(20, 100, 301, 3, 3, 5), again(20, 30, 0, 1, 4, 1), vector(1, 30, 1, 5, 5), long_row(2, 2100, 2101, 1, 6, 5);
  check({&even, &lines});
  check({&backwards, &apart});
  check({&again, &vector});
  check({&long_row, &other});
  for (std::int64_t cols = 9; cols < 27; cols += 2) {  // nothing is read in front of the first element or behind the last one
    const Placed<T> alone(9, cols, cols, 1, 7, 0, 1);
    check({&alone});
  }
}

namespace {

// A product whose k is long enough that to lay its operands out anew is worth it, though they are small.
template <class In, class Out>
void check_laid_out(char a, char b, char c) {
  INFO(a << b << c << ", " << name(harness::kDType<In>) << " -> " << name(harness::kDType<Out>));
  const auto odd = [](char layout, std::int64_t rows, std::int64_t cols, int salt, std::int64_t first, auto zero) {
    using T = decltype(zero);
    return layout == 'n' ? Placed<T>(rows, cols, cols + (cols + 1) % 2, 1, salt, first)
                         : Placed<T>(rows, cols, 1, rows + (rows + 1) % 2, salt, first);
  };
  const auto A = odd(a, 37, 1001, 1, 1, In(0.0f)), B = odd(b, 1001, 50, 2, 3, In(0.0f));
  const auto C = odd(c, 37, 50, 3, 5, Out(0.0f));
  CHECK(choice(A.view, B.view, C.view).lays_out);
  CHECK_FALSE(choice(A.view, B.view, C.view).is_fallback);
  run(A.view, B.view, C.view, LeakyRelu{0.5f});
  CHECK(is_right(A, B, C, 0.5f));
}

}  // namespace

TEST_CASE("one call: rows that are no multiples of 16 bytes are laid out anew where it is worth it") {
  if (candidates(kernels(), task(64, 64, 64), harness::limits_here()).empty()) return;
  for (const char a : {'n', 't'})
    for (const char b : {'n', 't'}) check_laid_out<__half, __half>(a, b, a == b ? 'n' : 't');
  check_laid_out<__half, float>('n', 'n', 'n');
  check_laid_out<__nv_bfloat16, __nv_bfloat16>('t', 'n', 'n');
  check_laid_out<__nv_bfloat16, float>('n', 't', 't');

  // One of them alone, and the same bits again.
  using T = __half;
  const Placed<T> A(37, 1001, 1008, 1, 1), B(1001, 50, 51, 1, 2, 1), C(37, 50, 51, 1, 3);
  CHECK(choice(A.view, B.view, C.view).lays_out);
  CHECK(run_is_right(A, B, C));
  CHECK(run_is_right(A, B, C));
}

TEST_CASE("one call: without memory to lay out operands, the fallback runs") {
  const Placed<__half> A(37, 1001, 1001, 1, 1), B(1001, 50, 51, 1, 2), C(37, 50, 51, 1, 3);
  const std::size_t most = std::exchange(StreamMemory::most(), 0);
  CHECK(StreamMemory(1).data() == nullptr);
  CHECK(run_is_right(A, B, C));
  CHECK_FALSE(tune(A.view, B.view, C.view).is_timed);
  CHECK(is_right(A, B, C, 1));
  StreamMemory::most() = most;
  CHECK(StreamMemory(std::size_t{1} << 50).data() == nullptr);  // no GPU has that
  CHECK(StreamMemory(1).data() != nullptr);
}

TEST_CASE("one call: empty matrices") {
  using T = __half;
  SUBCASE("no sums: epilogue(0)") {
    const Placed<T> C(20, 30, 30, 1, 3);
    run(Matrix<const T>{nullptr, 20, 0, 0, 1}, Matrix<const T>{nullptr, 0, 30, 30, 1}, C.view);
    const Placed<T> A(20, 0, 0, 1, 1), B(0, 30, 30, 1, 2);
    CHECK(is_right(A, B, C, 1));
  }
  SUBCASE("no elements: nothing happens") {
    const Placed<T> A(20, 24, 24, 1, 1);
    run(A.view, Matrix<const T>{nullptr, 24, 0, 0, 1}, Matrix<T>{nullptr, 20, 0, 0, 1});
    run(Matrix<T>{}, Matrix<T>{}, Matrix<T>{});
    CHECK(choice(Matrix<T>{}, Matrix<T>{}, Matrix<T>{}).kernel.empty());
    CHECK(tune(Matrix<T>{}, Matrix<T>{}, Matrix<T>{}).kernel.empty());
  }
}

TEST_CASE("one call: what breaks the contract is refused, whatever the shape") {
  const Placed<__half> A(16, 24, 24, 1, 1), B(24, 32, 32, 1, 2), C(16, 32, 32, 1, 3);
  CHECK_THROWS_AS(run(A.view, A.view, C.view), Refused);
  CHECK_THROWS_AS(choice(A.view, A.view, C.view), Refused);
  CHECK_THROWS_AS(tune(A.view, A.view, C.view), Refused);
  // Errors name the caller's matrices, also where the transposed product is computed.
  const Matrix<__half> by_columns{B.view.data, 24, 24, 1, 24};
  CHECK(contains(message_of([&] { run(A.view, B.view, Matrix<__half>{B.view.data, 16, 32, 1, 16}); }), "C overlaps B"));
  CHECK(contains(message_of([&] { run(by_columns, by_columns, Matrix<__half>{C.view.data, 24, 24, 0, 1}); }), "C overlap"));
  CHECK(contains(message_of([&] { run(Matrix<__half>{nullptr, 16, 24, 24, 1}, B.view, C.view); }), "A has elements"));
}

TEST_CASE("the choice: what a GPU cannot run is none, and errors say what would") {
  const auto steps = [](const Task& t, int capability) {
    std::string found;
    for (const Kernel* kernel : candidates(kernels(), t, invented_gpu(capability)))
      if (!contains(found, kernel->step.name)) found += kernel->step.name + " ";
    return found;
  };
#ifdef COURSE_ON_INTERPRETER  // which has them all
  CHECK(steps(task(4096, 4096, 4096), 90) == "06_autotune 14_dependent_launch 15_few_rows 19_two_widths 20_fewer_requests ");
  CHECK(steps(task(4096, 4096, 4096), 80) == "06_autotune ");
  CHECK(steps(task(4096, 4096, 4096), 100) == "06_autotune ");
  CHECK(steps(task(4096, 4096, 4096, DType::kF32), 75) == "02_tiled ");
#endif
  CHECK(steps(task(4096, 4096, 4096), 75) == "");
  CHECK(steps(task(4096, 4096, 4096, DType::kF16, Operands::kChunks), 90) == "06_autotune ");
  CHECK(steps(task(4096, 4096, 4096, DType::kF16, Operands::kAny), 90) == "");
  CHECK(choose(kernels(), task(64, 64, 64, DType::kF16, Operands::kAny), invented_gpu(90), {}).is_fallback);

  const std::string message = message_of([] { choose(kernels(), task(64, 64, 64), invented_gpu(75), {}); });
  CHECK(contains(message, "f16 -> f16"));
  CHECK(contains(message, "06_autotune: needs compute capability 8.0 or higher"));
  CHECK(contains(message, "14_dependent_launch: needs compute capability 9.0, no other"));
  GpuLimits tiny = invented_gpu(90);
  tiny.shared_per_block = 1024;
  CHECK(contains(message_of([&] { choose(kernels(), task(64, 64, 64), tiny, {}); }), "shared memory"));
}

TEST_CASE("the choice: times, where there are any, overrule the model") {
  const GpuLimits gpu = invented_gpu(90);
  const Task t = task(4096, 4096, 4096);
  const Chosen by_model = choose(kernels(), t, gpu, {});
  CHECK_FALSE(by_model.is_timed);
  std::vector<std::string> others;
  for (const Kernel* kernel : candidates(kernels(), t, gpu))
    if (kernel != by_model.kernel) others.push_back(kernel->variant.tile);
  REQUIRE(others.size() >= 3);
  const Chosen timed = choose(kernels(), t, gpu,
                              {{by_model.kernel->variant.tile, {3e-3, ""}},
                               {others[0], {2e-3, ""}},
                               {others[1], {1e-3, ""}},
                               {others[2], {0, "registers"}},
                               {"of another version", {1e-9, ""}}});
  CHECK(timed.kernel->variant.tile == others[1]);
  CHECK(timed.is_timed);
  CHECK(timed.seconds == 1e-3);
  CHECK(choose(kernels(), t, gpu, {{"of another version", {1e-9, ""}}}).kernel == by_model.kernel);
  const Chosen rest = choose(kernels(), t, gpu, {{by_model.kernel->variant.tile, {0, "registers"}}});
  CHECK(rest.kernel != by_model.kernel);
}

TEST_CASE("the choice: what was tuned is found on disk, for its task alone; what was chosen stays in the process") {
  using T = __half;
  const Placed<T> A(48, 64, 64, 1, 1), B(64, 40, 40, 1, 2), C(48, 40, 40, 1, 3);
  const auto call_of = [&](std::int64_t m) {
    return call(Matrix<T>{A.view.data, m, 64, 64, 1}, B.view, Matrix<T>{C.view.data, m, 40, 40, 1}, Identity{});
  };
  const auto store_slowest_as_fastest = [](const Task& t) {
    const auto able = candidates(kernels(), t, harness::limits_here());
    harness::TuningCache cache(own_cache.folder);
    cache.store(tuning_key(t), {{able.front()->variant.tile, {5e-6, ""}}, {able.back()->variant.tile, {1e-6, ""}}});
    CHECK(cache.warnings().empty());
    return able.back()->variant.tile;
  };
  const std::string stored = store_slowest_as_fastest(task_of(call_of(48)));
  const Choice from_disk = library::choice(call_of(48));
  CHECK(from_disk.kernel == stored);
  CHECK(from_disk.is_timed);
  CHECK(from_disk.seconds == 1e-6);
  library::run(call_of(48), nullptr);
  CHECK(is_right(A, B, C, 1));

  const Choice by_model = library::choice(call_of(47));
  CHECK_FALSE(by_model.is_timed);
  store_slowest_as_fastest(task_of(call_of(47)));
  CHECK(library::choice(call_of(47)).kernel == by_model.kernel);
}

TEST_CASE("the choice: a task is the product that is computed") {
  const Placed<__half> A(48, 64, 64, 1, 1), B(64, 40, 1, 64, 2), C(48, 40, 40, 1, 3), D(48, 40, 1, 48, 3);
  const Task rows = task_of(call(A.view, B.view, C.view, Identity{})), columns = task_of(call(A.view, B.view, D.view, Identity{}));
  CHECK(rows.spec.shape() == "48x40x64");
  CHECK(rows.spec.layout() == "nt");
  CHECK(columns.spec.shape() == "40x48x64");
  CHECK(columns.spec.layout() == "nt");  // B and A, transposed
  CHECK(rows.operands() == Operands::kBoxes);
}

TEST_CASE("any number of threads may ask and run") {
  constexpr int kThreads = 4, kShapes = 60;
  const Placed<__half> A(64, 64, 64, 1, 1), B(64, 64, 64, 1, 2);
  std::vector<Placed<__half>> C;
  for (int i = 0; i < kThreads; ++i) C.emplace_back(64, 64, 64, 1, 3);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int size = 1; size <= kShapes; ++size) {
        const Matrix<__half> a{A.view.data, size, 64, 64, 1}, c{C[static_cast<std::size_t>(i)].view.data, size, 64, 64, 1};
        const Choice expected = to_choice(choose(kernels(), task_of(call(a, B.view, c, Identity{})), harness::limits_here(), {}));
        wrong += choice(a, B.view, c).kernel != expected.kernel;
        if (size == kShapes) run(A.view, B.view, C[static_cast<std::size_t>(i)].view);
      }
    });
  for (std::thread& thread : threads) thread.join();
  device::synchronize();
  CHECK(wrong == 0);
  for (const auto& each : C) CHECK(is_right(A, B, each, 1));
}

TEST_CASE("the C interface: statuses and messages in place of exceptions") {
  const Placed<__half> A(16, 24, 24, 1, 1), B(24, 32, 32, 1, 2), C(16, 32, 32, 1, 3);
  const auto c_matrix = [](const auto& m) { return CourseGemmMatrix{m.data, m.rows, m.cols, m.row_stride, m.col_stride}; };
  const CourseGemmMatrix a = c_matrix(A.view), b = c_matrix(B.view), c = c_matrix(C.view);
  const int f16 = COURSE_GEMM_F16;
  CHECK(course_gemm_run(&a, &a, &c, f16, f16, 1, nullptr) == COURSE_GEMM_REFUSED);
  CHECK(contains(course_gemm_error(), "shapes do not fit"));
  std::thread([] { CHECK(std::string(course_gemm_error()).empty()); }).join();  // of each thread
  CHECK(course_gemm_run(&a, &b, &c, f16, f16, 0.5f, nullptr) == COURSE_GEMM_OK);
  CHECK(std::string(course_gemm_error()).empty());
  CHECK(is_right(A, B, C, 0.5f));
  CHECK(course_gemm_run(nullptr, &b, &c, f16, f16, 1, nullptr) == COURSE_GEMM_REFUSED);
  CHECK(course_gemm_run(&a, &b, &c, 3, f16, 1, nullptr) == COURSE_GEMM_REFUSED);
  CHECK(course_gemm_run(&a, &b, &c, f16, COURSE_GEMM_BF16, 1, nullptr) == COURSE_GEMM_REFUSED);
  CHECK(contains(course_gemm_error(), "C has the type"));
  CHECK(course_gemm_tune(&a, &b, &c, f16, f16, 1, nullptr) == COURSE_GEMM_OK);
  CHECK(is_right(A, B, C, 1));
  char text[200], start[8];
  CHECK(course_gemm_choice(&a, &b, &c, f16, f16, text, sizeof text) == COURSE_GEMM_OK);
  CHECK(contains(text, kIsTimed ? "timed" : "by model"));
  CHECK(course_gemm_choice(&a, &b, &c, f16, f16, start, sizeof start) == COURSE_GEMM_OK);
  CHECK(std::string(start) == std::string(text).substr(0, 7));
}

#ifdef COURSE_ON_INTERPRETER
TEST_CASE("the choice: which kernel the model picks") {
  struct Case {
    const char* gpu;
    std::int64_t m, n, k;
    DType type;
    const char* kernel;
  };
  // So that a change of the model shows what else it changes. How good the choices are, the tests below say.
  for (const Case& c : {Case{"h200", 8192, 8192, 8192, DType::kF16, "19_two_widths 128x256x64 s4 g8 cooperative narrow 224"},
                        {"h200", 4096, 4096, 4096, DType::kBF16, "19_two_widths 128x256x64 s4 g8 cooperative narrow 240"},
                        {"h200", 4104, 4104, 4104, DType::kF16, "20_fewer_requests 176x192x64 s4 g8 cluster 2"},
                        {"h200", 1000, 1000, 1000, DType::kF16, "20_fewer_requests 144x64x64 s8 g8 cluster 4"},
                        {"h200", 3072, 3072, 3072, DType::kF16, "20_fewer_requests 192x128x64 s5 g8 cluster 2"},
                        {"h200", 2048, 2048, 2048, DType::kF16, "14_dependent_launch 64x256x64 s4 g8 ping-pong"},
                        {"h100", 5120, 5120, 5120, DType::kF16, "20_fewer_requests 224x128x64 s4 g8 cluster 2"},
                        {"h200", 1536, 1536, 1536, DType::kF16, "20_fewer_requests 96x192x64 s6 g8 cluster 2"},
                        {"h200", 1408, 1408, 1408, DType::kF16, "20_fewer_requests 128x128x64 s6 g8 cluster 1"},
                        {"h200", 1280, 1280, 1280, DType::kF16, "20_fewer_requests 224x64x64 s4 g8 cluster 4"},
                        {"h200", 1024, 1024, 1024, DType::kF16, "14_dependent_launch 64x128x64 s8 g8 ping-pong"},
                        {"h200", 768, 768, 768, DType::kF16, "20_fewer_requests 88x64x64 s10 g8 cluster 4"},
                        {"h200", 640, 640, 640, DType::kF16, "20_fewer_requests 64x64x64 s12 g8 cluster 4 sharing A"},
                        {"h200", 512, 512, 512, DType::kF16, "20_fewer_requests 64x64x64 s12 g8 cluster 4 sharing A"},
                        {"h200", 8, 4096, 4096, DType::kF16, "15_few_rows 8x64x128 s5 split 2"},
                        {"h200", 8, 11008, 4096, DType::kF16, "15_few_rows 8x64x128 s4 split 1"},
                        {"h200", 8, 1024, 4096, DType::kF16, "15_few_rows 16x64x128 s5 split 4"},
                        {"h200", 256, 1024, 1024, DType::kF16, "15_few_rows 32x64x128 s4 split 1"},
                        {"h200", 32, 4096, 4096, DType::kF16, "15_few_rows 32x64x64 s9 split 2"},
                        {"h200", 64, 4096, 4096, DType::kBF16, "15_few_rows 64x64x64 s7 split 2"},
                        {"h200", 64, 1024, 4096, DType::kF16, "15_few_rows 64x64x64 s7 split 4"},
                        {"h200", 128, 4096, 4096, DType::kF16, "15_few_rows 128x64x64 s8 split 2"},
                        {"h200", 2360, 224, 7328, DType::kF16, "20_fewer_requests 160x64x64 s6 g8 split 2 cluster 8"},
                        {"h200", 4096, 4096, 4096, DType::kF32, "02_tiled 128x128x8, 8x8 per thread"},
                        {"h200", 512, 512, 512, DType::kF32, "02_tiled 64x64x8, 4x4 per thread"},
                        {"a100", 4096, 4096, 4096, DType::kF16, "06_autotune 128x128x64 warp 64x64 s3 g8"},
                        {"4090", 4096, 4096, 4096, DType::kF16, "06_autotune 128x128x64 warp 64x64 s3 g8"}}) {
    INFO(c.gpu << " " << c.m << "x" << c.n << "x" << c.k);
    const Chosen chosen = choose(kernels(), task(c.m, c.n, c.k, c.type), harness::limits_of(interpreter::find_gpu(c.gpu)), {});
    CHECK(to_choice(chosen).kernel == c.kernel);
  }
}

TEST_CASE("the choice: operands are laid out anew where the model expects to gain by it") {
  const GpuLimits gpu = harness::limits_of(interpreter::find_gpu("h200"));
  const auto chosen = [&](std::int64_t m, std::int64_t n, std::int64_t k, Operand a, Operand b, bool transpose_b = false) {
    Task t = task(m, n, k);
    t.spec.transpose_b = transpose_b;
    t.a = a, t.b = b;
    const Chosen c = choose(kernels(), t, gpu, {});
    return c.is_fallback ? std::string("fallback") : std::string(c.lays_a ? "A" : "") + (c.lays_b ? "B" : "");
  };
  const Operand odd{Operands::kAny, 1}, lines{Operands::kBoxes, 1};
  const auto rows = [](std::int64_t elements) { return Operand{Operands::kBoxes, harness::requests_for_rows(0, 2 * elements)}; };
  CHECK(chosen(4095, 4095, 4095, odd, odd) == "AB");
  CHECK(chosen(1024, 50257, 768, lines, odd) == "B");
  CHECK(chosen(333, 4093, 2049, odd, odd) == "AB");
  CHECK(chosen(1000, 1001, 1000, rows(1000), odd) == "B");
  CHECK(chosen(64, 64, 64, odd, odd) == "fallback");
  CHECK(chosen(4096, 4096, 4096, lines, lines) == "");
  CHECK(chosen(4095, 4095, 4095, lines, lines) == "");  // C's rows alone are odd
  CHECK(chosen(1000, 1000, 1000, rows(1000), rows(1000)) == "");
  CHECK(chosen(4104, 4104, 4104, rows(4104), rows(4104)) == "");  // step 20 needs few requests
}

TEST_CASE("the choice: one launch more where operands are laid out anew, and none of their memory is kept") {
  const Placed<__half> A(37, 1001, 1001, 1, 1), B(1001, 50, 51, 1, 2), C(37, 50, 51, 1, 3);
  interpreter::clear_profiles();
  run(A.view, B.view, C.view);
  REQUIRE(interpreter::profiles().size() == 2);
  CHECK(contains(interpreter::profiles()[0].kernel, "relayout_kernel"));
  CHECK(contains(interpreter::profiles()[1].kernel, choice(A.view, B.view, C.view).kernel.substr(0, 11)));
  interpreter::clear_profiles();
  const std::size_t most = std::exchange(StreamMemory::most(), 0);
  run(A.view, B.view, C.view);
  StreamMemory::most() = most;
  REQUIRE(interpreter::profiles().size() == 1);
  CHECK(contains(interpreter::profiles()[0].kernel, "fallback_kernel"));
}

// Of the tiles for large problems, in files that have all their times.
TEST_CASE("the choice: what the model picks beside what was measured") {
  struct File {
    const char* gpu;
    std::vector<std::string> names;  // of the tiles' steps, in docs/results
    std::size_t shapes;
    double at_most;  // of the best one's time; hot, both in cuBLAS's of the same rounds: power sets the clock, from tile to tile
  };
  const std::string h100 = "docs/results/h100-80gb-hbm3/", h200 = "docs/results/h200/";
  for (const File& file : {File{"h100", {h100 + "tiles-f16", h100 + "two-widths-tiles-f16"}, 31, 1.055},
                           {"h100", {h100 + "tiles-large-f16", h100 + "two-widths-tiles-f16"}, 8, 1.025},
                           {"h100", {h100 + "tiles-nt-f16", h100 + "two-widths-tiles-nt-f16"}, 25, 1.15},
                           {"h200", {h200 + "tiles-f16", h200 + "two-widths-tiles-f16"}, 31, 1.085},
                           {"h200", {h200 + "tiles-large-f16", h200 + "two-widths-tiles-f16"}, 8, 1.02},
                           {"h200", {h200 + "straddling-f16"}, 3, 1.01},
                           {"h200", {h200 + "tiles-small-f16"}, 7, 1.12},
                           {"h200", {h200 + "dependent-f16"}, 6, 1.13},
                           {"h200", {h200 + "rows-f16"}, 8, 1.02},
                           {"h200", {h200 + "few-rows-f16-cold"}, 5, 1.01},
                           {"h200", {h200 + "more-rows-f16-cold"}, 4, 1.01},
                           {"h200", {h200 + "wide-rows-f16-cold"}, 11, 1.045},
                           {"h200", {h200 + "long-rows-f16-cold"}, 4, 1.055},
                           {"h200", {h200 + "long-rows-nt-f16-cold"}, 9, 1.055}}) {
    const GpuLimits gpu = harness::limits_of(interpreter::find_gpu(file.gpu));
    std::map<std::array<std::int64_t, 3>, std::map<std::string, double>> times;  // by shape and tile: of the first file's shapes
    bool transpose_b = false;
    for (const std::string& name : file.names) {
      std::ifstream stream(name + ".json");
      REQUIRE(stream.good());
      const auto measured = nlohmann::json::parse(stream);
      for (const auto& result : measured["results"]) {
        const std::array<std::int64_t, 3> shape{result["m"], result["n"], result["k"]};
        if (&name != &file.names.front() && !times.contains(shape)) continue;
        transpose_b = result["layout"] == "nt";
        times[shape][result["step"].get<std::string>() + " " + result["tile"].get<std::string>()] =
            result["mode"] == "cold" ? result["time"]["median"].get<double>()
                                     : 1 / result["ratio"]["cublasGemmEx"]["median"].get<double>();
      }
    }
    CHECK(times.size() == file.shapes);
    for (const auto& [shape, of_tile] : times) {
      harness::Spec spec = task(shape[0], shape[1], shape[2], DType::kF16).spec;
      spec.transpose_b = transpose_b;
      double best = HUGE_VAL, predicted = HUGE_VAL, picked = HUGE_VAL;
      for (const Kernel& kernel : kernels()) {
        const auto time = of_tile.find(kernel.variant.tile);
        if (kernel.variant.in != DType::kF16 || kernel.variant.out != DType::kF16 || time == of_tile.end()) continue;
        if (kernel.operands != Operands::kBoxes) continue;  // the call asks none of them where one with boxes runs
        best = std::min(best, time->second);
        const double prediction = harness::predict(kernel.variant.numbers, spec, gpu).seconds;
        if (prediction < predicted) predicted = prediction, picked = time->second;
      }
      INFO(file.names.front() << " " << spec.shape() << ", best " << best << ", picked " << picked);
      // The misses that are known, of small squares: 15's tile of 32 rows takes less.
      const bool known = spec.m == spec.n && spec.n == spec.k && spec.m <= 512;
      CHECK(picked <= (known ? std::max(file.at_most, 1.16) : file.at_most) * best);
    }
  }
}

// How much longer what the model chooses takes than the best of all ways that were timed, in docs/results/h200/choices; and what
// docs/library.md says of that.
TEST_CASE("the choice: at shapes that the model was fitted to, and at others") {
  struct File {
    const char* name;
    int problems;
    double at_most;  // on average
  };
  const GpuLimits gpu = harness::limits_of(interpreter::find_gpu("h200"));
  const auto fields = [](std::istream& stream) {
    std::vector<std::string> all;
    std::string line, field;
    if (std::getline(stream, line))
      for (std::istringstream each(line + ","); std::getline(each, field, ',');) all.push_back(field);
    return all;
  };
  struct Shares {  // of cuBLAS, as sums of logarithms
    int problems = 0;
    double picked = 0, best = 0;
  };
  std::map<std::string, Shares> shares;
  std::ifstream library_page("docs/library.md");
  const std::string page{std::istreambuf_iterator<char>(library_page), {}};
  const auto decimals = [](double x, int count) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", count, x);
    return std::string(text);
  };
  for (const File& file : {File{"eights-51", 80, 0.045},
                           {"hundreds-41", 40, 0.03},
                           {"llama-22", 28, 0.02},
                           {"wide-2", 12, 0.01},
                           {"long-33", 40, 0.04},
                           {"straddling-4", 8, 0.005},
                           // No constant was fitted to these; tiles were chosen by them, too.
                           {"hundreds-43", 30, 0.015},
                           {"wide-22", 18, 0.04}}) {
    INFO(std::string(file.name));
    std::ifstream stream("docs/results/h200/choices/" + std::string(file.name) + ".csv");
    const std::vector<std::string> names = fields(stream);
    REQUIRE(names.size() > 4);
    Shares& share = shares[file.name];
    double longer = 0;
    int unknown = 0;
    for (std::vector<std::string> row = fields(stream); !row.empty(); row = fields(stream)) {
      const std::int64_t m = std::stoll(row[0]), n = std::stoll(row[1]), k = std::stoll(row[2]);
      const auto lies = [](char layout, std::int64_t rows, std::int64_t cols) {  // at an address that a line begins at
        void* const data = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
        return harness::AnyMatrix{data, rows, cols, layout == 'n' ? cols : 1, layout == 'n' ? 1 : rows};
      };
      const Chosen chosen =
          choose(kernels(), task_of({lies(row[3][0], m, k), lies(row[3][1], k, n), lies('n', m, n), DType::kF16, DType::kF16, 1}),
                 gpu, {});
      double best = HUGE_VAL, slowest = 0, picked = 0, cublas = 0;
      for (std::size_t i = 4; i < row.size() && i < names.size(); ++i) {
        if (row[i].empty()) continue;
        const double time = std::stod(row[i]);
        if (names[i] == "cublasGemmEx") cublas = time;
        if (names[i].starts_with("cublas")) continue;
        best = std::min(best, time), slowest = std::max(slowest, time);
        if (names[i] == way_name(chosen)) picked = time;
      }
      unknown += picked == 0;
      if (picked == 0) picked = slowest;
      longer += picked / best - 1;
      REQUIRE(cublas > 0);
      ++share.problems, share.picked += std::log(cublas / picked), share.best += std::log(cublas / best);
    }
    longer /= share.problems;
    CHECK(share.problems == file.problems);
    CHECK(unknown <= share.problems / 50);
    CHECK(longer <= file.at_most);
  }
  for (const auto& [name, share] : shares) {
    const std::string cells = " | " + std::to_string(share.problems) + " | " +
                              decimals(std::exp(share.picked / share.problems), 2) + " | " +
                              decimals(std::exp(share.best / share.problems), 2) + " |\n";
    INFO(name << cells);
    CHECK(contains(page, cells));
  }
}

// What was measured in several processes each, beside what docs/library.md says of it.
TEST_CASE("the choice: families of shapes, in the page's table") {
  std::ifstream library_page("docs/library.md");
  const std::string page{std::istreambuf_iterator<char>(library_page), {}};
  for (const auto& [name, problems] : std::map<std::string, int>{
           {"eights", 120}, {"hundreds", 30}, {"llama", 28}, {"wide", 18}, {"straddling", 20}, {"odd", 20}}) {
    std::ifstream stream("docs/results/h200/families/" + name + ".csv");
    std::string line;
    REQUIRE(std::getline(stream, line));
    REQUIRE(line == "m,n,k,layout,call,cublasGemmEx,cublasLt,share,least,most");
    double of_cublas = 0, of_best = 0, least = HUGE_VAL;
    int count = 0;
    for (; std::getline(stream, line); ++count) {
      double call = 0, ex = 0, lt = 0, share = 0;
      REQUIRE(std::sscanf(line.c_str(), "%*d,%*d,%*d,%*2c,%lf,%lf,%lf,%lf", &call, &ex, &lt, &share) == 4);
      of_cublas += std::log(share), of_best += std::log(std::min(ex, lt) / call), least = std::min(least, share);
    }
    CHECK(count == problems);
    char cells[64];
    std::snprintf(cells, sizeof cells, " | %d | %.2f | %.2f | %.2f |\n", count, std::exp(of_cublas / count), least,
                  std::exp(of_best / count));
    INFO(name << cells);
    CHECK(contains(page, cells));
  }
}

TEST_CASE("the choice: one launch of the kernel that was chosen") {
  const Placed<__half> A(70, 100, 104, 1, 1), B(100, 50, 56, 1, 2), C(70, 50, 50, 1, 3);
  interpreter::clear_profiles();
  run(A.view, B.view, C.view);
  REQUIRE(interpreter::profiles().size() == 1);
  const std::string step = choice(A.view, B.view, C.view).kernel.substr(0, 11);
  CHECK(contains(interpreter::profiles().front().kernel, "step_" + step));
  interpreter::clear_profiles();
  run(Matrix<__half>{}, Matrix<__half>{}, Matrix<__half>{});
  CHECK(interpreter::profiles().empty());
}
#else
namespace {

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { DEVICE_CHECK(cudaStreamCreateWithFlags(&stream_, flags)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

std::size_t nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  DEVICE_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  return count;
}

void replay(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t executable = nullptr;
  DEVICE_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  DEVICE_CHECK(cudaGraphLaunch(executable, stream));
  DEVICE_CHECK(cudaStreamSynchronize(stream));
  DEVICE_CHECK(cudaGraphExecDestroy(executable));
}

}  // namespace

TEST_CASE("on the GPU: a graph captures it, also the first call for a shape, each thread on a stream of its own") {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      const auto A = placed<__half>('n', 300 + 8 * i, 136, 1), B = placed<__half>('t', 136, 520, 2),
                 C = placed<__half>('n', 300 + 8 * i, 520, 3);
      const Stream stream;
      cudaGraph_t graph = nullptr;
      DEVICE_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      run(A.view, B.view, C.view, LeakyRelu{0.5f}, stream);
      run(A.view, B.view, C.view, LeakyRelu{0.5f}, stream);
      DEVICE_CHECK(cudaStreamEndCapture(stream, &graph));
      const bool waits = !is_right(A, B, C, 0.5f);  // nothing has run yet
      const bool has_two = nodes_of(graph) == 2;
      replay(graph, stream);
      right += waits && has_two && is_right(A, B, C, 0.5f);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads);
  CHECK(device::stream() == nullptr);
}

TEST_CASE("on the GPU: a graph captures what is laid out anew, between calls that need none; nothing of it is kept") {
  const Placed<__half> A(300, 1001, 1001, 1, 1, 1), B(1001, 333, 333, 1, 2), C(300, 333, 333, 1, 3), D(300, 333, 333, 1, 3);
  const auto E = placed<__half>('n', 300, 136, 1), F = placed<__half>('n', 136, 520, 2), G = placed<__half>('n', 300, 520, 3);
  REQUIRE(choice(A.view, B.view, C.view).lays_out);
  const Stream stream;
  cudaGraph_t graph = nullptr;
  DEVICE_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  run(A.view, B.view, C.view, Identity{}, stream);
  run(E.view, F.view, G.view, Identity{}, stream);
  run(A.view, B.view, D.view, LeakyRelu{0.5f}, stream);
  DEVICE_CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(nodes_of(graph) == 4 + 1 + 4);  // memory, copies, product, memory
  cudaGraphExec_t executable = nullptr;
  DEVICE_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) DEVICE_CHECK(cudaGraphLaunch(executable, stream));
  DEVICE_CHECK(cudaStreamSynchronize(stream));
  DEVICE_CHECK(cudaGraphExecDestroy(executable));
  DEVICE_CHECK(cudaGraphDestroy(graph));
  CHECK(is_right(A, B, C, 1));
  CHECK(is_right(E, F, G, 1));
  CHECK(is_right(A, B, D, 0.5f));

  run(A.view, B.view, C.view, LeakyRelu{0.5f}, stream);
  run(A.view, B.view, D.view, Identity{}, stream);
  DEVICE_CHECK(cudaStreamSynchronize(stream));
  CHECK(is_right(A, B, C, 0.5f));
  CHECK(is_right(A, B, D, 1));
  int gpu = 0;
  cudaMemPool_t pool = nullptr;
  std::uint64_t used = 1;
  DEVICE_CHECK(cudaGetDevice(&gpu));
  DEVICE_CHECK(cudaDeviceGetMemPool(&pool, gpu));
  DEVICE_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(used == 0);

  const Choice tuned = tune(A.view, B.view, C.view, Identity{}, stream);
  DEVICE_CHECK(cudaStreamSynchronize(stream));
  CHECK(tuned.is_timed);
  CHECK(tuned.lays_out);
  CHECK(is_right(A, B, C, 1));
}

TEST_CASE("on the GPU: tune() times, keeps and leaves the product; not during a capture") {
  const auto A = placed<__half>('n', 512, 136, 1), B = placed<__half>('n', 136, 512, 2), C = placed<__half>('n', 512, 512, 3);
  const Stream stream;
  const Choice tuned = tune(A.view, B.view, C.view, LeakyRelu{0.5f}, stream);
  DEVICE_CHECK(cudaStreamSynchronize(stream));
  CHECK(tuned.is_timed);
  CHECK(tuned.seconds > 1e-7);
  CHECK(is_right(A, B, C, 0.5f));
  CHECK(choice(A.view, B.view, C.view).kernel == tuned.kernel);
  harness::TuningCache cache(own_cache.folder);
  const Task t = task_of(call(A.view, B.view, C.view, Identity{}));
  CHECK(cache.find(tuning_key(t)).size() >= 5);
  const Choice again = tune(A.view, B.view, C.view, Identity{}, stream);
  DEVICE_CHECK(cudaStreamSynchronize(stream));
  CHECK(again.kernel == tuned.kernel);
  CHECK(is_right(A, B, C, 1));

  cudaGraph_t graph = nullptr;
  DEVICE_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK_THROWS_AS(tune(A.view, B.view, C.view, Identity{}, stream), Error);
  DEVICE_CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(nodes_of(graph) == 0);
  CHECK(device::stream() == nullptr);
}

TEST_CASE("on the GPU: what CUDA refuses is an Error of the library") {
  const Placed<__half> A(16, 24, 24, 1, 1), B(24, 32, 32, 1, 2), C(16, 32, 32, 1, 3);
  const Stream stream(cudaStreamDefault);  // the default stream waits for it, which cannot be while it is captured
  cudaGraph_t graph = nullptr;
  DEVICE_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK_THROWS_AS(run(A.view, B.view, C.view), Error);
  cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();
}
#endif
