#include "common/interpreter/count/l2_model.h"

#include <algorithm>
#include <bit>

#include "common/interpreter/count/l2_trace.h"

namespace interpreter {
namespace {

// Time is counted in turns: a turn is what a block that has its SM to itself needs from one barrier to the next. In the main loop
// of step 05 on an H200 a turn is 0.6 us; the latencies below were measured there or fitted to ncu's counters.
constexpr double kMergeTime = 0.1;    // a coalescer merges reads that come within that time
constexpr double kDramTime = 0.4;     // ... or before the data are there, if they have to come from DRAM
constexpr double kFabricTime = 0.15;  // from one part of the L2 cache to another
// Blocks that start together are at most that share of an interval apart after their first copies, and as much again after kDrift
// intervals. An interval has as many turns as the SM has blocks.
constexpr double kSpread = 0.4, kDrift = 10;

constexpr unsigned kSectors = 4;                  // of a line
constexpr std::uint64_t kPageLines = 4096 / 128;  // memory changes its home from page to page

std::uint64_t scrambled(std::uint64_t x) {
  x *= 0x9e3779b97f4a7c15ull;
  return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull >> 17;
}

std::uint64_t count(std::uint8_t sectors) { return static_cast<unsigned>(std::popcount(sectors)); }

}  // namespace

L2Model::L2Model(const Gpu& gpu)
    : gpu_(gpu),
      sets_(gpu.l2_bytes / gpu.l2_parts / (32 * kSectors) / kWays),
      lines_(sets_ * kWays * gpu.l2_parts),
      merges_(gpu.coalescers * kMerges) {}

unsigned L2Model::home(std::uint64_t tag) const { return static_cast<unsigned>(scrambled(tag / kPageLines) % gpu_.l2_parts); }

L2Model::Line& L2Model::find(unsigned part, std::uint64_t tag) {
  Line* const set = &lines_[(part * sets_ + scrambled(tag) % sets_) * kWays];
  unsigned way = 0;
  while (way < kWays - 1 && set[way].tag != tag) ++way;
  Line line = set[way];
  if (line.tag != tag) {
    result_.dram_write_bytes += 32 * count(line.dirty);
    line = {tag, -1, 0, 0};
  }
  std::copy_backward(set, set + way, set + way + 1);
  return set[0] = line;
}

L2Model::Answer L2Model::read(unsigned part, std::uint64_t tag, std::uint8_t wanted, double now) {
  const bool at_home = part == home(tag);
  Line& line = find(part, tag);
  const auto missing = static_cast<std::uint8_t>(wanted & ~line.valid);
  line.valid |= wanted;
  if (missing && !at_home) {
    result_.fabric_reads += count(missing);
    line.arrives = std::max(line.arrives, read(home(tag), tag, missing, now + kFabricTime).arrives);
  } else if (missing) {
    result_.dram_read_bytes += 32 * count(missing);
    line.arrives = now + kDramTime;
  } else if (at_home && line.arrives > now + kDramTime) {
    // Another part's request has been replayed before, but is still on its way here: this one asks DRAM instead.
    line.arrives = now + kDramTime;
    return {line.arrives, wanted};
  }
  return {line.arrives, missing};
}

void L2Model::write(unsigned part, std::uint64_t tag, std::uint8_t sectors) {
  result_.writes += count(sectors);
  Line& line = find(home(tag), tag);
  line.valid |= sectors, line.dirty |= sectors;
  if (part != home(tag)) find(part, tag).valid |= sectors;
}

void L2Model::read_merged(const Place& place, std::uint64_t tag, std::uint8_t wanted, double now) {
  result_.requested += count(wanted);
  Merge none;
  Merge& merge = merges_.empty() ? none : merges_[place.cluster * kMerges + scrambled(tag) % kMerges];
  if (merge.tag != tag || now >= merge.until) merge = {tag, now + kMergeTime, 0};
  wanted &= static_cast<std::uint8_t>(~merge.sectors);
  if (!wanted) return;
  merge.sectors |= wanted;

  const Answer answer = read(place.part, tag, wanted, now);
  result_.reads += count(wanted);
  result_.read_hits += count(wanted) - count(answer.missed);
  merge.until = std::max(merge.until, answer.arrives + kMergeTime);
}

// The first blocks go to the SMs one by one, cluster after cluster, beginning within one; the next ones to the same SMs again.
// Later, blocks go where others have ended, which is anywhere.
std::vector<L2Model::Place> L2Model::places(std::size_t blocks, std::size_t sms) {
  const std::size_t clusters = std::max(gpu_.coalescers, gpu_.l2_parts);
  std::vector<Place> result;
  for (std::size_t b = 0; b < blocks; ++b, ++blocks_) {
    const std::size_t sm = blocks_ == b ? b % sms : scrambled(~blocks_) % sms;
    const std::size_t cluster = (2 * sm * clusters / sms + 1) / 2 % clusters;
    result.push_back({b, static_cast<unsigned>(cluster * gpu_.l2_parts / clusters), static_cast<unsigned>(cluster),
                      static_cast<double>(b / sms), static_cast<double>(scrambled(blocks_) % 1024) / 1024});
  }
  return result;
}

void L2Model::replay(const std::vector<std::vector<std::uint64_t>>& traces) {
  if (traces.empty()) return;
  const std::size_t sms = std::min(traces.size(), static_cast<std::size_t>(gpu_.multiprocessors));
  const std::size_t per_sm = (traces.size() + sms - 1) / sms;
  std::vector<Place> order = places(traces.size(), sms);
  std::vector<std::size_t> at(traces.size(), 0);
  const auto turns = static_cast<double>(per_sm);
  double spread = kSpread * turns;
  const auto late = [&](const Place& place) { return place.turn + spread * place.offset; };
  for (bool any = true; any; time_ += turns, spread += kSpread * turns / kDrift) {
    any = false;
    std::sort(order.begin(), order.end(), [&](const Place& a, const Place& b) { return late(a) < late(b); });
    for (const Place& place : order) {
      const std::vector<std::uint64_t>& trace = traces[place.block];
      std::size_t& i = at[place.block];
      while (i < trace.size() && trace[i] != L2Trace::kBarrierMark) {
        const std::uint64_t line = trace[i] / kSectors;  // and whether it is written
        std::uint8_t sectors = 0;
        for (; i < trace.size() && trace[i] / kSectors == line && trace[i] != L2Trace::kBarrierMark; ++i)
          sectors |= static_cast<std::uint8_t>(1u << trace[i] % kSectors);
        constexpr std::uint64_t kWritten = L2Trace::kWriteBit / kSectors;
        if (line & kWritten)
          write(place.part, line & ~kWritten, sectors);
        else
          read_merged(place, line, sectors, time_ + late(place));
      }
      ++i;
      any |= i < trace.size();
    }
  }
}

L2Result L2Model::result() const {
  L2Result result = result_;
  for (const Line& line : lines_) result.dirty_bytes += 32 * count(line.dirty);
  return result;
}

}  // namespace interpreter
