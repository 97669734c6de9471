// The interpreter's L2 model against what ncu counted on an H200 (docs/results/h200/l2). Larger problems than the interpreter can
// run in a test: blocks' traces are made from the order of the blocks and the layout of the operands.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/harness/problem/test_matrix.h"
#include "common/harness/program/step.h"
#include "common/harness/results/ncu.h"
#include "common/interpreter/count/gpus.h"
#include "common/interpreter/count/l2_model.h"
#include "common/interpreter/count/l2_trace.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/memory/global_memory.h"
#include "steps/05_l2_swizzle/gemm.cuh"

namespace {

using interpreter::L2Result;
using step_05_l2_swizzle::TileIndex;
using step_05_l2_swizzle::TileOrder;
template <int kGroupM>
using TileOf = step_05_l2_swizzle::Tile<128, 128, 64, 64, 64, 3, kGroupM>;
using Tile = TileOf<8>;  // what all have in common

// Row-major, f16, multiples of the tile.
struct Matrices {
  std::int64_t m, n, k;
  std::uint64_t A, B, C;  // first bytes, counted from the begin of device memory

  std::vector<std::uint64_t> trace(const TileIndex& tile) const {
    std::vector<std::uint64_t> trace;
    // A rectangle of a matrix with `stride` elements in a row.
    const auto add = [&](std::uint64_t matrix, std::int64_t stride, std::int64_t row, std::int64_t col, int rows, int cols,
                         bool write) {
      for (std::int64_t r = row; r < row + rows; ++r)
        for (std::int64_t c = col; c < col + cols; c += 16)
          trace.push_back((matrix + 2 * static_cast<std::uint64_t>(r * stride + c)) / 32 |
                          (write ? interpreter::L2Trace::kWriteBit : 0));
    };
    const std::int64_t m_0 = tile.m * Tile::kBlockM, n_0 = tile.n * Tile::kBlockN;
    std::int64_t copied = 0;
    const auto copy = [&] {
      if (copied < k) {
        add(A, k, m_0, copied, Tile::kBlockM, Tile::kBlockK, false);
        add(B, n, copied, n_0, Tile::kBlockK, Tile::kBlockN, false);
      }
      copied += Tile::kBlockK;
    };
    for (int i = 0; i < Tile::kNumStages - 1; ++i) copy();
    trace.push_back(interpreter::L2Trace::kBarrierMark);
    for (std::int64_t k_left = k; k_left > 0; k_left -= Tile::kBlockK) {
      copy();
      trace.push_back(interpreter::L2Trace::kBarrierMark);
    }
    trace.push_back(interpreter::L2Trace::kBarrierMark);
    add(C, n, m_0, n_0, Tile::kBlockM, Tile::kBlockN, true);
    return trace;
  }

  template <int kGroupM>
  L2Result replay() const {
    const interpreter::Gpu& gpu = interpreter::find_gpu("h200");
    const int resident = gpu.multiprocessors * interpreter::resident_blocks_per_sm(gpu, Tile::kThreads, Tile::kSharedBytes);
    interpreter::L2Model l2(gpu);
    const std::int64_t tiles_m = m / Tile::kBlockM, tiles_n = n / Tile::kBlockN, blocks = tiles_m * tiles_n;
    const TileOrder<kGroupM> order(tiles_m, tiles_n);
    for (std::int64_t first = 0; first < blocks; first += resident) {
      std::vector<std::vector<std::uint64_t>> wave;
      for (std::int64_t block = first; block < std::min(blocks, first + resident); ++block)
        wave.push_back(trace(order.tile_of_block(static_cast<unsigned>(block))));
      l2.replay(wave);
    }
    return l2.result();
  }
};

L2Result replay(const Matrices& matrices, int group_m) {
  switch (group_m) {
    case 1: return matrices.replay<1>();
    case 4: return matrices.replay<4>();
    case 16: return matrices.replay<16>();
    default: REQUIRE(group_m == 8); return matrices.replay<8>();
  }
}

// What the interpreter's own launch gives, and where it had its matrices.
L2Result launch(int group_m, Matrices& matrices) {
  const harness::DType f16 = harness::DType::kF16;
  const auto& [m, n, k, a, b, c] = matrices;
  harness::TestMatrix A("A", f16, harness::row_major(m, k)), B("B", f16, harness::row_major(k, n)),
      C("C", f16, harness::row_major(m, n));
  for (harness::TestMatrix* matrix : {&A, &B, &C}) matrix->fill([](std::int64_t, std::int64_t) { return 1; });
  const auto begin = [](const harness::TestMatrix& matrix) {
    const char* const data = static_cast<const char*>(matrix.view().data);
    const auto allocation = interpreter::GlobalMemory::instance().nearest(data);
    return allocation.packed_at + static_cast<std::uint64_t>(data - allocation.begin);
  };
  matrices.A = begin(A), matrices.B = begin(B), matrices.C = begin(C);

  const interpreter::Options before = interpreter::options();
  interpreter::options().l2_model = true;
  interpreter::options().racecheck = interpreter::options().initcheck = false;
  interpreter::clear_profiles();
  for (const harness::Variant& v : harness::this_step().variants)
    if (v.tile.ends_with("s3 g" + std::to_string(group_m)) && v.in == f16 && v.out == f16) v.gemm(A.view(), B.view(), C.view());
  interpreter::options() = before;
  REQUIRE(interpreter::profiles().size() == 1);
  return interpreter::profiles().back().l2;
}

// kGroupM of the step's tiles, in the order in which its program launches them; 0 for other tiles than Tile.
std::vector<int> groups_of_tiles() {
  std::vector<int> groups;
  for (const harness::Variant& v : harness::this_step().variants)
    if (v.in == harness::DType::kF16 && v.out == v.in) {
      int group = 0;
      std::sscanf(v.tile.c_str(), "128x128x64 warp 64x64 s3 g%d", &group);
      groups.push_back(group);
    }
  return groups;
}

// Every `step`-th row's counter from the `first` on, on average: launches of one tile differ by some per cent.
double mean(const std::vector<harness::NcuRow>& rows, std::size_t first, std::size_t step, const char* metric) {
  double sum = 0;
  for (std::size_t i = first; i < rows.size(); i += step) sum += rows[i].at(metric);
  return sum / static_cast<double>(rows.size() / step);
}

}  // namespace

TEST_CASE("step 05_l2_swizzle: traces made from the order of the blocks are the kernel's") {
  Matrices matrices{1024, 1024, 1024, 0, 0, 0};
  const L2Result interpreted = launch(4, matrices), made = replay(matrices, 4);
  CHECK(interpreted.requested == made.requested);
  // Which line a coalescer forgets for another one depends on the order within an interval, in which the traces differ.
  CHECK(double(interpreted.reads) == doctest::Approx(double(made.reads)).epsilon(0.001));
  CHECK(interpreted.reads - interpreted.read_hits == made.reads - made.read_hits);
  CHECK(interpreted.fabric_reads == made.fabric_reads);
  CHECK(interpreted.writes == made.writes);
  CHECK(interpreted.dram_read_bytes == made.dram_read_bytes);
  CHECK(interpreted.dirty_bytes == made.dirty_bytes);
}

TEST_CASE("step 05_l2_swizzle: the L2 model against ncu") {
  struct {
    const char* name;
    std::int64_t m, n, k;
  } const shapes[] = {
      {"1024x1024x1024", 1024, 1024, 1024}, {"2048x2048x2048", 2048, 2048, 2048}, {"4096x4096x1024", 4096, 4096, 1024}};
  const std::vector<int> groups = groups_of_tiles();
  for (const auto& [name, m, n, k] : shapes) {
    const auto rows = harness::read_ncu_table("docs/results/h200/l2/05_l2_swizzle-" + std::string(name) + "-f16.csv");
    REQUIRE(rows.size() % groups.size() == 0);
    const std::uint64_t mib = 1 << 20;
    const Matrices matrices{m, n, k, 0, 64 * mib, 128 * mib};
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i] == 0) continue;
      const auto ncu = [&](const char* metric) { return mean(rows, i, groups.size(), metric); };
      const double hits = ncu("lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"),
                   misses = ncu("lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum");
      const L2Result model = replay(matrices, groups[i]);
      const std::string shape = name;  // clang 14 does not capture a structured binding
      const double hit_rate = 100 * hits / (hits + misses), dram_read = ncu("dram__bytes_read.sum");
      INFO(shape << ", groups of " << groups[i] << ": model and ncu: sectors " << double(model.reads) / 1e3 << " and "
                 << ncu("lts__t_sectors_srcunit_tex_op_read.sum") / 1e3 << " thousand, hit rate " << 100 * model.hit_rate()
                 << " and " << hit_rate << " %, through the fabric " << double(model.fabric_reads) / 1e3 << " and "
                 << ncu("lts__t_sectors_srcunit_ltcfabric_op_read.sum") / 1e3 << " thousand, DRAM "
                 << double(model.dram_read_bytes) / 1e6 << " and " << dram_read / 1e6 << " MB read, "
                 << double(model.dram_write_bytes) / 1e6 << " and " << ncu("dram__bytes_write.sum") / 1e6 << " MB written");
      CHECK(static_cast<double>(model.requested) == ncu("l1tex__m_xbar2l1tex_read_sectors.sum"));
      CHECK(static_cast<double>(model.writes) == ncu("lts__t_sectors_srcunit_tex_op_write.sum"));
      CHECK(std::fabs(100 * model.hit_rate() - hit_rate) <= 5);
      CHECK(std::fabs(static_cast<double>(model.dram_read_bytes) / dram_read - 1) <= 0.1);
    }
  }
}
