#include "common/interpreter/l2_model.h"

#include <algorithm>
#include <bit>

#include "common/interpreter/block.h"

namespace interpreter {

L2Model::L2Model(const Gpu& gpu) : sets_(gpu.l2_bytes / (32 * kSectors) / kWays), lines_(sets_ * kWays) {}

void L2Model::access(std::uint64_t sector, bool write) {
  const std::uint64_t tag = sector / kSectors;
  const std::uint8_t bit = static_cast<std::uint8_t>(1u << sector % kSectors);
  Line* const set = &lines_[(tag * 0x9e3779b97f4a7c15ull >> 17) % sets_ * kWays];
  unsigned way = 0;
  while (way < kWays - 1 && set[way].tag != tag) ++way;
  Line line = set[way];
  if (line.tag != tag) {
    result_.dram_write_bytes += 32u * static_cast<unsigned>(std::popcount(line.dirty));
    line = {tag, 0, 0};
  }
  const bool hit = line.valid & bit;
  if (write) {
    ++result_.writes;
    line.dirty |= bit;
  } else {
    ++result_.reads;
    result_.read_hits += hit;
    if (!hit) result_.dram_read_bytes += 32;
  }
  line.valid |= bit;
  std::copy_backward(set, set + way, set + way + 1);
  set[0] = line;
}

void L2Model::replay(const std::vector<std::vector<std::uint64_t>>& traces) {
  std::vector<std::size_t> at(traces.size(), 0);
  for (bool any = true; any;) {
    any = false;
    for (std::size_t b = 0; b < traces.size(); ++b) {
      const std::vector<std::uint64_t>& trace = traces[b];
      while (at[b] < trace.size() && trace[at[b]] != Block::kBarrierMark) {
        access(trace[at[b]] & ~Block::kWriteBit, trace[at[b]] & Block::kWriteBit);
        ++at[b];
      }
      ++at[b];
      any |= at[b] < trace.size();
    }
  }
}

L2Result L2Model::result() const {
  L2Result result = result_;
  for (const Line& line : lines_) result.dram_write_bytes += 32u * static_cast<unsigned>(std::popcount(line.dirty));
  return result;
}

}  // namespace interpreter
