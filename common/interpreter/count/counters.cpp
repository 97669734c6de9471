#include "common/interpreter/count/counters.h"

#include <algorithm>
#include <bit>

#include "common/interpreter/count/gpus.h"
#include "common/interpreter/count/teamwork.h"
#include "common/interpreter/count/under_way.h"

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

  const bool agree = request.op != Op::kMatrixLoad && request.op != Op::kMatrixStore &&
                     (neighbours_agree(address, request.lanes, 1) || neighbours_agree(address, request.lanes, 2));
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

// ------------------------------------------------------------------------------------------------------------ cp.async
namespace {

constexpr unsigned kLine = kSector * kSectorsPerLine;

unsigned lines_of(const std::uint64_t* sectors, unsigned n) {
  unsigned lines = 0;
  for (unsigned i = 0; i < n; ++i) lines += i == 0 || sectors[i] / kSectorsPerLine != sectors[i - 1] / kSectorsPerLine;
  return lines;
}

// Of `lanes`, those whose aligned `size` bytes lie in the busiest banks. Lanes with the same address count too.
unsigned busiest_banks(const std::uint64_t (&address)[32], std::uint32_t lanes, unsigned size) {
  unsigned users[kBanks] = {}, worst = 0;
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1)
    worst = std::max(worst, ++users[address[std::countr_zero(rest)] / size % (kLine / size)]);
  return worst;
}

// 16-byte copies bypass the L1 cache: what arrives is written to shared memory in transfers. A transfer moves bytes of one line
// into one line, permuted by one exclusive-or on 16-byte pieces modulo 4, and of each of its sectors the same half or both.
struct Transfers {
  unsigned count, sectors;
};
Transfers transfers_of(const std::uint64_t (&from)[32], const std::uint64_t (&to)[32], std::uint32_t lanes) {
  constexpr unsigned kHalf = kSector / 2;
  struct Part {  // what a transfer takes of one sector
    std::uint64_t sector, to_line;
    unsigned turn, repeat, halves;
  };
  Part parts[8];
  unsigned n = 0, count = 0;
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    Part part{from[lane] / kSector, to[lane] / kLine, static_cast<unsigned>((from[lane] ^ to[lane]) / kHalf % 4), 0,
              1u << from[lane] / kHalf % 2};
    unsigned i = 0;
    for (; i < n; ++i) {
      if (parts[i].sector != part.sector || parts[i].to_line != part.to_line || parts[i].turn != part.turn) continue;
      if (!(parts[i].halves & part.halves)) break;
      ++part.repeat;  // the same bytes once more, to elsewhere
    }
    if (i < n)
      parts[i].halves |= part.halves;
    else
      parts[n++] = part;
  }
  for (unsigned i = 0; i < n; ++i) {
    const auto same_transfer = [&](const Part& p) {
      return p.sector / kSectorsPerLine == parts[i].sector / kSectorsPerLine && p.to_line == parts[i].to_line &&
             p.turn == parts[i].turn && p.repeat == parts[i].repeat && p.halves == parts[i].halves;
    };
    count += std::none_of(parts, parts + i, same_transfer);
  }
  return {count, n};
}

}  // namespace

// Calibrated on an H200: docs/results/h200/ncu/ptx_patterns.csv. A warp's copies go in passes of 128 bytes. A pass takes as many
// wavefronts as its lanes have elements in the same banks, on the side where there are more; here lanes with the same source
// conflict too. Lanes that fill with zeros only write. For 16 bytes, a wavefront for each transfer comes on top; the instruction
// that cannot fill takes these alone (measured in the steps, whose copies have no conflicts).
CopyCost copy_cost_of(const Request& sources, const Request& destinations, bool may_fill) {
  const unsigned size = destinations.size, lanes_per_pass = kLine / size;
  std::uint64_t from[32] = {}, to[32] = {};
  unsigned i = 0;
  for (std::uint32_t rest = sources.lanes; rest; rest &= rest - 1) from[std::countr_zero(rest)] = sources.addresses[i++];
  i = 0;
  for (std::uint32_t rest = destinations.lanes; rest; rest &= rest - 1) to[std::countr_zero(rest)] = destinations.addresses[i++];
  std::uint64_t sectors[64];
  const unsigned distinct = sectors_of(sources, sectors);

  CopyCost cost;
  unsigned reading_passes = 0, reading_wavefronts = 0;
  for (unsigned first = 0; first < 32; first += lanes_per_pass) {
    const std::uint32_t pass = destinations.lanes & 0xffffffffu >> (32 - lanes_per_pass) << first;
    if (!pass) continue;
    const std::uint32_t readers = pass & sources.lanes, zeros = pass & ~sources.lanes;
    const unsigned read = busiest_banks(from, readers, size);
    const unsigned wavefronts = std::max(read, busiest_banks(to, pass, size));
    cost.wavefronts += wavefronts, cost.conflicts += wavefronts - 1, ++cost.ideal_wavefronts;
    // The hardware writes zeros by themselves.
    if (zeros) cost.conflicts_l1 += busiest_banks(to, zeros, size) - 1;
    if (!readers) continue;
    ++reading_passes, reading_wavefronts += std::max(read, busiest_banks(to, readers, size));
    if (size < 16) continue;
    const Transfers transfers = transfers_of(from, to, readers);
    if (!may_fill) cost.wavefronts -= wavefronts, --cost.ideal_wavefronts;
    cost.wavefronts += transfers.count, cost.sectors += transfers.sectors, ++cost.ideal_wavefronts;
  }
  if (size == 16) return cost;
  // Through the L1 cache, whose tags are looked up four lines at a time. The hardware calls what is slower than that a conflict.
  cost.sectors = distinct;
  const unsigned lookups = (lines_of(sectors, distinct) + 3) / 4;
  cost.conflicts_l1 += reading_wavefronts - std::min(reading_wavefronts, std::max(reading_passes, lookups));
  return cost;
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
    Counters::Shared& c = request.op == Op::kLoad          ? counters.shared_load
                          : request.op == Op::kStore       ? counters.shared_store
                          : request.op == Op::kMatrixLoad  ? counters.matrix_load
                          : request.op == Op::kMatrixStore ? counters.matrix_store
                                                           : counters.shared_atomic;
    const Wavefronts w = wavefronts_of(request);
    ++c.requests, c.wavefronts += w.actual, c.ideal_wavefronts += w.ideal, c.bytes += bytes;
    return;
  }
  Counters::Global& c = request.op == Op::kLoad    ? counters.global_load
                        : request.op == Op::kStore ? counters.global_store
                                                   : counters.global_atomic;
  const unsigned n = sectors_of(request, sectors);
  ++c.requests, c.sectors += n, c.lines += lines_of(sectors, n), c.bytes += bytes;
  *sector_count = n;
}

void CounterTable::count_copy(const Request& sources, const Request& destinations, bool may_fill, std::uint64_t bytes_read,
                              std::uint64_t* sectors, unsigned* sector_count) {
  Counters& counters = of(destinations.pc);
  const unsigned n = sectors_of(sources, sectors);
  const CopyCost cost = copy_cost_of(sources, destinations, may_fill);
  Counters::Global& read = counters.copy_read;
  read.requests += sources.count != 0, read.sectors += cost.sectors, read.lines += lines_of(sectors, n), read.bytes += bytes_read;
  Counters::Shared& write = counters.copy_write;
  ++write.requests, write.wavefronts += cost.wavefronts, write.ideal_wavefronts += cost.ideal_wavefronts;
  write.bytes += std::uint64_t(destinations.count) * destinations.size;
  counters.copy_conflicts += cost.conflicts, counters.copy_conflicts_l1 += cost.conflicts_l1;
  *sector_count = n;
}

// As ncu counted on an H200; golden.cpp compares with its table, which tools/gpu-checks hopper records. The copy engine fills or
// empties one line of shared memory after the other, and moves whole sectors for each.
void add_bulk_cost(Counters::Global& cost, std::uintptr_t global, std::uintptr_t shared, unsigned bytes) {
  for (unsigned done = 0, size = 0; done < bytes; done += size) {
    size = std::min<unsigned>(bytes - done, kLine - (shared + done) % kLine);
    cost.sectors += (global + done + size - 1) / kSector - (global + done) / kSector + 1;
    ++cost.lines;
  }
  cost.bytes += bytes;
}

namespace {
void add(Counters::Global& a, const Counters::Global& b) {
  a.requests += b.requests, a.sectors += b.sectors, a.lines += b.lines, a.bytes += b.bytes;
}
void add(Counters::Shared& a, const Counters::Shared& b) {
  a.requests += b.requests, a.wavefronts += b.wavefronts, a.ideal_wavefronts += b.ideal_wavefronts, a.bytes += b.bytes;
}
}  // namespace

void CounterTable::count_bulk(Pc pc, const Counters::Global& moved, bool write) {
  add(write ? of(pc).bulk_write : of(pc).bulk_read, moved);
}

// Of the layouts that a descriptor can describe, none is taken to have conflicts.
void CounterTable::count_wgmma(Pc pc, unsigned bytes) {
  const unsigned wavefronts = bytes / (kBanks * kBankBytes);
  add(of(pc).wgmma, {1, wavefronts, wavefronts, bytes});
}

MostUnderWay& most_under_way() {
  static MostUnderWay most;
  return most;
}
EachUnderWay& each_under_way() {
  static EachUnderWay each;
  return each;
}
bool count_each_access = false;

Teamwork& teamwork() {
  static Teamwork all;
  return all;
}

Counters& Counters::operator+=(const Counters& other) {
  add(global_load, other.global_load), add(global_store, other.global_store), add(global_atomic, other.global_atomic);
  add(shared_load, other.shared_load), add(shared_store, other.shared_store), add(shared_atomic, other.shared_atomic);
  add(copy_read, other.copy_read), add(copy_write, other.copy_write);
  copy_conflicts += other.copy_conflicts, copy_conflicts_l1 += other.copy_conflicts_l1;
  add(matrix_load, other.matrix_load);
  add(matrix_store, other.matrix_store);
  mma += other.mma, barriers += other.barriers;
  add(bulk_read, other.bulk_read), add(bulk_write, other.bulk_write), add(wgmma, other.wgmma);
  bulk_zeros += other.bulk_zeros;
  return *this;
}

std::vector<Metric> metrics(const Counters& c) {
  const auto ratio = [](std::uint64_t a, std::uint64_t b) { return b ? double(a) / double(b) : 0.0; };
  const auto d = [](std::uint64_t x) { return static_cast<double>(x); };
  // The hardware's counters of global loads, of shared loads and of shared stores include cp.async's reads, ldmatrix and stmatrix.
  const std::uint64_t load_requests = c.global_load.requests + c.copy_read.requests;
  const std::uint64_t load_sectors = c.global_load.sectors + c.copy_read.sectors;
  const auto conflicts = [](const Counters::Shared& s) { return s.wavefronts - s.ideal_wavefronts; };
  return {
      {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", d(load_requests)},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", d(load_sectors)},
      {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", ratio(load_sectors, load_requests)},
      {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", d(c.global_store.requests)},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", d(c.global_store.sectors)},
      {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
       ratio(c.global_store.sectors, c.global_store.requests)},
      {"smsp__inst_executed_op_shared_ld.sum", d(c.shared_load.requests)},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", d(c.shared_load.wavefronts + c.matrix_load.wavefronts)},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", d(conflicts(c.shared_load) + conflicts(c.matrix_load))},
      {"smsp__inst_executed_op_shared_st.sum", d(c.shared_store.requests)},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", d(c.shared_store.wavefronts + c.matrix_store.wavefronts)},
      {"sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum", d(c.shared_store.wavefronts)},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", d(conflicts(c.shared_store) + conflicts(c.matrix_store))},
      {"smsp__inst_executed_op_ldgsts.sum", d(c.copy_write.requests)},
      {"sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum", d(c.copy_read.requests)},
      {"sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum", d(c.copy_read.sectors)},
      {"sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum", d(c.copy_write.wavefronts)},
      {"sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum", d(c.copy_conflicts)},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum", d(c.copy_conflicts_l1)},
      {"smsp__inst_executed_op_ldsm.sum", d(c.matrix_load.requests)},
      {"sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum", d(c.matrix_load.wavefronts)},
      {"sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum", d(conflicts(c.matrix_load))},
      {"sm__sass_inst_executed_op_shared_stsm.sum", d(c.matrix_store.requests)},
      {"sm__inst_executed_pipe_tensor_op_hmma.sum", d(c.mma)},
      {"smsp__sass_inst_executed_op_tma_ld.sum", d(c.bulk_read.requests)},
      {"l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum", d(c.bulk_read.sectors)},
      {"smsp__sass_inst_executed_op_tma_st.sum", d(c.bulk_write.requests)},
      {"l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum", d(c.bulk_write.sectors)},
      {"smsp__sass_inst_executed_op_shared_gmma.sum", d(c.wgmma.requests)},
      {"l1tex__lsuin_requests_op_gmma.sum", d(c.wgmma.requests)},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum", d(c.wgmma.wavefronts)},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum", d(conflicts(c.wgmma))},
  };
}

std::vector<Metric> metrics(const KernelProfile& p) {
  const auto volume = [](const dim3& d) { return double{1} * d.x * d.y * d.z; };
  const Gpu& gpu = find_gpu(options().gpu);
  const int threads = static_cast<int>(volume(p.block)), warps = (threads + 31) / 32;
  const int resident = resident_blocks_per_sm(gpu, threads, p.dynamic_shared_bytes + p.static_shared_bytes);
  std::vector<Metric> all = metrics(p.total);
  all.push_back({"launch__grid_size", volume(p.grid)});
  all.push_back({"launch__waves_per_multiprocessor", volume(p.grid) / std::max(1, resident) / gpu.multiprocessors});
  all.push_back({"launch__block_size", volume(p.block)});
  all.push_back({"sm__maximum_warps_per_active_cycle_pct", 100.0 * resident * warps / (gpu.max_threads_per_sm / 32)});
  if (!options().l2_model) return all;
  all.push_back({"lts__t_sectors_srcunit_tex_op_read.sum", static_cast<double>(p.l2.reads)});
  all.push_back({"lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum", static_cast<double>(p.l2.read_hits)});
  all.push_back({"dram__bytes_read.sum", static_cast<double>(p.l2.dram_read_bytes)});
  all.push_back({"dram__bytes_write.sum", static_cast<double>(p.l2.dram_write_bytes)});
  return all;
}

}  // namespace interpreter
