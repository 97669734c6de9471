// Prints as JSON what the figures of the lessons show, from the steps' own functions; tools/figures draws it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/interpreter/count/gpus.h"
#include "steps/03_tensor_core/gemm.cuh"
#include "steps/04_pipelined_num_stages/gemm.cuh"
#include "steps/05_l2_swizzle/gemm.cuh"

namespace {

// --- JSON ---

std::string json(std::int64_t number) { return std::to_string(number); }
std::string json(const char* text) { return '"' + std::string(text) + '"'; }
std::string joined(const std::vector<std::string>& parts, const char* brackets) {
  std::string all(1, brackets[0]);
  for (std::size_t i = 0; i < parts.size(); ++i) all += (i ? ", " : "") + parts[i];
  return all + brackets[1];
}
std::string list(const std::vector<std::string>& parts) { return joined(parts, "[]"); }
std::string object(const std::vector<std::string>& members) { return joined(members, "{}"); }
template <class T>
std::string member(const char* name, const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return json(name) + ": " + value;
  else
    return json(name) + ": " + json(value);
}

// --- 01: the memories, from the fast small ones to the large slow one ---

// Bytes per clock and SM: a pass through L1 or the banks, and what the L2 cache gives one SM
// (common/harness/tuning/tuning_model.cpp).
constexpr double kPassBytes = 128, kL2BytesPerClock = 64;
constexpr std::int64_t kRegisters = 65536;  // of 4 bytes, in each SM from compute capability 5.0 on

std::string memory() {
  const interpreter::Gpu& gpu = interpreter::find_gpu("h200");
  const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
  const double clocks_of_all = gpu.multiprocessors * gpu.clock_hz;
  const std::string title(gpu.title);
  return object({member("gpu", json(title.c_str())), member("multiprocessors", gpu.multiprocessors),
                 member("register_bytes", kRegisters * 4), member("l1_bytes", whole(static_cast<double>(gpu.l1_per_sm))),
                 member("shared_bytes", whole(static_cast<double>(gpu.shared_per_sm))),
                 member("l2_bytes", whole(static_cast<double>(gpu.l2_bytes))),
                 member("dram_bytes", whole(static_cast<double>(gpu.dram_bytes))),
                 member("l1_bytes_per_second", whole(kPassBytes * clocks_of_all)),
                 member("l2_bytes_per_second", whole(kL2BytesPerClock * clocks_of_all)),
                 member("dram_bytes_per_second", whole(gpu.dram_bytes_per_second))});
}

// --- 03: from the grid to a fragment, and who copies what ---

template <class Tile>
std::string levels(std::int64_t extent) {
  return object({member("extent", extent), member("block_m", Tile::kBlockM), member("block_n", Tile::kBlockN),
                 member("warp_m", Tile::kWarpM), member("warp_n", Tile::kWarpN), member("fragment", ::device::kFragment),
                 member("mma_n", 8)});
}

// A tile of A, row-major: the thread that copies each chunk, and the place in shared memory where it goes.
template <class Tile>
std::string copies() {
  using Layout = device::TileLayout<device::Operand::kA, device::Contiguous::kK, Tile::kBlockM, Tile::kBlockK>;
  using Source = device::TileSource<Layout, Tile::kThreads, __half>;
  std::vector<std::string> rows;
  for (int row = 0; row < Source::kRows; ++row) {
    std::vector<std::string> chunks;
    for (int chunk = 0; chunk < Source::kRowChunks; ++chunk) {
      const int place = step_03_tensor_core::swizzled<Source::kRow>(row, chunk) / 8 % Source::kRowChunks;
      chunks.push_back(list({json(row % Source::kStep * Source::kRowChunks + chunk), json(place)}));
    }
    rows.push_back(list(chunks));
  }
  return object({member("rows", Source::kRows), member("chunks", Source::kRowChunks), member("step", Source::kStep),
                 member("threads", Tile::kThreads), member("table", list(rows))});
}

// --- 03: which places of shared memory ldmatrix reads ---

// Places of the chunks of eight rows, in elements, and per chunk in how many wavefronts eight lanes read it from the eight rows.
template <class PlaceOf>
std::string chunk_places(int chunks, const PlaceOf& place_of) {
  std::vector<std::string> places, wavefronts;
  for (int row = 0; row < 8; ++row) {
    std::vector<std::string> of_row;
    for (int chunk = 0; chunk < chunks; ++chunk) of_row.push_back(json(place_of(row, chunk)));
    places.push_back(list(of_row));
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::array<int, 8> readers{};  // of four banks, 16 bytes, each; all lanes read different addresses
    for (int row = 0; row < 8; ++row) ++readers[static_cast<std::size_t>(place_of(row, chunk) / 8 % 8)];
    wavefronts.push_back(json(*std::max_element(readers.begin(), readers.end())));
  }
  return object({member("places", list(places)), member("wavefronts", list(wavefronts))});
}

template <int kRow>
std::string swizzle() {
  const auto row_major = [](int row, int chunk) { return row * kRow + chunk * 8; };
  return object({member("row", kRow), member("row_major", chunk_places(kRow / 8, row_major)),
                 member("swizzled", chunk_places(kRow / 8, step_03_tensor_core::swizzled<kRow>))});
}

// --- 04: when what happens in the ring ---

namespace pipeline {

// A clock for the main loop: multiplying a slice takes a tick; a copy lands kCopyTicks after its start, however many are under way.
constexpr std::int64_t kTiles = 6, kCopyTicks = 8;

struct Recorder {
  struct Copy {
    std::int64_t tile, stage, lands;
  };
  struct Fragments {
    std::int64_t tile, stage;
  };
  std::int64_t now = 0;
  Copy next_group{-1, 0, 0};
  std::vector<Copy> groups;            // tile < 0: an empty one
  std::vector<std::int64_t> in_stage;  // the tile that each stage holds
  std::vector<std::int64_t> starts;    // of each tile's copy
  Fragments in_set[2] = {};
  std::vector<std::string> copies, waits, multiplications, steps_of_tile;
};
Recorder* recorder = nullptr;

// What the loop calls. These hide the GPU's.
struct device {
  static void cp_async_commit_group() { recorder->groups.push_back(std::exchange(recorder->next_group, {-1, 0, 0})); }
  template <int kGroups>
  static void cp_async_wait_group() {
    const std::int64_t start = recorder->now;
    const std::size_t groups = recorder->groups.size();
    for (std::size_t i = 0; i + kGroups < groups; ++i) recorder->now = std::max(recorder->now, recorder->groups[i].lands);
    recorder->waits.push_back(object({member("start", start), member("end", recorder->now), member("groups", kGroups)}));
  }
};
void __syncthreads() {}
using In = char;
// An operand as the loop knows it. A tile's copy begins with A's share and lands with B's, which follows.
template <bool is_b>
struct Source {
  static constexpr bool kIsB = is_b;
  bool ends_with_chunk() const { return true; }
  std::int64_t copied = 0;
};
int stage_elements = 0;
const In* shared = nullptr;

template <class Source>
void copy_whole_tile(Source& g, const In* s) {
  Recorder& r = *recorder;
  const std::int64_t tile = g.copied++;
  if (!Source::kIsB) {
    r.next_group = {tile, (s - shared) / stage_elements, 0};
    r.starts.push_back(r.now);
    return;
  }
  const std::int64_t stage = r.next_group.stage, start = r.starts.at(static_cast<std::size_t>(tile));
  r.next_group.lands = r.now + kCopyTicks;
  r.copies.push_back(
      object({member("tile", tile), member("stage", stage), member("start", start), member("end", r.next_group.lands)}));
  r.in_stage.at(static_cast<std::size_t>(stage)) = tile;
}
template <class Source>
void copy_tile(Source& g, const In* s, std::int64_t) {
  copy_whole_tile(g, s);
}

template <class Tile>
std::string timeline() {
  using step_04_pipelined_num_stages::Ring;
  constexpr int kSlices = Tile::kBlockK / ::device::kFragment, kTileA = Tile::kBlockM * Tile::kBlockK;
  Recorder r;
  recorder = &r;
  r.in_stage.assign(Tile::kNumStages, -1);
  const struct { std::int64_t cols; } A{kTiles * Tile::kBlockK};

  stage_elements = Tile::kStageElements;
  std::vector<In> memory(static_cast<std::size_t>(Tile::kStageElements * Tile::kNumStages));
  In* const sAB = memory.data();
  shared = sAB;
  Source<false> gA;
  Source<true> gB;
  int rAB[2] = {0, 1};  // the numbers of the sets
  const auto step_of_tile = [&](const char* what, int set, int slice) {
    if (r.multiplications.size() < kSlices)
      r.steps_of_tile.push_back(object({member("what", json(what)), member("set", set), member("slice", slice)}));
  };
  const auto copy = [&](In* s, std::int64_t k_left) {
    copy_tile(gA, s, k_left);
    copy_tile(gB, s + kTileA, k_left);
  };
  const auto load = [&](int set, const In* s, int slice) {
    const std::int64_t stage = (s - sAB) / Tile::kStageElements;
    for (const Recorder::Copy& each : r.groups)
      if (each.tile >= 0 && each.stage == stage && each.lands > r.now) throw std::logic_error("a tile is read before it is there");
    step_of_tile("load", set, slice);
    r.in_set[set] = {r.in_stage.at(static_cast<std::size_t>(stage)), stage};
  };
  const auto multiply = [&](int set) {
    step_of_tile("multiply", set, static_cast<int>(r.multiplications.size()) % kSlices);
    r.multiplications.push_back(object({member("tile", r.in_set[set].tile), member("stage", r.in_set[set].stage),
                                        member("start", r.now), member("end", r.now + 1)}));
    ++r.now;
  };

  // The main loop of steps/04_pipelined_num_stages/gemm.cuh, word for word; tools/figures compares them.
  // clang-format off
  Ring<Tile::kNumStages> ring;
  constexpr int kAhead = ring.kAhead, kAheadK = kAhead * Tile::kBlockK;
#pragma unroll 1  // in one case, nvcc 13.0.88 unrolled it by two and left two of five copies out
  for (int i = 0; i < kAhead; ++i) {
    copy(sAB + i * Tile::kStageElements, A.cols - i * Tile::kBlockK);  // past the end of k zeros
    device::cp_async_commit_group();
  }
  device::cp_async_wait_group<kAhead - 1>();
  __syncthreads();  // the first stage is complete before anybody reads it
  load(rAB[0], sAB, 0);
  const auto multiply_tile = [&](auto is_checked, int64_t k_left) {
    const int free_stage = ring.previous();  // everybody has read it: that was before the last barrier
    // After the last tile, fragments are loaded once more, from the same stage and for nothing: a branch would cost more.
    const int next = is_checked() && k_left <= Tile::kBlockK ? ring.stage : ring.next();
    const auto refill = [&](auto& g, In* s) {
      if (!is_checked()) copy_whole_tile(g, s + free_stage * Tile::kStageElements);
      if (is_checked() && k_left > kAheadK) copy_tile(g, s + free_stage * Tile::kStageElements, k_left - kAheadK);
    };
#pragma unroll
    for (int slice = 0; slice + 1 < kSlices; ++slice) {
      load(rAB[(slice + 1) % 2], sAB + ring.stage * Tile::kStageElements, slice + 1);
      multiply(rAB[slice % 2]);
      if (Tile::kNumStages > 1 && slice == 0) refill(gA, sAB);
      if (Tile::kNumStages > 1 && slice == (kSlices > 2 ? 1 : 0)) refill(gB, sAB + kTileA);
    }
    if (Tile::kNumStages == 1) {
      __syncthreads();  // now everybody has read the only stage
      refill(gA, sAB);
      refill(gB, sAB + kTileA);
    }
    device::cp_async_commit_group();  // past the end of k an empty one, so that counting groups still counts tiles
    device::cp_async_wait_group<kAhead - 1>();
    __syncthreads();  // the next stage is complete before anybody reads it; everybody has read this one before it is refilled
    load(rAB[0], sAB + next * Tile::kStageElements, 0);
    multiply(rAB[1]);  // the last slice
    ring.stage = next;
  };
  int64_t k_left = A.cols;
  // Where no chunk is split, no branch parts the products, and copies mix with them.
  for (; gA.ends_with_chunk() && gB.ends_with_chunk() && k_left >= kAheadK + Tile::kBlockK; k_left -= Tile::kBlockK) {
    multiply_tile(std::false_type{}, k_left);
  }
  for (; k_left > 0; k_left -= Tile::kBlockK) {
    multiply_tile(std::true_type{}, k_left);
  }
  // clang-format on

  const auto empty = std::count_if(r.groups.begin(), r.groups.end(), [](const auto& each) { return each.tile < 0; });
  return object({member("stages", Tile::kNumStages), member("ticks", r.now), member("slices", kSlices),
                 member("copy_ticks", kCopyTicks), member("empty_groups", static_cast<std::int64_t>(empty)),
                 member("copies", list(r.copies)), member("waits", list(r.waits)),
                 member("multiplications", list(r.multiplications)), member("steps_of_tile", list(r.steps_of_tile))});
}

template <int kNumStages>
using Tile = step_04_pipelined_num_stages::Tile<128, 128, 64, 64, 64, kNumStages>;

}  // namespace pipeline

// --- 05: which tile which block computes ---

template <int kGroupM>
std::string order(std::int64_t tiles_m, std::int64_t tiles_n, std::int64_t tiles_k, std::int64_t first) {
  std::vector<std::string> tiles;
  std::set<std::int64_t> rows, cols;  // of tiles that the first blocks need, each counted once
  const step_05_l2_swizzle::TileOrder<kGroupM> blocks(tiles_m, tiles_n);
  for (std::int64_t block = 0; block < tiles_m * tiles_n; ++block) {
    const auto tile = blocks.tile_of_block(static_cast<unsigned>(block));
    tiles.push_back(list({json(tile.m), json(tile.n)}));
    if (block < first) rows.insert(tile.m), cols.insert(tile.n);
  }
  const auto loads = static_cast<std::int64_t>(rows.size() + cols.size()) * tiles_k;
  return object({member("group_m", kGroupM), member("tiles_m", tiles_m), member("tiles_n", tiles_n), member("tiles_k", tiles_k),
                 member("first", first), member("loads", loads), member("tiles", list(tiles))});
}

void print() {
  using pipeline::Tile, pipeline::timeline;
  using TensorTile = step_03_tensor_core::Tile<128, 128, 64, 64, 64>;
  std::cout << object({member("memory", memory()), member("levels", levels<TensorTile>(4096)),
                       member("copies", copies<TensorTile>()), member("swizzle", list({swizzle<64>(), swizzle<128>()})),
                       member("pipeline", list({timeline<Tile<1>>(), timeline<Tile<2>>(), timeline<Tile<3>>()})),
                       member("exercise", order<2>(5, 7, 1, 0)),
                       member("order",
                              list({order<1>(9, 9, 9, 9), order<3>(9, 9, 9, 9), order<8>(9, 9, 9, 9), order<4>(10, 6, 9, 0)})),
                       member("wave", list({order<1>(64, 64, 1, 264), order<8>(64, 64, 1, 264)}))})
            << std::endl;
  if (!std::cout) throw std::runtime_error("cannot write to stdout");
}

}  // namespace

int main() try {
  print();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "figures: %s\n", error.what());
  return 1;
}
