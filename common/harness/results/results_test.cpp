#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/device/device.cuh"
#include "common/harness/results/ncu.h"
#include "common/harness/results/results.h"
#include "common/harness/results/roofline.h"
#include "common/harness/results/statistics.h"

using namespace harness;

namespace {

const Ceilings kCeilings{"measured", 4e12, 64e12, 640e12, 620e12, 800e12, 780e12, 810e12, 790e12};

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
    CHECK(roofline(cube(64, DType::kF16), 1, 1, kCeilings, true).peak == 800e12);
    CHECK(roofline(cube(64, DType::kBF16), 1, 1, kCeilings, true).peak == 780e12);
    CHECK(roofline(cube(64), 1, 1, kCeilings, true).peak == 64e12);
    CHECK(roofline(cube(64, DType::kF16), 1, 1, {"measured", 4e12, 64e12, 640e12, 620e12}, true).peak == 640e12);
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
    fused.epilogue = {kActivation<gemm::GeluTanh>, false};
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
    s.epilogue = {kActivation<gemm::GeluTanh>, true};
    const Roofline r = roofline(s, 128, 128, kCeilings);
    CHECK(r.saved_bytes == 2 * 2 * 256 * 512);
    CHECK(r.compulsory.bytes == plain + 2 * 512);  // the bias
    CHECK(note(r, {}).find("fused, it saves 524 kB, ") != std::string::npos);
    s.epilogue = {kActivation<gemm::Identity>, true};
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

// As CHECK_THROWS_WITH_AS with doctest::Contains, which Ubuntu 22.04's doctest does not have.
#define CHECK_REFUSED(call, reason)                                     \
  try {                                                                 \
    call;                                                               \
    FAIL_CHECK(#call " refuses nothing");                               \
  } catch (const BadInput& error) {                                     \
    INFO(error.what());                                                 \
    CHECK(std::string(error.what()).find(reason) != std::string::npos); \
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
    CHECK_REFUSED(check_writable("/dev/null"), "not a regular file; name another one");
    CHECK_REFUSED(check_writable(folder.path), "not a regular file");
    CHECK_REFUSED(check_writable(folder.file("no/x.json")), "No such file");
  }
  SUBCASE("no regular file in its place") {
    const std::string pipe = folder.file("pipe");
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_REFUSED(write_file(pipe, "x"), "not a regular file");
    CHECK(std::filesystem::is_fifo(pipe));
  }
  SUBCASE("no such folder") { CHECK_REFUSED(write_file(folder.file("no/x.json"), "x"), "No such file"); }
  SUBCASE("a folder in its place") {
    CHECK_THROWS_AS(write_file(folder.path, "x"), BadInput);
    CHECK(files_in(folder.path) == 1);
  }
  SUBCASE("no right to write") {
    chmod(folder.path, 0500);
    if (access(folder.path, W_OK) != 0)  // root may write everywhere
      CHECK_REFUSED(write_file(file, "x"), "Permission denied");
    chmod(folder.path, 0700);
  }
  SUBCASE("the disk is full: what was there stays, nothing half-written is left") {
    // A limit on the size of files makes write() fail as a full disk does.
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{}, small{};
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit, small.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_REFUSED(write_file(file, std::string(100'000, 'x')), "a disk with room");
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
  CHECK(kept->wgmma_registers_bf16 == kCeilings.wgmma_registers_bf16);
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
  // Lines and spaces are left out.
  const auto packed = [&] {
    std::string text = to_json(machine, kCeilings, {r});
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
  };
  const std::string empty = packed();
  for (const char* expected : {"\"tflops\":null", "\"time\":null", "\"roofline\":null", "\"cublasGemmEx\":null", "\"commit\":null",
                               "\"cublas\":null", "\"compulsory\":null"})
    CHECK_MESSAGE(empty.find(expected) != std::string::npos, std::string(expected));
  CHECK(empty.find("inf") == std::string::npos);
  CHECK(empty.find("nan") == std::string::npos);

  CHECK(empty.find("uuid") == std::string::npos);
  machine.uuid = "GPU-bf85a172";
  CHECK(packed().find("\"uuid\":\"GPU-bf85a172\"") != std::string::npos);

  CHECK(empty.find("epilogue") == std::string::npos);
  r.spec.epilogue = {kActivation<gemm::Silu>, true};
  CHECK(packed().find("\"activation\":\"silu\",\"bias\":true") != std::string::npos);

  r.spec = cube(64), r.roofline = roofline(r.spec, 1, 1, kCeilings);
  r.time = Sample{0, 0, 0, 5, 1, false};  // below the clock's resolution
  CHECK(!r.rate());
  CHECK(packed().find("\"tflops\":null") != std::string::npos);
  r.time->median = 1e-3;
  CHECK(*r.rate() == doctest::Approx(2.0 * 64 * 64 * 64 / 1e-3));
  CHECK(packed().find("energy") == std::string::npos);
  r.energy = Energy{0.5, 1e-3};
  r.baselines[0].time = r.time, r.baselines[0].energy = Energy{0.625, 1.25e-3};
  const std::string with_energy = packed();
  CHECK(with_energy.find("\"joules\":0.5,") != std::string::npos);
  CHECK(with_energy.find("\"joules\":0.625,") != std::string::npos);
  setenv("COURSE_COMMIT", "0123456789ab-dirty", 1);
  CHECK(packed().find("\"commit\":\"0123456789ab-dirty\"") != std::string::npos);
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
