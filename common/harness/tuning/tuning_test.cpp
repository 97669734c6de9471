#include "common/harness/tuning/tuning.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#ifdef COURSE_ON_INTERPRETER
#include "common/harness/tuning/here.h"
#include "common/interpreter/count/gpus.h"
#endif

using namespace harness;

namespace {

constexpr std::size_t kKiB = 1024;

GpuLimits large_gpu() { return {"large", 132, 2048, 32, 65536, 228 * kKiB, 227 * kKiB, 2e9, 640e12}; }

TileNumbers tile(int m, int n, int k, int warp_m, int warp_n, int stages) {
  return {m,   n, k, warp_m, warp_n, stages, 32 * (m / warp_m) * (n / warp_n), static_cast<std::size_t>((m + n) * k * 2 * stages),
          true};
}
Variant variant(const std::string& name, const TileNumbers& numbers) {
  return {name, numbers.block_m, numbers.block_n, DType::kF16, DType::kF16, nullptr, nullptr, numbers};
}
Spec cube(std::int64_t n) { return {n, n, n, DType::kF16, DType::kF16}; }

struct Folder {
  Folder() { REQUIRE(mkdtemp(path)); }
  ~Folder() { std::filesystem::remove_all(path); }
  char path[32] = "/tmp/tuning_test.XXXXXX";
};

std::vector<std::string> files_in(const char* folder) {
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".tuning") paths.push_back(file.path());
  return paths;
}
// How many tiles are known.
std::size_t tiles_in(const char* folder) {
  std::size_t tiles = 0;
  for (const TunedProblem& problem : TuningCache(folder).problems()) tiles += problem.tiles.size();
  return tiles;
}

TuningKey key() { return {"06_autotune", "0123", cube(512), "large", 132, "580.1"}; }

// Three tiles with invented times, and a record of what was asked.
struct Bench {
  Bench() {
    for (const auto& [name, numbers] : std::map<std::string, TileNumbers>{{"large", tile(128, 128, 64, 64, 64, 3)},
                                                                          {"middle", tile(128, 64, 64, 64, 32, 4)},
                                                                          {"small", tile(64, 64, 64, 32, 32, 4)}})
      add(name, numbers, name == "middle" ? 10e-6 : 12e-6);
    tuner.gpu = large_gpu();
    tuner.resources = [this](const Variant& v) { return resources[v.tile]; };
    tuner.verify = [this](const Variant& v) { return wrong.contains(v.tile) ? std::string("C[0, 0] is 1, expected 2") : ""; };
    tuner.time = [this](const std::vector<const Variant*>& group) {
      std::vector<double> result;
      for (const Variant* v : group) result.push_back(scale * seconds[v->tile]), timed.push_back(v->tile);
      return result;
    };
  }
  void add(const std::string& name, const TileNumbers& numbers, double time) {
    tiles.push_back(std::make_unique<Variant>(variant(name, numbers)));
    seconds[name] = time, resources[name] = {128, 0};
  }
  Tuning run(const TuningKey& k = key()) {
    timed.clear();
    std::vector<const Variant*> variants;
    for (const auto& t : tiles) variants.push_back(t.get());
    TuningCache cache(folder.path);
    Tuning result = tune(variants, k, tuner, cache);
    warnings = cache.warnings();
    return result;
  }
  const Candidate& candidate(const Tuning& t, const std::string& name) const {
    return *std::find_if(t.candidates.begin(), t.candidates.end(), [&](const Candidate& c) { return c.variant->tile == name; });
  }

  Folder folder;
  std::vector<std::unique_ptr<Variant>> tiles;
  std::map<std::string, double> seconds;
  std::map<std::string, KernelResources> resources;
  std::set<std::string> wrong;
  double scale = 1;
  Tuner tuner;
  std::vector<std::string> timed, warnings;
};

}  // namespace

// ------------------------------------------------------------------------------------------------------------ the model

TEST_CASE("requests for rows, as ncu counts them: by where a row begins in a line of 128 bytes") {
  const double by_place[] = {1, 3, 2, 4, 2, 4, 2, 3};
  for (std::uintptr_t place = 0; place < 8; ++place) CHECK(requests_for_rows(1024 + 16 * place, 8192) == by_place[place]);
  CHECK(requests_for_rows(0, 8208) == 21. / 8);
  CHECK(requests_for_rows(0, 8224) == 1.75);
  CHECK(requests_for_rows(0, 8256) == 1.5);
  const Requests of = requests_of({100, 4096, 4104, DType::kF16, DType::kF16});
  CHECK(of.a == 21. / 8);
  CHECK(of.b == 1);
}

TEST_CASE("pruning: each reason, with its numbers") {
  const GpuLimits gpu = large_gpu();
  const TileNumbers plain = tile(128, 128, 64, 64, 64, 3);
  CHECK(why_pruned(plain, {}, cube(512), gpu) == "");
  CHECK(why_pruned(plain, KernelResources{235, 0}, cube(512), gpu) == "");
  SUBCASE("shared memory, at the last byte that fits and one more") {
    TileNumbers t = plain;
    t.shared_bytes = gpu.shared_per_block;
    CHECK(why_pruned(t, {}, cube(512), gpu) == "");
    t.shared_bytes += 1;
    CHECK(why_pruned(t, {}, cube(512), gpu) == "shared memory: a block needs 227 KiB, large gives it at most 227 KiB");
    CHECK(why_pruned(tile(256, 128, 64, 64, 64, 5), {}, cube(512), gpu) ==
          "shared memory: a block needs 240 KiB, large gives it at most 227 KiB");
  }
  SUBCASE("registers: what a tile must need, and what the compiler says") {
    // 64 x 96: 192 accumulators and 80 for two sets of fragments are more than 255 already. 64 x 80 spilled when it was compiled.
    CHECK(why_pruned(tile(128, 192, 64, 64, 96, 2), {}, cube(512), gpu) ==
          "registers: a thread needs about 296, and has at most 255");
    CHECK(why_pruned(tile(128, 160, 64, 64, 80, 2), {}, cube(512), gpu).starts_with("registers"));
    CHECK(why_pruned(plain, KernelResources{128, 20}, cube(512), gpu) ==
          "registers: 20 bytes of a thread did not fit into its 128 and are in local memory");
  }
  SUBCASE("occupancy: 512 threads of 255 registers are more than an SM has") {
    CHECK(why_pruned(tile(256, 128, 64, 64, 32, 2), KernelResources{255, 0}, cube(512), gpu) ==
          "occupancy: an SM of large holds no block of 512 threads and 131072 registers, for lack of registers");
  }
  SUBCASE("layouts that it is not compiled for") {
    TileNumbers t = plain;
    t.every_layout = false;
    Spec spec = cube(512);
    CHECK(why_pruned(t, {}, spec, gpu) == "");
    spec.transpose_b = true;
    CHECK(why_pruned(t, {}, spec, gpu).starts_with("compiled for nn alone, not for nt"));
    CHECK(why_pruned(plain, {}, spec, gpu) == "");
  }
  SUBCASE("rows that are no whole chunks") {
    TileNumbers t = plain;
    t.every_layout = false;
    for (const Spec& spec : {Spec{512, 512, 516, DType::kF16, DType::kF16}, Spec{512, 516, 512, DType::kF16, DType::kF16}}) {
      CHECK(why_pruned(t, {}, spec, gpu).starts_with("compiled for rows of whole 16-byte chunks alone"));
      CHECK(why_pruned(plain, {}, spec, gpu) == "");
    }
    CHECK(why_pruned(t, {}, Spec{516, 512, 512, DType::kF16, DType::kF16}, gpu) == "");
  }
}

TEST_CASE("occupancy: what limits it") {
  const GpuLimits gpu = large_gpu();
  const auto check = [&](const TileNumbers& t, int registers, int blocks, const char* limit) {
    const Occupancy o = occupancy(t, KernelResources{registers, 0}, gpu);
    CHECK(o.blocks == blocks);
    CHECK(o.limit == limit);
  };
  check(tile(128, 128, 64, 64, 64, 3), 235, 2, "registers");      // 65536 / (4 warps x 7680)
  check(tile(128, 128, 64, 64, 64, 4), 128, 1, "shared memory");  // 128 KiB each
  TileNumbers half = tile(128, 128, 64, 64, 64, 3);
  half.shared_bytes = 114 * kKiB;  // of 228, but each block needs one more for the driver
  check(half, 128, 1, "shared memory");
  check(tile(64, 64, 32, 32, 32, 1), 32, 16, "threads");
  check(tile(64, 64, 32, 32, 32, 1), 72, 7, "registers");  // 65536 / (4 warps x 2304)
  check(tile(32, 32, 32, 32, 32, 1), 32, 32, "blocks");
}

#ifdef COURSE_ON_INTERPRETER
TEST_CASE("consumer GPUs: what needs more than 99 KB of shared memory is pruned, the rest is not") {
  const GpuLimits consumer = limits_of(interpreter::find_gpu("4090")), server = limits_of(interpreter::find_gpu("h200"));
  const auto fits = [](const TileNumbers& t, const GpuLimits& gpu) { return why_pruned(t, {}, cube(4096), gpu).empty(); };
  CHECK(fits(tile(128, 128, 64, 64, 64, 3), consumer));        // 96 KiB
  CHECK_FALSE(fits(tile(128, 128, 64, 64, 64, 4), consumer));  // 128 KiB
  CHECK_FALSE(fits(tile(128, 256, 64, 64, 64, 3), consumer));  // 144 KiB
  CHECK(fits(tile(128, 256, 32, 64, 64, 3), consumer));        // 72 KiB
  for (const TileNumbers& t : {tile(128, 128, 64, 64, 64, 4), tile(128, 256, 64, 64, 64, 3)}) CHECK(fits(t, server));
  for (const interpreter::Gpu& gpu : interpreter::gpus()) {
    const GpuLimits limits = limits_of(gpu);
    CHECK(limits.name == gpu.title);
    CHECK(limits.multiprocessors == gpu.multiprocessors);
    CHECK(limits.threads_per_sm == gpu.max_threads_per_sm);
    CHECK(limits.blocks_per_sm == gpu.max_blocks_per_sm);
    CHECK(limits.shared_per_sm == gpu.shared_per_sm);
    CHECK(limits.shared_per_block == gpu.shared_per_block);
    CHECK(limits.clock_hz == gpu.clock_hz);
    CHECK(limits.mma_flops == gpu.mma_flops);
  }
  // The table's own arithmetic agrees: blocks that the SM's threads and shared memory let it hold.
  for (const interpreter::Gpu& gpu : interpreter::gpus())
    for (const TileNumbers& t : {tile(64, 64, 32, 32, 32, 5), tile(128, 128, 64, 64, 64, 3), tile(32, 64, 64, 32, 32, 4)})
      CHECK(occupancy(t, KernelResources{1, 0}, limits_of(gpu)).blocks ==
            interpreter::resident_blocks_per_sm(gpu, t.threads, t.shared_bytes));
}
#endif

#ifdef COURSE_ON_INTERPRETER
TEST_CASE("the model beside what was measured on an H200: wgmma and multiply-adds") {
  const GpuLimits h200 = limits_of(interpreter::find_gpu("h200"));
  const TileNumbers wide{128, 256, 64, 64, 256, 4, 256, 196672, true, Unit::kWgmma},
      square{128, 128, 64, 64, 128, 6, 256, 196704, true, Unit::kWgmma}, large{128, 128, 8, 8, 8, 1, 256, 0, true, Unit::kFma},
      small{64, 64, 8, 4, 4, 1, 256, 0, true, Unit::kFma};
  const auto check = [&](const TileNumbers& t, const char* file, const char* step, const char* tile, std::int64_t size,
                         DType type) {
    INFO(step << " " << tile << " " << size);
    Spec spec = cube(size);
    spec.in = spec.out = type;
    const std::optional<double> rate = measured_rate(std::string("docs/results/h200/") + file, step, tile, spec);
    REQUIRE(rate.has_value());
    const Prediction p = predict(t, spec, h200);
    CHECK(p.seconds * *rate / spec.flops() == doctest::Approx(1).epsilon(0.25));
    CHECK(p.bound < spec.flops() / *rate);
  };
  for (const std::int64_t size : {1024, 2048, 3072, 4096, 8192}) {
    check(wide, "wgmma-f16.json", "10_wgmma", "128x256x64 s4 g8", size, DType::kF16);
    check(square, "wgmma-f16.json", "10_wgmma", "128x128x64 s6 g8", size, DType::kF16);
  }
  check(large, "ladder-f32.json", "02_tiled", "128x128x8, 8x8 per thread", 4096, DType::kF32);
  check(small, "ladder-f32.json", "02_tiled", "64x64x8, 4x4 per thread", 4096, DType::kF32);
}
#endif

// Seconds are far below 1, doctest's default scale: scale(0) compares relatively.
TEST_CASE("the model: bounds that follow from the hardware") {
  const GpuLimits gpu = large_gpu();
  const double peak_seconds = cube(4096).flops() / gpu.mma_flops;
  SUBCASE("nothing is faster than the tensor cores, but for the headroom") {
    for (const TileNumbers& t : {tile(128, 128, 64, 64, 64, 3), tile(64, 64, 64, 32, 32, 4), tile(32, 64, 32, 32, 32, 5)})
      CHECK(predict(t, cube(4096), gpu).bound >= peak_seconds / 1.25);
  }
  SUBCASE("waves: one block more than fits costs a whole round") {
    const TileNumbers t = tile(128, 128, 64, 64, 64, 3);
    const Spec full{128 * 132, 128, 4096, DType::kF16, DType::kF16};
    Spec more = full;
    more.m += 1;
    CHECK(predict(t, full, gpu).waves == doctest::Approx(0.5));  // two blocks an SM
    CHECK(predict(t, more, gpu).bound == doctest::Approx(2 * predict(t, full, gpu).bound).scale(0));
  }
  SUBCASE("a block of two warps keeps half of an SM's schedulers busy") {
    const Spec one_each{64 * 132, 128, 4096, DType::kF16, DType::kF16};
    const double block = 2.0 * 64 * 128 * 4096 / (gpu.mma_flops / 132);
    CHECK(predict(tile(64, 128, 64, 64, 64, 3), one_each, gpu).bound == doctest::Approx(2 * block / 1.25).scale(0));
  }
  SUBCASE("small warp tiles are bound by shared memory: 16 x 16 reads 64 bytes for 512 operations") {
    const TileNumbers t = tile(64, 64, 64, 16, 16, 3);
    const double blocks = std::ceil(64.0 * 64 / 132), k = 4096;
    CHECK(predict(t, cube(4096), gpu).bound == doctest::Approx(blocks * 16 * 32 * k * 2 / 128 / gpu.clock_hz).scale(0));
  }
  SUBCASE("tiles of few rows are bound by what comes from L2: 64 bytes per clock and SM") {
    const TileNumbers t = tile(16, 32, 256, 16, 16, 4);
    const Spec wide{16, 32 * 132, 4096, DType::kF16, DType::kF16};
    CHECK(predict(t, wide, gpu).bound == doctest::Approx((16 + 32) * 4096 * 2 / 64. / gpu.clock_hz).scale(0));
  }
  SUBCASE("blocks that share a tile are more blocks, each with a part of k") {
    TileNumbers shared = tile(16, 32, 256, 16, 16, 4);
    const Spec few{16, 32 * 33, 4096, DType::kF16, DType::kF16};
    const Prediction alone = predict(shared, few, gpu);
    shared.splits = 4;
    CHECK(predict(shared, few, gpu).waves == doctest::Approx(4 * alone.waves).scale(0));
    CHECK(predict(shared, few, gpu).bound == doctest::Approx(alone.bound / 4).scale(0));
    CHECK(predict(shared, few, gpu).seconds < alone.seconds);
    const Spec wide{16, 32 * 132, 4096, DType::kF16, DType::kF16};  // every SM has a tile: no more to gain
    CHECK(predict(shared, wide, gpu).bound == doctest::Approx(alone.bound).scale(0));
  }
  SUBCASE("k counts in whole tiles, and in the type of A and B") {
    const TileNumbers t = tile(128, 128, 64, 64, 64, 3);
    Spec ragged{4096, 4096, 4104, DType::kF16, DType::kF16}, whole{4096, 4096, 4160, DType::kF16, DType::kF16};
    CHECK(predict(t, ragged, gpu).bound == predict(t, whole, gpu).bound);
    for (const TileNumbers& each : {t, tile(16, 32, 256, 16, 16, 4)}) {
      Spec wider = whole;
      wider.out = DType::kF32;
      CHECK(predict(each, wider, gpu).seconds == predict(each, whole, gpu).seconds);
    }
  }
  SUBCASE("a round of blocks has a beginning and an end; a short ring waits for L2") {
    const TileNumbers t = tile(128, 128, 64, 64, 64, 4);  // one block an SM
    CHECK(predict(t, {1, 1, 1, DType::kF16, DType::kF16}, gpu).seconds >= 2500 / gpu.clock_hz);
    const Spec once{128 * 132, 128, 64 * 16, DType::kF16, DType::kF16},
        twice{2 * 128 * 132, 128, 64 * 16, DType::kF16, DType::kF16};
    CHECK(predict(t, twice, gpu).seconds == doctest::Approx(2 * predict(t, once, gpu).seconds).scale(0));
    // 48 rows and columns, one stage on its way: 800 clocks for each.
    const TileNumbers few = tile(16, 32, 64, 16, 16, 2);
    const Spec decode{16, 32 * 132, 4096, DType::kF16, DType::kF16};
    CHECK(predict(few, decode, gpu).seconds == doctest::Approx((64 * 800 + 2500) / gpu.clock_hz).scale(0));
  }
  SUBCASE("a ring that is longer than k is filled with zeros") {
    const Spec shallow{64, 64, 128, DType::kF16, DType::kF16};
    const double three = predict(tile(64, 64, 64, 32, 32, 3), shallow, gpu).seconds,
                 five = predict(tile(64, 64, 64, 32, 32, 5), shallow, gpu).seconds;
    CHECK(five - three == doctest::Approx(2 * 128 * 64 * 2 / 128 / gpu.clock_hz).scale(0));
  }
  SUBCASE("multiply-adds and their reads of shared memory are added, and wgmma's are not") {
    GpuLimits all = gpu;
    all.fma_flops = 132 * 256 * all.clock_hz, all.wgmma_flops = 132 * 2700 * all.clock_hz;
    const Spec one_each{128, 128 * 132, 4096, DType::kF32, DType::kF32};
    TileNumbers t{128, 128, 8, 8, 8, 1, 256, 0, true, Unit::kFma};
    const double products = 2.0 * 128 * 128 * 4096 / 256, reads = 256 * 16 * 3. * 4096 / 128;
    CHECK(predict(t, one_each, all).seconds == doctest::Approx((products + reads + 2500) / all.clock_hz).scale(0));
    const Spec hopper{128, 256 * 132, 4096, DType::kF16, DType::kF16};
    t = {128, 256, 64, 64, 256, 4, 256, 196672, true, Unit::kWgmma};
    CHECK(predict(t, hopper, all).seconds == doctest::Approx((2.0 * 128 * 256 * 4096 / 2700 + 4800) / all.clock_hz).scale(0));
    Spec twice = hopper;
    twice.n *= 2;
    CHECK(predict(t, twice, all).seconds == doctest::Approx(2 * predict(t, hopper, all).seconds).scale(0));
  }
  SUBCASE("small problems want small tiles, large ones large tiles") {
    const TileNumbers large = tile(128, 128, 64, 64, 64, 3), small = tile(32, 64, 64, 32, 32, 5);
    CHECK(predict(small, cube(256), gpu).seconds < predict(large, cube(256), gpu).seconds);
    CHECK(predict(large, cube(4096), gpu).seconds < predict(small, cube(4096), gpu).seconds);
  }
}

// How good the constants are, library_test.cpp says; here what must hold whatever they are.
TEST_CASE("the model: kernels that copy by boxes") {
  GpuLimits gpu = large_gpu();
  gpu.wgmma_flops = 132 * 2700 * gpu.clock_hz, gpu.l2_bytes = 60 << 20;
  TileNumbers t{128, 256, 64, 64, 256, 4, 384, 196672, true, Unit::kWgmma};
  t.stays = true;
  const Requests lines{1, 1}, straddling{21. / 8, 21. / 8};
  const auto seconds = [&](const TileNumbers& tile, const Spec& spec, const Requests& r) {
    return predict(tile, spec, gpu, r).seconds;
  };
  const auto problem = [](std::int64_t m, std::int64_t n, std::int64_t k) { return Spec{m, n, k, DType::kF16, DType::kF16}; };
  const Spec row = problem(128, 256 * 132, 1024);  // a tile for each SM
  SUBCASE("one tile more than SMs is one more round of products") {
    const double products = 2.0 * 128 * 256 * 1024 / 2700 / gpu.clock_hz / 1.25;
    CHECK(seconds(t, problem(128, 256 * 133, 1024), lines) > seconds(t, row, lines) + products);
    CHECK(seconds(t, problem(128, 256 * 140, 1024), lines) < seconds(t, row, lines) + 2 * products);
  }
  SUBCASE("rows that straddle lines: few SMs ask L2 for them at once, many wait for each other") {
    const Spec few = problem(128, 256 * 20, 1024);
    const double slower_alone = seconds(t, few, straddling) / seconds(t, few, lines);
    const double slower_together = seconds(t, row, straddling) / seconds(t, row, lines);
    CHECK(slower_alone >= 1);
    CHECK(slower_together > 1.2 * slower_alone);
  }
  SUBCASE("two blocks that share a tile of B ask for it once") {
    TileNumbers pair = t;
    pair.sharing_b = 2;
    const Spec rows = problem(256, 256 * 66, 4096);
    CHECK(seconds(pair, rows, straddling) < seconds(t, rows, straddling));
  }
  SUBCASE("a tile that begins where no line does straddles lines, but along k") {
    TileNumbers odd = t;
    odd.block_n = odd.warp_n = 168;
    Spec spec = problem(128, 168 * 132, 1024), along_k = spec;
    along_k.transpose_b = true;
    CHECK(seconds(odd, spec, lines) > seconds(odd, along_k, lines));
    CHECK(seconds(t, row, lines) == doctest::Approx(seconds(
                                                        t,
                                                        [&] {
                                                          Spec transposed = row;
                                                          transposed.transpose_b = true;
                                                          return transposed;
                                                        }(),
                                                        lines))
                                        .scale(0));
  }
  SUBCASE("narrow tiles spare products where all wide ones would be too many") {
    TileNumbers two_widths = t;
    two_widths.narrow_n = 240;
    const Spec nine_each = problem(17 * 128, 1984, 2048);  // 17 rows of 8 wide tiles take two rounds, and so do 17 of 9 narrow ones
    CHECK(seconds(two_widths, nine_each, lines) < seconds(t, nine_each, lines));
  }
  SUBCASE("A and B may change places, and the tile with them") {
    TileNumbers swapped = t;  // a warpgroup has 64 columns of all rows
    swapped.block_m = swapped.warp_m = 160, swapped.block_n = 128, swapped.warp_n = 64;
    Spec tall = problem(160 * 132, 128, 1024);
    TileNumbers plain = t;
    plain.block_n = plain.warp_n = 160;
    Spec wide = problem(128, 160 * 132, 1024);
    tall.transpose_b = wide.transpose_b = true;  // both along k
    // Only what a tile's end takes differs.
    CHECK(seconds(swapped, tall, straddling) == doctest::Approx(seconds(plain, wide, straddling)).epsilon(0.1).scale(0));
  }
  SUBCASE("idle SMs hide where the next launch begins") {
    const double half = seconds(t, problem(128, 256 * 66, 64), lines), more = seconds(t, problem(128, 256 * 67, 64), lines);
    CHECK(more > half + 300 / gpu.clock_hz);
  }
  SUBCASE("blocks of a cluster that split k: a part of it each, and an exchange") {
    TileNumbers split{64, 64, 64, 64, 64, 7, 160, 115000, true, Unit::kWgmma};
    split.clusters = true;
    TileNumbers in_two = split;
    in_two.splits = 2;
    const Spec deep = problem(64, 64 * 20, 8192), flat = problem(64, 64 * 20, 64);
    CHECK(seconds(in_two, deep, lines) < 0.75 * seconds(split, deep, lines));
    CHECK(seconds(in_two, flat, lines) > seconds(split, flat, lines));
    // 64 rows that the matrix does not have are written as zeros, where A has more rows than a tile.
    CHECK(seconds(split, problem(66, 64 * 20, 8192), lines) > 1.2 * seconds(split, problem(128, 64 * 20, 8192), lines));
  }
  SUBCASE("what does not fit into L2 comes from DRAM") {
    const Spec fits = problem(64, 64 * 66, 2048), large = problem(64, 64 * 132 * 4, 8192);
    TileNumbers small{64, 64, 64, 64, 64, 8, 384, 150000, true, Unit::kWgmma};
    small.stays = true;
    GpuLimits larger = gpu;
    larger.l2_bytes *= 100;
    CHECK(predict(small, large, larger).seconds < predict(small, large, gpu).seconds);
    CHECK(predict(small, fits, larger).seconds == doctest::Approx(predict(small, fits, gpu).seconds).epsilon(0.01).scale(0));
  }
}

// ------------------------------------------------------------------------------------------------------------ the cache

TEST_CASE("the cache: what is stored is found, under its key alone") {
  const Folder folder;
  TuningCache cache(folder.path);
  CHECK(cache.find(key()).empty());
  cache.store(key(), {{"a", {1.25e-5, ""}}, {"b", {1, ""}}});
  cache.store(key(), {{"b", {0, "registers: too many"}}});
  std::map<std::string, TuningEntry> tiles = cache.find(key());
  CHECK(tiles.size() == 2);
  CHECK(tiles["a"].seconds == 1.25e-5);
  CHECK(tiles["a"].pruned == "");
  CHECK(tiles["b"].pruned == "registers: too many");
  const auto other = [&](auto&& change) {
    TuningKey k = key();
    change(k);
    return cache.find(k).empty();
  };
  CHECK(other([](TuningKey& k) { k.step = "07_x"; }));
  CHECK(other([](TuningKey& k) { k.kernel_version = "4567"; }));
  CHECK(other([](TuningKey& k) { k.spec.m = 513; }));
  CHECK(other([](TuningKey& k) { k.spec.n = 513; }));
  CHECK(other([](TuningKey& k) { k.spec.k = 513; }));
  CHECK(other([](TuningKey& k) { k.spec.in = DType::kBF16; }));
  CHECK(other([](TuningKey& k) { k.spec.out = DType::kF32; }));
  CHECK(other([](TuningKey& k) { k.spec.transpose_a = true; }));
  CHECK(other([](TuningKey& k) { k.spec.transpose_b = true; }));
  CHECK(other([](TuningKey& k) { k.spec.epilogue.activation = kActivation<gemm::LeakyRelu>; }));
  CHECK(other([](TuningKey& k) { k.spec.epilogue.bias = true; }));
  CHECK(other([](TuningKey& k) { k.gpu = "other"; }));
  CHECK(other([](TuningKey& k) { k.multiprocessors = 114; }));
  CHECK(other([](TuningKey& k) { k.driver = "590.1"; }));
  TuningKey fused = key();
  fused.spec.epilogue = {kActivation<gemm::GeluTanh>, true};
  cache.store(fused, {{"fused", {1, ""}}});
  for (const TunedProblem& problem : cache.problems())
    CHECK(problem.key.spec.epilogue == (problem.tiles.contains("fused") ? fused.spec.epilogue : Epilogue{}));
  CHECK(cache.problems().size() == 2);
  CHECK(cache.warnings().empty());
}

TEST_CASE("the cache: a key comes back as it was, whatever is in it") {
  for (const bool transpose_a : {false, true}) {
    const Folder folder;
    TuningCache cache(folder.path);
    TuningKey k = key();
    k.spec = {256, 512, 128, DType::kF16, DType::kF32, transpose_a, !transpose_a};
    k.spec.epilogue = {kActivation<gemm::GeluTanh>, true};
    cache.store(k, {{"a", {1.5, ""}}});
    CHECK(cache.find(k).at("a").seconds == 1.5);
    const std::vector<TunedProblem> problems = cache.problems();
    REQUIRE(problems.size() == 1);
    const TuningKey& back = problems[0].key;
    CHECK(back.spec.m == 256);
    CHECK(back.spec.n == 512);
    CHECK(back.spec.k == 128);
    CHECK(back.spec.in == DType::kF16);
    CHECK(back.spec.out == DType::kF32);
    CHECK(back.spec.transpose_a == transpose_a);
    CHECK(back.spec.transpose_b == !transpose_a);
    CHECK(back.spec.epilogue == k.spec.epilogue);
    CHECK(back.step == k.step);
    CHECK(back.kernel_version == k.kernel_version);
    CHECK(back.gpu == k.gpu);
    CHECK(back.multiprocessors == k.multiprocessors);
    CHECK(back.driver == k.driver);
    CHECK(cache.warnings().empty());
  }
}

TEST_CASE("the cache: a file in another's place is none") {
  const Folder folder;
  TuningCache cache(folder.path);
  TuningKey other = key();
  other.spec.m = 513;
  cache.store(key(), {{"a", {1, ""}}});
  const std::string path = files_in(folder.path).at(0);
  cache.store(other, {{"a", {2, ""}}});
  for (const std::string& each : files_in(folder.path))
    if (each != path) std::filesystem::copy_file(path, each, std::filesystem::copy_options::overwrite_existing);
  CHECK_FALSE(cache.find(key()).empty());
  CHECK(cache.find(other).empty());
  CHECK(cache.warnings().size() == 1);
}

TEST_CASE("the cache: a damaged file hides no other one, and is replaced") {
  const Folder folder;
  TuningCache cache(folder.path);
  TuningKey other = key();
  other.spec.m = 513;
  cache.store(key(), {{"a", {1, ""}}});
  std::ofstream(files_in(folder.path).at(0)) << "{";
  cache.store(other, {{"b", {2, ""}}});
  REQUIRE(cache.problems().size() == 1);
  CHECK(cache.problems()[0].tiles.contains("b"));
  CHECK(cache.warnings().size() == 1);
  cache.store(key(), {{"c", {3, ""}}});
  CHECK(cache.problems().size() == 2);
  CHECK(cache.find(key()).size() == 1);
}

TEST_CASE("the cache: names that are no text stop nobody") {
  const Folder folder;
  TuningCache cache(folder.path);
  TuningKey k = key();
  k.gpu = "\xff";
  cache.store(k, {{"a", {1, ""}}});
  CHECK(cache.find(k).contains("a"));
}

TEST_CASE("the cache: names that look alike, or are no names of files") {
  const Folder folder;
  TuningCache cache(folder.path);
  std::map<std::string, TuningEntry> tiles;
  for (const std::string& tile : {std::string("a b"), std::string("a-b"), std::string("a/b"), std::string("../a"), std::string(),
                                  std::string(300, 'x'), std::string(301, 'x')})
    tiles[tile] = {1.0 + static_cast<double>(tiles.size()), ""};
  for (const char* const step : {"a b", "a/b", "../a", ""}) {
    TuningKey k = key();
    k.step = step;
    cache.store(k, tiles);
    const std::map<std::string, TuningEntry> found = cache.find(k);
    CHECK(found.size() == tiles.size());
    for (const auto& [tile, entry] : tiles) CHECK(found.at(tile).seconds == entry.seconds);
  }
  CHECK(files_in(folder.path).size() == 4);
  for (const char* const odd : {"\xff", "a\tb\n", "\"", "\\"}) {  // what is no text, or has what separates names
    cache.store(key(), {{odd, {1, ""}}, {"a b", {0, odd}}});
    CHECK(cache.find(key()).contains(odd));
    CHECK(cache.find(key()).at("a b").pruned == odd);
  }
}

TEST_CASE("the cache: what is not a time is no time") {
  const Folder folder;
  for (const double seconds : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    TuningCache cache(folder.path);
    cache.store(key(), {{"a", {seconds, ""}}, {"b", {1, ""}}});
    CHECK_FALSE(cache.find(key()).contains("a"));
    CHECK(cache.find(key()).contains("b"));
    CHECK(cache.warnings().size() == 1);
  }
}

TEST_CASE("the cache: every byte of a file counts") {
  const Folder folder;
  TuningCache(folder.path).store(key(), {{"a", {1.25e-5, ""}}, {"b", {0, "no"}}});
  const std::string path = files_in(folder.path).at(0);
  std::ostringstream sound;
  sound << std::ifstream(path).rdbuf();
  const std::string text = sound.str();
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(path) << damaged;
    TuningCache cache(folder.path);
    CHECK(cache.find(key()).empty());
    std::ofstream(path) << text.substr(0, i);
    CHECK(cache.find(key()).empty());
    CHECK(cache.warnings().size() == 1);  // once for both
  }
}

TEST_CASE("the cache: clearing removes what is the cache's, and nothing else") {
  const Folder folder;
  const std::filesystem::path here = folder.path;
  TuningCache cache(folder.path);
  TuningKey other = key();
  other.spec.m = 513;
  cache.store(key(), {{"a", {1, ""}}});
  cache.store(other, {{"a", {2, ""}}, {"b", {2, ""}}});
  std::ofstream(files_in(folder.path).at(0) + ".12.new") << "unfinished";
  std::ofstream(here / "06-0123456789abcdef.json") << "of an earlier version";
  // By our suffixes, or nearly by our names.
  const std::vector<const char*> theirs = {"notes.txt",
                                           "train.tuning",
                                           "config.new",
                                           "a-0123456789abcde.tuning",
                                           "a-0123456789abcdeg.tuning",
                                           "a-0123456789abcdef.txt",
                                           "a-0123456789abcdef.tuning.mine.new",
                                           "photos/b-0123456789abcdef.tuning"};
  std::filesystem::create_directories(here / "photos");
  for (const char* name : theirs) std::ofstream(here / name) << "keep";
  CHECK(cache.problems().size() == 2);
  CHECK(cache.clear() == 2);
  CHECK(cache.problems().empty());
  for (const char* name : theirs) CHECK(std::filesystem::exists(here / name));
  std::size_t files = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(here)) files += file.is_regular_file();
  CHECK(files == theirs.size());
}

TEST_CASE("the cache: a folder that cannot be read is not an empty one") {
  const Folder folder;
  TuningCache missing(std::string(folder.path) + "/none");
  CHECK(missing.problems().empty());
  CHECK(missing.warnings().empty());
  const std::string file = std::string(folder.path) + "/file";
  std::ofstream(file) << "no folder";
  TuningCache cache(file);
  CHECK(cache.problems().empty());
  REQUIRE(cache.warnings().size() == 1);
  CHECK(cache.warnings()[0] == "cannot read the tuning results in " + file + ": Not a directory");
}

TEST_CASE("the cache: what killed processes left behind is removed after a while") {
  const Folder folder;
  TuningCache cache(folder.path);
  cache.store(key(), {{"a", {1, ""}}});
  const std::string fresh = files_in(folder.path).at(0) + ".1.new", old = files_in(folder.path).at(0) + ".2.new";
  std::ofstream{fresh}, std::ofstream{old};
  for (const std::string& file : {old, files_in(folder.path).at(0)})
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  cache.store(key(), {{"b", {1, ""}}});
  CHECK(cache.find(key()).contains("a"));  // however old it is
  CHECK(std::filesystem::exists(fresh));   // somebody may be writing it
  CHECK_FALSE(std::filesystem::exists(old));
}

TEST_CASE("the cache: where it is") {
  const auto with = [](const char* own, const char* xdg, const char* home) {
    for (const auto& [name, value] : {std::pair{"COURSE_TUNING_CACHE", own}, {"XDG_CACHE_HOME", xdg}, {"HOME", home}})
      value ? setenv(name, value, 1) : unsetenv(name);
    return TuningCache::default_folder();
  };
  CHECK(with("/own", "/xdg", "/home/me") == "/own");
  CHECK(with("", "/xdg", "/home/me") == "/xdg/gemm-course/tuning");
  CHECK(with(nullptr, "relative", "/home/me") == "/home/me/.cache/gemm-course/tuning");  // as the XDG specification demands
  CHECK(with(nullptr, nullptr, nullptr) == "");
  TuningCache nowhere("");
  nowhere.store(key(), {{"a", {1, ""}}});
  CHECK(nowhere.find(key()).empty());
  CHECK(nowhere.warnings().size() == 1);
}

TEST_CASE("the cache: waiting for the lock ends") {
  const Folder folder;
  TuningCache first(folder.path), second(folder.path);
  using Clock = std::chrono::steady_clock;
  {
    const TuningCache::Lock held = first.lock();
    const auto begin = Clock::now();
    const TuningCache::Lock not_held = second.lock(std::chrono::milliseconds(100));
    CHECK(Clock::now() - begin >= std::chrono::milliseconds(100));
    CHECK(second.warnings().size() == 1);
  }
  TuningCache third(folder.path);
  const TuningCache::Lock now = third.lock(std::chrono::milliseconds(0));
  CHECK(third.warnings().empty());
}

// ------------------------------------------------------------------------------------------------------------ tuning

TEST_CASE("tuning: the fastest is the best, and the second time nothing is timed") {
  Bench bench;
  Tuning t = bench.run();
  REQUIRE(t.best());
  CHECK(t.best()->tile == "middle");
  CHECK_FALSE(t.by_model);
  CHECK(bench.timed.size() == 3);
  t = bench.run();
  CHECK(t.best()->tile == "middle");
  CHECK(bench.timed.empty());
  CHECK(bench.candidate(t, "large").fate == Candidate::Fate::kKept);
}

TEST_CASE("tuning: other keys are tuned for themselves") {
  Bench bench;
  bench.run();
  TuningKey k = key();
  k.driver = "590.1";
  bench.seconds["small"] = 5e-6;
  CHECK(bench.run(k).best()->tile == "small");
  CHECK(bench.run().best()->tile == "middle");
}

TEST_CASE("tuning: a new candidate is timed beside the best, on a GPU that is slower today") {
  Bench bench;
  bench.run();
  bench.scale = 3;
  bench.add("new", tile(64, 128, 64, 32, 64, 4), 9e-6);
  Tuning t = bench.run();
  CHECK(t.best()->tile == "new");
  CHECK(bench.timed == std::vector<std::string>{"new", "middle"});
  CHECK(bench.candidate(t, "new").seconds == doctest::Approx(9e-6).scale(0));  // as if it had been there the first time
}

TEST_CASE("tuning: what the compiler's figures forbid is pruned, once and for all") {
  Bench bench;
  bench.resources["middle"] = {255, 8};
  Tuning t = bench.run();
  CHECK(t.best()->tile != "middle");
  CHECK(bench.candidate(t, "middle").fate == Candidate::Fate::kPruned);
  bench.tuner.resources = [](const Variant&) -> KernelResources { throw std::logic_error("asked again"); };
  t = bench.run();
  CHECK(bench.candidate(t, "middle").reason.find("8 bytes") != std::string::npos);
}

TEST_CASE("tuning: a tile whose launcher refuses the problem is pruned with its reason; without any other, there is no best") {
  Bench bench;
  bench.tuner.resources = [](const Variant& v) -> KernelResources {
    if (v.tile != "small") throw gemm::Refused("rows are not aligned");
    return {128, 0};
  };
  Tuning t = bench.run();
  CHECK(t.best()->tile == "small");
  CHECK(bench.candidate(t, "middle").fate == Candidate::Fate::kPruned);
  CHECK(bench.candidate(t, "middle").reason == "rows are not aligned");
  bench.tuner.resources = [](const Variant&) -> KernelResources { throw gemm::Refused("rows are not aligned"); };
  TuningKey k = key();
  k.spec.n = 511;
  t = bench.run(k);
  CHECK_FALSE(t.best());
  CHECK(bench.timed == std::vector<std::string>{});
}

TEST_CASE("tuning: a tile without numbers is timed like the others, and never left out") {
  Bench bench;
  bench.add("unknown", TileNumbers{.block_m = 128, .block_n = 256}, 9e-6);  // a peer's tile says no more
  bench.resources["unknown"] = {255, 16};                                   // its author's business
  const Tuning t = bench.run();
  CHECK(t.best()->tile == "unknown");
  CHECK(bench.timed.size() == 4);
  CHECK(t.tiles().front().bound == 0);
  CHECK(to_text(t, cube(512)).find("model: 0 ms") == std::string::npos);
}

TEST_CASE("tuning: a wrong result neither wins nor is kept") {
  Bench bench;
  bench.wrong = {"middle"};
  Tuning t = bench.run();
  CHECK(t.best()->tile == "large");
  CHECK(bench.candidate(t, "middle").fate == Candidate::Fate::kWrong);
  CHECK(std::count(bench.timed.begin(), bench.timed.end(), "middle") == 0);
  bench.wrong = {};
  CHECK(bench.run().best()->tile == "middle");
}

TEST_CASE("tuning: only what cannot win is left out") {
  Bench bench;
  // Ten tiles are two groups. Last comes the one whose blocks are one more than SMs, so that all but one of these wait.
  for (int i = 0; i < 6; ++i) bench.add("more " + std::to_string(i), tile(64, 64, 64, 32, 32, 3), 11e-6);
  bench.add("hopeless", tile(256, 128, 64, 64, 64, 3), 0);
  TuningKey k = key();
  k.spec.m = 256 * 133, k.spec.n = 128, k.spec.k = 4096;
  constexpr double kSeconds = 70e-6;
  for (auto& [name, seconds] : bench.seconds) seconds = kSeconds;
  const Tuning t = bench.run(k);
  for (const Candidate& c : t.candidates) {
    INFO(c.variant->tile);
    if (c.fate == Candidate::Fate::kSkipped)
      CHECK(c.prediction.bound > kSeconds);
    else
      CHECK(c.fate == Candidate::Fate::kTimed);
  }
  CHECK(bench.candidate(t, "hopeless").fate == Candidate::Fate::kSkipped);
  const std::size_t timed = bench.timed.size();
  CHECK(bench.run(k).best() != nullptr);
  CHECK(bench.timed.empty());  // what was left out is left out again
  CHECK(timed >= 8);
}

TEST_CASE("tuning: in the order of what the model expects, and what it expects leaves nothing out") {
  Bench bench;
  for (int i = 0; i < 6; ++i) bench.add("more " + std::to_string(i), tile(64, 64, 64, 32, 32, 3), 0);
  bench.add("slowest", tile(32, 32, 32, 16, 16, 3), 0);
  bench.add("fastest", tile(128, 128, 64, 64, 32, 3), 0);
  const auto prediction = [&](const std::string& name) {
    const auto found = std::find_if(bench.tiles.begin(), bench.tiles.end(), [&](const auto& v) { return v->tile == name; });
    return predict((*found)->numbers, key().spec, bench.tuner.gpu);
  };
  // Between what the last tile takes at least and what is expected of it.
  const double between = (prediction("slowest").bound + prediction("slowest").seconds) / 2;
  for (auto& [name, seconds] : bench.seconds) seconds = between;
  const Tuning t = bench.run();
  REQUIRE(t.candidates.size() > 9);
  std::vector<double> expected;
  std::set<std::string> seen;
  for (const std::string& name : bench.timed)
    if (seen.insert(name).second) expected.push_back(prediction(name).seconds);
  CHECK(std::is_sorted(expected.begin(), expected.end()));
  CHECK(expected.back() == prediction("slowest").seconds);
  CHECK(expected.back() > between);

  // One that comes later, when times are known, is not left out for what is expected of it either.
  Bench later;
  later.add("fastest", tile(128, 128, 64, 64, 32, 3), 0);
  for (auto& [name, seconds] : later.seconds) seconds = between;
  later.run();
  later.add("slowest", tile(32, 32, 32, 16, 16, 3), between);
  CHECK(later.candidate(later.run(), "slowest").fate == Candidate::Fate::kTimed);
}

TEST_CASE("tuning: an error is no reason to prune") {
  Bench bench;
  bench.tuner.resources = [](const Variant&) -> KernelResources { throw std::runtime_error("the GPU is gone"); };
  CHECK_THROWS_AS(bench.run(), std::runtime_error);
  CHECK(files_in(bench.folder.path).empty());
}

TEST_CASE("tuning: what is told of each candidate, and in which order") {
  Bench bench;
  bench.wrong = {"middle"};
  bench.resources["small"] = {255, 8};
  const Tuning t = bench.run();
  REQUIRE(t.candidates.size() == 3);
  const std::vector<TunedTile> told = t.tiles();
  REQUIRE(told.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Candidate& c = t.candidates[i];
    INFO(c.variant->tile);
    CHECK(told[i].tile == c.variant->tile);
    CHECK(told[i].bound == c.prediction.bound);
    CHECK(told[i].model == c.prediction.seconds);
    CHECK(c.prediction.bound < c.prediction.seconds);
    CHECK(told[i].pruned.empty() == (c.fate != Candidate::Fate::kPruned));
  }
  CHECK(told[0].tile == "large");
}

TEST_CASE("tuning: the model alone chooses where nothing can be timed, and says so") {
  Bench bench;
  bench.tuner.time = nullptr, bench.tuner.resources = nullptr, bench.tuner.verify = nullptr;
  const Tuning t = bench.run();
  CHECK(t.by_model);
  REQUIRE(t.best());
  for (const Candidate& c : t.candidates) CHECK(c.prediction.seconds >= t.candidates.front().prediction.seconds);
  CHECK(files_in(bench.folder.path).empty());
  CHECK(to_text(t, cube(512)).find("not timed; the model") != std::string::npos);
}

TEST_CASE("tuning: nothing that could run") {
  Bench bench;
  bench.tuner.gpu.shared_per_block = 1;
  const Tuning t = bench.run();
  CHECK(t.best() == nullptr);
  CHECK(bench.timed.empty());
  CHECK(to_text(t, cube(512)).find("pruned: shared memory: a block needs 96.0 KiB") != std::string::npos);
}

TEST_CASE("tuning: a timer that fails loses nothing that was found before") {
  Bench bench;
  for (int i = 0; i < 8; ++i) bench.add("more " + std::to_string(i), tile(64, 64, 64, 32, 32, 3), 11e-6);
  const auto time = bench.tuner.time;
  int calls = 0;
  bench.tuner.time = [&](const std::vector<const Variant*>& group) {
    if (++calls == 2) throw std::runtime_error("the GPU is gone");
    return time(group);
  };
  CHECK_THROWS_AS(bench.run(), std::runtime_error);
  CHECK(tiles_in(bench.folder.path) == 8);
  CHECK(bench.run().best()->tile == "middle");
}

TEST_CASE("tuning: reading 24 tiles takes less than 5 ms") {
  Bench bench;
  for (int i = 0; i < 21; ++i) bench.add("more " + std::to_string(i), tile(64, 64, 64, 32, 32, 3), 11e-6);
  bench.run();
  double shortest = 1;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    bench.run();
    shortest = std::min(shortest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  CHECK(bench.timed.empty());
  MESSAGE("24 tiles known from earlier: " << 1e3 * shortest << " ms");
  CHECK(shortest < 5e-3);
}

TEST_CASE("what --show shows") {
  CHECK(to_text(std::vector<TunedProblem>()) == "  nothing so far\n");
  Bench bench;
  bench.resources["small"] = {255, 8};
  bench.run();
  TuningCache cache(bench.folder.path);
  const std::string text = to_text(cache.problems());
  CHECK(text.find("06_autotune 512x512x512 f16 -> f16 nn identity, large, driver 580.1, kernel 0123\n") == 0);
  CHECK(text.find("middle: 0.01 ms, 26.8 TFLOP/s; of 3 tiles, 1 pruned\n") != std::string::npos);
}
