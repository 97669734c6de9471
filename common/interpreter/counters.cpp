#include "common/interpreter/counters.h"

#include <algorithm>
#include <bit>

namespace interpreter {
namespace {

constexpr unsigned kSector = 32, kSectorsPerLine = 4, kBanks = 32, kBankBytes = 4;

}  // namespace

unsigned sectors_of(const Request& request, std::uint64_t* sectors) {
  unsigned n = 0;
  bool ascending = true;
  for (unsigned i = 0; i < request.count; ++i) {
    const std::uint64_t first = request.addresses[i] / kSector, last = (request.addresses[i] + request.size - 1) / kSector;
    for (std::uint64_t sector = first; sector <= last; ++sector) {
      if (n && sectors[n - 1] == sector) continue;
      ascending &= !n || sectors[n - 1] < sector;
      sectors[n++] = sector;
    }
    if (request.uniform) break;
  }
  if (!ascending) {
    std::sort(sectors, sectors + n);
    n = static_cast<unsigned>(std::unique(sectors, sectors + n) - sectors);
  }
  return n;
}

namespace {

// Whether lanes that differ in one low bit of their number ask for the same address, wherever both take part.
bool neighbours_agree(const std::uint64_t (&address)[32], std::uint32_t lanes, unsigned bit) {
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest)), other = lane ^ bit;
    if (lanes >> other & 1 && address[lane] != address[other]) return false;
  }
  return true;
}

// Banks deliver one word each per wavefront; lanes that ask for the same word share it.
unsigned wavefronts_of_pass(const std::uint64_t (&address)[32], std::uint32_t lanes, unsigned size) {
  std::uint64_t words[32 * 4];
  unsigned n = 0;
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    const std::uint64_t begin = address[std::countr_zero(rest)];
    for (std::uint64_t word = begin / kBankBytes; word <= (begin + size - 1) / kBankBytes; ++word) words[n++] = word;
  }
  std::sort(words, words + n);
  n = static_cast<unsigned>(std::unique(words, words + n) - words);
  unsigned per_bank[kBanks] = {}, worst = 0;
  for (unsigned w = 0; w < n; ++w) worst = std::max(worst, ++per_bank[words[w] % kBanks]);
  return worst;
}

}  // namespace

// Calibrated on an H200: docs/results/h200/ncu/patterns.csv. A warp's access goes in passes that ask for at most 128 bytes: all
// lanes for up to 4 bytes each, half warps for 8, quarter warps for 16. Where neighbouring lanes share their addresses, passes of 8
// and 16 bytes take twice the lanes. Within a pass, banks conflict.
Wavefronts wavefronts_of(const Request& request) {
  if (request.size <= 4 && (request.uniform || request.contiguous)) return {1, 1};
  std::uint64_t address[32] = {};
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1) address[std::countr_zero(rest)] = request.addresses[i++];

  const bool agree = neighbours_agree(address, request.lanes, 1) || neighbours_agree(address, request.lanes, 2);
  const unsigned lanes_per_pass = (request.size <= 4 ? 32 : request.size == 8 ? 16 : 8) * (request.size > 4 && agree ? 2 : 1);
  Wavefronts result{0, 0};
  for (unsigned first = 0; first < 32; first += lanes_per_pass) {
    const std::uint32_t pass = request.lanes & 0xffffffffu >> (32 - lanes_per_pass) << first;
    if (!pass) continue;
    ++result.ideal;
    result.actual += request.contiguous ? 1 : wavefronts_of_pass(address, pass, request.size);
  }
  return result;
}

CounterTable::CounterTable() : slots_(256) {}

Counters& CounterTable::of(Pc pc) {
  std::size_t i = pc * 2654435761u >> 7 & (slots_.size() - 1);
  while (slots_[i].pc && slots_[i].pc != pc) i = (i + 1) & (slots_.size() - 1);
  if (slots_[i].pc) return slots_[i].counters;
  if (2 * ++used_ > slots_.size()) {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    used_ = 1;
    for (Slot& slot : old)
      if (slot.pc) of(slot.pc) = slot.counters;
    return of(pc);
  }
  slots_[i].pc = pc;
  return slots_[i].counters;
}

void CounterTable::count(const Request& request, std::uint64_t* sectors, unsigned* sector_count) {
  Counters& counters = of(request.pc);
  const std::uint64_t bytes = std::uint64_t(request.count) * request.size;
  if (request.shared) {
    Counters::Shared& c = request.op == Op::kLoad    ? counters.shared_load
                          : request.op == Op::kStore ? counters.shared_store
                                                     : counters.shared_atomic;
    const Wavefronts w = wavefronts_of(request);
    ++c.requests, c.wavefronts += w.actual, c.ideal_wavefronts += w.ideal, c.bytes += bytes;
    return;
  }
  Counters::Global& c = request.op == Op::kLoad    ? counters.global_load
                        : request.op == Op::kStore ? counters.global_store
                                                   : counters.global_atomic;
  const unsigned n = sectors_of(request, sectors);
  unsigned lines = 0;
  for (unsigned i = 0; i < n; ++i) lines += i == 0 || sectors[i] / kSectorsPerLine != sectors[i - 1] / kSectorsPerLine;
  ++c.requests, c.sectors += n, c.lines += lines, c.bytes += bytes;
  *sector_count = n;
}

Counters& Counters::operator+=(const Counters& other) {
  const auto add_global = [](Global& a, const Global& b) {
    a.requests += b.requests, a.sectors += b.sectors, a.lines += b.lines, a.bytes += b.bytes;
  };
  const auto add_shared = [](Shared& a, const Shared& b) {
    a.requests += b.requests, a.wavefronts += b.wavefronts, a.ideal_wavefronts += b.ideal_wavefronts, a.bytes += b.bytes;
  };
  add_global(global_load, other.global_load), add_global(global_store, other.global_store);
  add_global(global_atomic, other.global_atomic);
  add_shared(shared_load, other.shared_load), add_shared(shared_store, other.shared_store);
  add_shared(shared_atomic, other.shared_atomic);
  return *this;
}

std::vector<Metric> metrics(const Counters& c) {
  const auto ratio = [](std::uint64_t a, std::uint64_t b) { return b ? double(a) / double(b) : 0.0; };
  const auto d = [](std::uint64_t x) { return static_cast<double>(x); };
  return {
      {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", d(c.global_load.requests)},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", d(c.global_load.sectors)},
      {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
       ratio(c.global_load.sectors, c.global_load.requests)},
      {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", d(c.global_store.requests)},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", d(c.global_store.sectors)},
      {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
       ratio(c.global_store.sectors, c.global_store.requests)},
      {"smsp__inst_executed_op_shared_ld.sum", d(c.shared_load.requests)},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", d(c.shared_load.wavefronts)},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", d(c.shared_load.wavefronts - c.shared_load.ideal_wavefronts)},
      {"smsp__inst_executed_op_shared_st.sum", d(c.shared_store.requests)},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", d(c.shared_store.wavefronts)},
      {"sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum", d(c.shared_store.wavefronts)},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", d(c.shared_store.wavefronts - c.shared_store.ideal_wavefronts)},
  };
}

}  // namespace interpreter
