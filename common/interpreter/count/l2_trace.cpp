#include "common/interpreter/count/l2_trace.h"

#include <algorithm>

#include "common/interpreter/memory/global_memory.h"

namespace interpreter {

void L2Trace::L1::reset(std::size_t bytes) {
  sets_ = std::max<std::size_t>(1, bytes / 32 / kWays);
  tags_.assign(sets_ * kWays, ~0ull);
}

bool L2Trace::L1::hit(std::uint64_t sector) {
  std::uint64_t* set = &tags_[(sector * 0x9e3779b97f4a7c15ull >> 20) % sets_ * kWays];
  unsigned way = 0;
  while (way < kWays - 1 && set[way] != sector) ++way;
  const bool found = set[way] == sector;
  std::copy_backward(set, set + way, set + way + 1);
  set[0] = sector;
  return found;
}

void L2Trace::begin(std::size_t l1_bytes) {
  sectors_.clear();
  packed_.clear();
  if (l1_bytes) l1_.reset(l1_bytes);
}

// The place of a sector as the L2 model sees it.
std::uint64_t L2Trace::packed(std::uint64_t sector) {
  for (const PackedSectors& p : packed_)
    if (sector - p.first <= p.last - p.first) return sector - p.first + p.packed_at;
  const GlobalMemory& global = GlobalMemory::instance();
  const GlobalMemory::Allocation a = global.nearest(reinterpret_cast<const void*>(sector * 32));
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(a.begin) / 32, last = first + (a.bytes + 31) / 32 - 1;
  // Not of an allocation: a __device__ variable.
  if (sector - first > last - first) return (sector - reinterpret_cast<std::uintptr_t>(global.base()) / 32) & ~kWriteBit;
  packed_.push_back({first, last, a.packed_at / 32});
  return sector - first + a.packed_at / 32;
}

void L2Trace::add(const Request& request, const std::uint64_t* sectors, unsigned count, bool through_l1) {
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t sector = packed(sectors[i]);
    if (writes(request.op))
      sectors_.push_back(sector | kWriteBit);
    else if (!through_l1 || !l1_.hit(sector))
      sectors_.push_back(sector);
  }
}

void L2Trace::add(std::uintptr_t address, unsigned bytes, bool write) {
  for (std::uint64_t sector = address / 32; sector <= (address + bytes - 1) / 32; ++sector)
    sectors_.push_back(packed(sector) | (write ? kWriteBit : 0));
}

}  // namespace interpreter
