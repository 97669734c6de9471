#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numbers>
#include <random>
#include <sstream>

#include "common/device/device.cuh"
#include "common/harness/activation_kernel.h"
#include "common/harness/ncu.h"
#include "common/harness/problem.h"
#include "common/harness/results.h"
#include "common/harness/roofline.h"
#include "common/harness/statistics.h"

using namespace harness;

namespace {

const Ceilings kCeilings{"measured", 4e12, 64e12, 640e12, 620e12};

Spec cube(std::int64_t n, DType type = DType::kF32) { return {n, n, n, type, type}; }

struct Folder {
  Folder() { REQUIRE(mkdtemp(path)); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return std::string(path) + "/" + name; }
  char path[32] = "/tmp/harness_test.XXXXXX";
};

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::size_t files_in(const char* path) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("roofline: the figures that the course teaches") {
  SUBCASE("without reuse: a quarter of an operation per byte in f32, half of one in f16, for any shape") {
    for (const Spec& s : {cube(4096), Spec{1, 7, 3}, Spec{2048, 3072, 768}}) {
      CHECK(*roofline(s, 1, 1, kCeilings).no_reuse.intensity == 0.25);
      Spec half = s;
      half.in = half.out = DType::kF16;
      CHECK(*roofline(half, 1, 1, kCeilings).no_reuse.intensity == 0.5);
    }
    CHECK(*roofline(cube(4096), 1, 1, kCeilings).no_reuse.bound == 1e12);
  }
  SUBCASE("tiles: BM BN / (2 (BM + BN)) in f32") {
    const Roofline r = roofline(cube(4096), 128, 128, kCeilings);
    CHECK(*r.tile_reuse.intensity == 32);
    CHECK(*r.tile_reuse.bound == 64e12);
    CHECK(*roofline(cube(4096), 64, 32, kCeilings).tile_reuse.intensity == doctest::Approx(64 * 32 / (2.0 * 96)));
    CHECK(*roofline(cube(4096, DType::kF16), 128, 256, kCeilings).tile_reuse.intensity ==
          doctest::Approx(2.0 * 128 * 256 / (2 * 384)));
  }
  SUBCASE("a ragged tile loads as much as a whole one has rows and columns to load for") {
    CHECK(roofline({129, 100, 10}, 128, 128, kCeilings).tile_reuse.bytes == 4 * (129 * 10 * 1 + 10 * 100 * 2));
    CHECK(roofline({256, 64, 10}, 64, 32, kCeilings).tile_reuse.bytes == 4 * (256 * 10 * 2 + 10 * 64 * 4));
  }
  SUBCASE("compulsory: every element once, in its own type") {
    CHECK(roofline({3, 5, 7, DType::kF16, DType::kF32}, 1, 1, kCeilings).compulsory.bytes == 2 * (3 * 7 + 7 * 5) + 4 * 3 * 5);
    // Decode: memory bounds even what is moved just once.
    const Roofline r = roofline({8, 4096, 4096, DType::kF16, DType::kF16}, 128, 128, kCeilings);
    CHECK(*r.compulsory.bound < r.peak);
    CHECK(*r.compulsory.bound == doctest::Approx(*r.compulsory.intensity * 4e12));
  }
  SUBCASE("peak and ridge by type") {
    CHECK(roofline(cube(64), 1, 1, kCeilings).ridge == 16);
    CHECK(roofline(cube(64, DType::kF16), 1, 1, kCeilings).peak == 640e12);
    CHECK(roofline(cube(64, DType::kBF16), 1, 1, kCeilings).peak == 620e12);
  }
  SUBCASE("empty problems have no bound, and nothing is infinite") {
    for (const Spec& s : {Spec{0, 5, 3}, Spec{5, 0, 3}, Spec{5, 3, 0}, Spec{0, 0, 0}}) {
      const Roofline r = roofline(s, 1, 1, kCeilings);
      CHECK(r.flops == 0);
      for (const ByteModel& m : {r.no_reuse, r.tile_reuse, r.compulsory}) {
        CHECK(m.intensity.has_value() == (m.bytes > 0));
        CHECK(m.bound.value_or(0) == 0);
      }
      CHECK(note(r, {}) == "Nothing to multiply, so there is no bound.");
    }
  }
  SUBCASE("in words") {
    const std::string naive = note(roofline(cube(4096), 1, 1, kCeilings), 6e12);
    CHECK(
        naive ==
        "If every multiply-add loads its operands, it reads 550 GB: 0.250 FLOP/byte, left of the ridge at 16.0, so memory bounds "
        "it "
        "at 1.00 TFLOP/s. Measured: 6.00 TFLOP/s, 9.38 % of the roofline, 6.00 times that bound: caches answer most of the loads.");
    const Spec decode{8, 4096, 4096, DType::kF16, DType::kF16};
    CHECK(note(roofline(decode, 128, 128, kCeilings), 16e12) ==
          "Loading the operands of each 128x128 tile once reads 35.7 MB: 7.53 FLOP/byte, left of the ridge at 160, so memory "
          "bounds it at 30.1 TFLOP/s; moving everything just once, memory still bounds it at 31.9 TFLOP/s. Measured: 16.0 TFLOP/s, "
          "50.2 % of the roofline.");
    CHECK(note(roofline(decode, 1, 128, kCeilings), {}) ==
          "Loading the operands of each 1x128 tile once reads 271 MB: 0.992 FLOP/byte, left of the ridge at 160, so memory bounds "
          "it at 3.97 TFLOP/s; moving everything just once, memory still bounds it at 31.9 TFLOP/s.");
    CHECK(note(roofline(cube(4096), 1, 1, kCeilings), 0.5e12) ==
          "If every multiply-add loads its operands, it reads 550 GB: 0.250 FLOP/byte, left of the ridge at 16.0, so memory bounds "
          "it at 1.00 TFLOP/s. Measured: 500 GFLOP/s, 0.781 % of the roofline.");
    Spec fused = cube(4096);
    fused.epilogue = {Activation::kGelu, false};
    CHECK(note(roofline(fused, 128, 128, kCeilings), 32e12) ==
          "Loading the operands of each 128x128 tile once reads 4.29 GB: 32.0 FLOP/byte, right of the ridge at 16.0, so arithmetic "
          "bounds it at 64.0 TFLOP/s. A separate kernel for the epilogue would read and write C again: fused, it saves 134 MB, "
          "40.0 % of what both must move. Measured: 32.0 TFLOP/s, 50.0 % of the roofline: the rest is time in which arithmetic "
          "units wait or have nothing to do.");
    const std::string tiled = note(roofline(cube(4096), 128, 128, kCeilings), 32e12);
    CHECK(tiled.find("right of the ridge at 16.0, so arithmetic bounds it at 64.0 TFLOP/s. Measured: 32.0 TFLOP/s, 50.0 %") !=
          std::string::npos);
  }
  SUBCASE("what a fused epilogue saves: C is not read and written again") {
    Spec s{256, 512, 64, DType::kF16, DType::kF16};
    const double plain = roofline(s, 128, 128, kCeilings).compulsory.bytes;
    CHECK(roofline(s, 128, 128, kCeilings).saved_bytes == 0);
    s.epilogue = {Activation::kGelu, true};
    const Roofline r = roofline(s, 128, 128, kCeilings);
    CHECK(r.saved_bytes == 2 * 2 * 256 * 512);
    CHECK(r.compulsory.bytes == plain + 2 * 512);  // the bias
    CHECK(note(r, {}).find("fused, it saves 524 kB, ") != std::string::npos);
    s.epilogue = {Activation::kIdentity, true};
    CHECK(roofline(s, 128, 128, kCeilings).saved_bytes == 2 * 2 * 256 * 512);
  }
  CHECK(with_prefix(999) == "999 ");
  CHECK(with_prefix(999.7) == "1.00 k");
  CHECK(with_prefix(1.5e15) == "1500 T");
  CHECK(with_prefix(0) == "0.00 ");
}

TEST_CASE("contestants are compared round by round") {
  // The clocks fall by a quarter in the fourth round, before the first contestant's turn and after the second one's, which is 5 %
  // slower.
  const std::vector<double> first = {4, 4, 4, 5, 5, 5, 5}, second = {4.2, 4.2, 4.2, 4.2, 5.25, 5.25, 5.25};
  CHECK(quantile(second, 0.5) < quantile(first, 0.5));
  CHECK(comparable({first, second})[0] == 5);
  CHECK(comparable({first, second})[1] == doctest::Approx(5.25));
  CHECK(comparable({second, first})[1] < comparable({second, first})[0]);
  CHECK(comparable({{0, 0, 0}, {2, 1, 3}})[1] == 2);  // the clock did not resolve the first
  CHECK(comparable({{0, 2, 2}, {9, 1, 1}})[1] == 1);
}

TEST_CASE("quantiles") {
  CHECK(quantile({3}, 0.2) == 3);
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2.5);
  CHECK(quantile({5, 1, 4, 2, 3}, 0.2) == doctest::Approx(1.8));
  CHECK(quantile({5, 1, 4, 2, 3}, 1) == 5);
}

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

TEST_CASE("files are written whole or not at all") {
  const Folder folder;
  const std::string file = folder.file("result.json");
  write_file(file, "first");
  write_file(file, "second");
  CHECK(read(file) == "second");
  CHECK(files_in(folder.path) == 1);

  SUBCASE("asked early") {
    check_writable(file);
    check_writable(folder.file("new.json"));
    CHECK(read(file) == "second");
    CHECK(files_in(folder.path) == 1);
    CHECK_THROWS_WITH_AS(check_writable("/dev/null"), doctest::Contains("not a regular file; name another one"), BadInput);
    CHECK_THROWS_WITH_AS(check_writable(folder.path), doctest::Contains("not a regular file"), BadInput);
    CHECK_THROWS_WITH_AS(check_writable(folder.file("no/x.json")), doctest::Contains("No such file"), BadInput);
  }
  SUBCASE("no regular file in its place") {
    const std::string pipe = folder.file("pipe");
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_THROWS_WITH_AS(write_file(pipe, "x"), doctest::Contains("not a regular file"), BadInput);
    CHECK(std::filesystem::is_fifo(pipe));
  }
  SUBCASE("no such folder") {
    CHECK_THROWS_WITH_AS(write_file(folder.file("no/x.json"), "x"), doctest::Contains("No such file"), BadInput);
  }
  SUBCASE("a folder in its place") {
    CHECK_THROWS_AS(write_file(folder.path, "x"), BadInput);
    CHECK(files_in(folder.path) == 1);
  }
  SUBCASE("no right to write") {
    chmod(folder.path, 0500);
    if (access(folder.path, W_OK) != 0)  // root may write everywhere
      CHECK_THROWS_WITH_AS(write_file(file, "x"), doctest::Contains("Permission denied"), BadInput);
    chmod(folder.path, 0700);
  }
  SUBCASE("the disk is full: what was there stays, nothing half-written is left") {
    // A limit on the size of files makes write() fail as a full disk does.
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{}, small{};
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit, small.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_THROWS_WITH_AS(write_file(file, std::string(100'000, 'x')), doctest::Contains("a disk with room"), BadInput);
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
    CHECK(read(file) == "second");
    CHECK(files_in(folder.path) == 1);
  }
}

TEST_CASE("ceilings are kept per GPU and driver") {
  const Folder folder;
  const std::string file = folder.file("ceilings.json");
  Machine machine;
  machine.gpu = "NVIDIA H200", machine.driver = "580.1";
  CHECK(!read_ceilings(file, machine));
  write_ceilings(file, machine, kCeilings);
  const auto kept = read_ceilings(file, machine);
  REQUIRE(kept);
  CHECK(kept->copy_bytes == kCeilings.copy_bytes);
  CHECK(kept->mma_bf16 == kCeilings.mma_bf16);
  CHECK(kept->source == "measured");

  Machine other = machine;
  other.gpu = "NVIDIA A100";
  CHECK(!read_ceilings(file, other));
  other = machine, other.driver = "590.1";
  CHECK(!read_ceilings(file, other));
  const std::string whole = read(file);
  for (std::size_t length = 0; length < whole.size() - 2; length += 7) {  // a damaged cache is measured again
    write_file(file, whole.substr(0, length));
    CHECK(!read_ceilings(file, machine));
  }
  std::string zero = whole;
  zero.replace(zero.find("4000000000000"), 13, "0000000000000");
  write_file(file, zero);
  CHECK(!read_ceilings(file, machine));
}

TEST_CASE("documents hold no infinity, and say what is missing") {
  unsetenv("COURSE_COMMIT");
  Machine machine;
  machine.backend = "gpu", machine.gpu = "NVIDIA H200";
  Result r;
  r.step = "01_naive", r.tile = "coalesced", r.spec = cube(0), r.mode = "hot";
  r.roofline = roofline(r.spec, 1, 1, kCeilings);
  r.baselines = {{"cublasGemmEx", {}, {}, 1}};
  const std::string empty = to_json(machine, kCeilings, {r});
  for (const char* expected : {"\"tflops\": null", "\"time\": null", "\"roofline\": null", "\"cublasGemmEx\": null",
                               "\"commit\": null", "\"cublas\": null", "\"compulsory\": null"})
    CHECK_MESSAGE(empty.find(expected) != std::string::npos, std::string(expected));
  CHECK(empty.find("inf") == std::string::npos);
  CHECK(empty.find("nan") == std::string::npos);

  CHECK(empty.find("uuid") == std::string::npos);
  machine.uuid = "GPU-bf85a172";
  CHECK(to_json(machine, kCeilings, {r}).find("\"uuid\": \"GPU-bf85a172\"") != std::string::npos);

  CHECK(empty.find("epilogue") == std::string::npos);
  r.spec.epilogue = {Activation::kSilu, true};
  CHECK(to_json(machine, kCeilings, {r}).find("\"activation\": \"silu\",\n    \"bias\": true") != std::string::npos);

  r.spec = cube(64), r.roofline = roofline(r.spec, 1, 1, kCeilings);
  r.time = Sample{0, 0, 0, 5, 1, false};  // below the clock's resolution
  CHECK(!r.rate());
  CHECK(to_json(machine, kCeilings, {r}).find("\"tflops\": null") != std::string::npos);
  r.time->median = 1e-3;
  CHECK(*r.rate() == doctest::Approx(2.0 * 64 * 64 * 64 / 1e-3));
  setenv("COURSE_COMMIT", "0123456789ab-dirty", 1);
  CHECK(to_json(machine, kCeilings, {r}).find("\"commit\": \"0123456789ab-dirty\"") != std::string::npos);
}

TEST_CASE("ncu's counters are the interpreter's, but for what varies on the hardware") {
  const std::string loads = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                    copies = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
                    executed = "smsp__inst_executed_op_ldgsts.sum",
                    reading = "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum";
  const NcuRow same = {{loads, 1000}, {copies, 400}, {executed, 100}, {reading, 90}};
  CHECK(differences(same, same) == "");
  const auto differs = [&](const std::string& name, double by) {
    NcuRow ncu = same;
    ncu[name] += by;
    return !differences(ncu, same).empty();
  };
  CHECK(!differs(loads, 5));  // loads beside copies: half a per cent
  CHECK(differs(loads, 6));
  CHECK(differs(loads, -1));
  CHECK(!differs(copies, 40));  // ten copies read nothing
  CHECK(differs(copies, 41));
  CHECK(differs(executed, 1));
  CHECK(differences({{loads, 1001}}, {{loads, 1000}}) != "");  // nothing to wait for
}
