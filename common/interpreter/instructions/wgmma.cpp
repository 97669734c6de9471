// wgmma: four warps multiply matrices in shared memory in the background (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions").
//
// Each warp has a quarter of the rows, and issues, commits and waits for itself: nothing but the four issuing the same is asked of
// a warpgroup. From the issue to the wait the accumulators hold NaN, and the matrices are read at the wait, the latest moment that
// PTX allows: who reads accumulators or overwrites a matrix too early sees it in the result. The checks find both without luck.
#include "common/interpreter/instructions/wgmma.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/checks/async_proxy.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/instructions/roles.h"
#include "common/interpreter/meetings/meetings.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {
namespace {

// A warp's part of A, as 16-bit numbers; of others, 32 bytes along k are as many of these.
constexpr unsigned kM = 16, kK = 16;
constexpr unsigned kPiece = 16;  // bytes that no layout takes apart

// A matrix descriptor, taken apart (PTX ISA, "Matrix Descriptor Format").
struct Descriptor {
  std::uint32_t address, leading_bytes, stride_bytes, base_offset;
  unsigned swizzle_bytes;
  explicit Descriptor(std::uint64_t bits)
      : address(static_cast<std::uint32_t>(bits & 0x3fff) << 4),
        leading_bytes(static_cast<std::uint32_t>(bits >> 16 & 0x3fff) << 4),
        stride_bytes(static_cast<std::uint32_t>(bits >> 32 & 0x3fff) << 4),
        base_offset(bits >> 49 & 7),
        swizzle_bytes(std::array{0u, 128u, 64u, 32u}[bits >> 62]) {}
  // Bytes from the first element to the piece that begins with (row, k), before it is swizzled; row is m or n.
  std::uint32_t offset(unsigned row, unsigned k, bool transposed) const {
    const unsigned width = std::max(swizzle_bytes, kPiece) / 2;  // elements in a row of the pattern
    if (!transposed) {
      const std::uint32_t along_k = swizzle_bytes ? k * 2 : k / 8 * leading_bytes;
      return row / 8 * stride_bytes + row % 8 * width * 2 + along_k;
    }
    const std::uint32_t along_rows = swizzle_bytes ? leading_bytes : stride_bytes,
                        along_k = swizzle_bytes ? stride_bytes : leading_bytes;
    return row / width * along_rows + row % width * 2 + k / 8 * along_k + k % 8 * width * 2;
  }
};

// A matrix that is read in the background, or a warp's part of one: rows x 16 elements.
struct Operand {
  Descriptor descriptor;
  unsigned first_row, rows;
  bool transposed;
  std::vector<std::uint64_t> versions;  // by piece

  // Calls `visit(address in shared memory as instructions have it, row, k)` for its pieces. Along rows, or along k, lie 8 elements.
  template <class Visit>
  void for_each_piece(Visit&& visit) const {
    for (unsigned row = first_row; row < first_row + rows; row += transposed ? 8 : 1)
      for (unsigned k = 0; k < kK; k += transposed ? 1 : 8)
        visit(static_cast<std::uint32_t>(
                  swizzled(descriptor.address + descriptor.offset(row, k, transposed), descriptor.swizzle_bytes)),
              row - first_row, k);
  }
};

struct Accumulators {
  std::array<std::uint32_t*, 32> registers;  // by lane
  std::vector<std::uint32_t> values;         // 16 rows of n, halves in the low ones of a word
  unsigned n = 0;
  bool are_halves = false;
  unsigned under_way = 0;  // multiplications

  unsigned words() const { return are_halves ? n / 4 : n / 2; }  // of a lane
  // A lane's sum.
  std::uint32_t& value_of(unsigned lane, unsigned i) {
    const unsigned row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    return values[row * n + column];
  }
};

struct Product {
  Pc pc;
  std::uint64_t number;  // of the warp's, from 1 on
  std::uint64_t group;
  Accumulators* d;
  Operand a, b;
  std::vector<std::uint16_t> a_of_registers;  // where that is A
  MmaForm form;
  bool accumulates, negates;
  bool is_done = false;  // but for the registers
};

// What a lane gives.
struct Call {
  Fiber* fiber;
  Pc pc;
  MmaForm form{};
  unsigned n = 0;
  std::uint32_t* d = nullptr;
  WgmmaOperands operands{};
  unsigned groups = 0;  // of a wait
};

// A wgmma is one operation of the four warps: when one of them has waited for it, all have issued it, and what it reads is free.
// Their registers have the result when they have waited themselves.
class Warpgroups final : public Family {
 public:
  explicit Warpgroups(BlockContext& block) : block_(block) {}
  void begin(unsigned threads) override;
  std::string what_is_awaited(const Fiber& fiber) const override;
  Missing what_is_missing(const Fiber& fiber) const override;
  void on_access(Fiber& fiber, const void* p, unsigned size, const void* return_address) override;
  void on_exit(Fiber& fiber) override;

  void fence(Fiber& fiber) { warps_[fiber.warp].fences = true; }
  void issue(const std::array<Call*, 32>& lanes);
  void commit(Fiber& fiber);
  void wait(Fiber& fiber, unsigned groups_under_way);
  /// Whether another warp has still to issue what the thread's wait is for. If so, the thread is woken when that may have changed.
  bool waits_for_other_warps(Fiber& fiber, unsigned groups_under_way);

 private:
  struct Warp {
    std::deque<Product> under_way;
    std::map<std::uint32_t*, Accumulators> accumulators;  // that were ever used, by those of lane 0
    std::uint64_t groups = 0;                             // committed so far
    std::uint64_t issued = 0;
    std::deque<std::pair<std::uint64_t, std::uint64_t>> descriptors;  // of those that not all warps of the warpgroup have issued
    KnowledgePtr read = nullptr;                                      // makes known what its multiplications have read so far
    bool fences = false;                                              // since accumulators were touched last
    Pc pc = 0;                                                        // of the last one issued
  };
  void require_alike(const std::array<Call*, 32>& lanes);
  void require_alike_in_warpgroup(const Call& call);
  void take(Accumulators& d, const std::array<Call*, 32>& lanes);
  void begin_read(const AsyncProxy::Instruction& by, Operand& operand);
  void multiply(Fiber& fiber, Product& multiplication);
  static void put_in_registers(Accumulators& d);
  std::uint64_t last_to_wait_for(const Warp& warp, unsigned groups_under_way) const;
  template <class Visit>
  void for_each_of_warpgroup(unsigned warp, Visit&& visit) {
    for (std::size_t w = warp / 4 * 4; w < std::min<std::size_t>(warp / 4 * 4 + 4, warps_.size()); ++w) visit(w, warps_[w]);
  }
  void note_reads(const Fiber& fiber);
  void wake_waiting();

  BlockContext& block_;
  std::vector<Warp> warps_;
  std::vector<Fiber*> waiting_;  // for other warps
};

void Warpgroups::begin(unsigned threads) {
  warps_.clear();
  warps_.resize((threads + 31) / 32);
  waiting_.clear();
}

// --------------------------------------------------------------------------------------------------------------- issue
void Warpgroups::require_alike(const std::array<Call*, 32>& lanes) {
  const Call& first = *lanes[0];
  for (const Call* const call : lanes)
    if (call->operands.descriptor_a != first.operands.descriptor_a || call->operands.descriptor_b != first.operands.descriptor_b ||
        call->operands.accumulates != first.operands.accumulates)
      block_.reporter.fail(Check::kSynccheck, "wgmma with other descriptors than the warp's lane 0, or another predicate",
                           "all lanes of a warp give the same", call->fiber, user_location(call->pc));
  for (const std::uint64_t bits : {first.operands.descriptor_a, first.operands.descriptor_b}) {
    const Descriptor descriptor(bits);
    const unsigned pattern = 8 * descriptor.swizzle_bytes;
    if (descriptor.base_offset)
      block_.reporter.fail(Check::kMemcheck, "wgmma with a base offset in a descriptor, which the interpreter does not know",
                           "patterns that are aligned to their size, and a base offset of 0", first.fiber, user_location(first.pc));
    if (pattern && descriptor.address % pattern >= descriptor.swizzle_bytes)
      block_.reporter.fail(Check::kMemcheck,
                           "wgmma of a matrix whose first row is row " +
                               std::to_string(descriptor.address % pattern / descriptor.swizzle_bytes) + " of a swizzle's pattern",
                           "a matrix begins with a pattern, which is aligned to 8 rows of its " +
                               std::to_string(descriptor.swizzle_bytes) + " bytes: " + std::to_string(pattern),
                           first.fiber, user_location(first.pc));
  }
}

// A warp's one is compared with that of each warp which has come so far already: all keep those that another one lacks.
void Warpgroups::require_alike_in_warpgroup(const Call& call) {
  Warp& mine = warps_[call.fiber->warp];
  mine.descriptors.emplace_back(call.operands.descriptor_a, call.operands.descriptor_b);
  std::uint64_t fewest = mine.issued;
  for_each_of_warpgroup(call.fiber->warp, [&](std::size_t w, const Warp& other) {
    fewest = std::min(fewest, other.issued);
    const std::uint64_t behind = other.issued - mine.issued;  // how many it has issued since
    if (other.issued < mine.issued || behind >= other.descriptors.size()) return;
    if (other.descriptors[other.descriptors.size() - 1 - behind] != mine.descriptors.back())
      block_.reporter.fail(Check::kSynccheck,
                           "wgmma with other descriptors than warp " + std::to_string(w) + " of the warpgroup has given, at " +
                               at(user_location(other.pc)),
                           "the four warps give the descriptors of the whole matrices: each takes its 16 rows of A itself",
                           call.fiber, user_location(call.pc));
  });
  for_each_of_warpgroup(call.fiber->warp, [&](std::size_t, Warp& warp) {
    while (warp.issued - warp.descriptors.size() < fewest && !warp.descriptors.empty()) warp.descriptors.pop_front();
  });
}

// The accumulators are the instruction's from here on.
void Warpgroups::take(Accumulators& d, const std::array<Call*, 32>& lanes) {
  constexpr std::uint32_t kNan = 0x7fff7fff;  // as a float, and as two halves
  d.n = lanes[0]->n, d.are_halves = lanes[0]->form.sum == Number::kF16;
  d.values.resize(kM * d.n);
  for (unsigned lane = 0; lane < 32; ++lane) {
    d.registers[lane] = lanes[lane]->d;
    lanes[lane]->fiber->special = true;  // who touches accumulators is seen, see on_access()
    for (unsigned i = 0; i < d.words(); ++i) {
      const std::uint32_t word = std::exchange(d.registers[lane][i], kNan);
      if (d.are_halves)
        d.value_of(lane, 2 * i) = word & 0xffff, d.value_of(lane, 2 * i + 1) = word >> 16;
      else
        d.value_of(lane, i) = word;
    }
  }
}

void Warpgroups::begin_read(const AsyncProxy::Instruction& by, Operand& operand) {
  operand.for_each_piece([&](std::uint32_t at, unsigned, unsigned) {
    const std::uintptr_t address = block_.shared.address_at(at);
    block_.async_proxy.require_shared(by, address, kPiece, kPiece);
    operand.versions.push_back(block_.async_proxy.begin_read(by, address, kPiece));
    block_.async_proxy.require_swizzle(by, address, operand.descriptor.swizzle_bytes);
  });
}

// For pictures, how A and B lie: see EventKind::kWgmma.
static std::uint64_t layouts(const WgmmaOperands& operands) {
  constexpr auto kField = [](std::uint64_t descriptor) {  // the strides' 14 bits each, then the swizzle's 2
    return (descriptor >> 16 & 0x3fff) | (descriptor >> 32 & 0x3fff) << 14 | descriptor >> 62 << 28;
  };
  const unsigned flags = (operands.a ? 1u : 0u) | (operands.transposed_a ? 2u : 0u) | (operands.transposed_b ? 4u : 0u);
  return flags | kField(operands.descriptor_a) << 4 | kField(operands.descriptor_b) << 34;
}

unsigned registers_got(BlockContext& block, unsigned warp);  // RegisterPool's

void Warpgroups::issue(const std::array<Call*, 32>& lanes) {
  require_alike(lanes);
  const Call& call = *lanes[0];
  Warp& warp = warps_[call.fiber->warp];
  AsyncProxy::Instruction by{*call.fiber, "wgmma", call.pc};
  warp.pc = call.pc, ++warp.issued;
  require_alike_in_warpgroup(call);
  if (block_.work.options().count)  // b is read for all four warps at once
    block_.counters.count_wgmma(call.pc, ((call.operands.a ? 0 : kM) + (call.fiber->warp % 4 ? 0 : call.n)) * kK * 2);
  if (!warp.fences)
    block_.reporter.fail(Check::kRacecheck, "wgmma after accumulators were touched, or as the first one, without a wgmma.fence",
                         "wgmma.fence after the last access to the accumulators, before wgmma", call.fiber, user_location(call.pc));
  Accumulators& d = warp.accumulators[call.d];
  if (d.under_way && (d.n != call.n || d.are_halves != (call.form.sum == Number::kF16)))
    block_.reporter.fail(Check::kRacecheck, "wgmma with accumulators that one of another shape still uses",
                         "wgmma.wait_group before accumulators are used in another way", call.fiber, user_location(call.pc));
  if (d.under_way++ == 0) take(d, lanes);
  const unsigned first_row = call.fiber->warp % 4 * kM;
  Product multiplication{call.pc,
                         warp.issued,
                         warp.groups,
                         &d,
                         {Descriptor(call.operands.descriptor_a), first_row, kM, call.operands.transposed_a, {}},
                         {Descriptor(call.operands.descriptor_b), 0, call.n, call.operands.transposed_b, {}},
                         {},
                         call.form,
                         call.operands.accumulates,
                         call.operands.negates};
  if (call.operands.a) {
    multiplication.a_of_registers.resize(kM * kK);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i)
        std::memcpy(&multiplication.a_of_registers[(lane / 4 + i % 2 * 8) * kK + lane % 4 * 2 + i / 2 * 8],
                    &lanes[lane]->operands.a[i], 4);
  } else {
    by.operand = "A";
    begin_read(by, multiplication.a);
  }
  by.operand = "B";
  begin_read(by, multiplication.b);
  if (block_.events) [[unlikely]]
    block_.add_event({EventKind::kWgmma, static_cast<std::uint16_t>(call.fiber->warp), 0xffffffffu, call.pc,
                      2ull * kM * call.n * (kK * 2 / bytes_of(call.form.a)), multiplication.a.descriptor.address,
                      multiplication.b.descriptor.address, call.n, layouts(call.operands)});
  if (block_.work.options().count) block_.family<Roles>().multiplies(call.fiber->warp);
  lower_to(each_under_way().fewest_registers, registers_got(block_, call.fiber->warp));
  if (warp.under_way.empty()) ++each_under_way().lonely_products;
  warp.under_way.push_back(std::move(multiplication));
  note_reads(by.fiber);
  wake_waiting();
}

void Warpgroups::commit(Fiber& fiber) {
  Warp& warp = warps_[fiber.warp];
  ++warp.groups;
  if (!warp.under_way.empty()) raise_to(most_under_way().groups, warp.groups - warp.under_way.front().group);
}

// ---------------------------------------------------------------------------------------------------------------- wait
// The other sign for all numbers.
static void negate(std::uint16_t (&a)[kM][kK], Number type) {
  const unsigned bytes = bytes_of(type);
  auto* const all = reinterpret_cast<unsigned char*>(a);
  for (unsigned i = bytes - 1; i < sizeof a; i += bytes) all[i] ^= 0x80;
}

void Warpgroups::multiply(Fiber& fiber, Product& multiplication) {
  const AsyncProxy::Instruction by{fiber, "wgmma", multiplication.pc};
  Accumulators& d = *multiplication.d;
  const auto fetch = [&](const Operand& operand, auto&& at) {
    std::size_t piece = 0;
    operand.for_each_piece([&](std::uint32_t address, unsigned row, unsigned k) {
      const std::uintptr_t here = block_.shared.address_at(address);
      block_.async_proxy.end_read(by, here, kPiece, operand.versions[piece++]);
      std::uint16_t elements[8];
      std::memcpy(elements, reinterpret_cast<const void*>(here), kPiece);
      for (unsigned i = 0; i < 8; ++i) at(operand.transposed ? row + i : row, operand.transposed ? k : k + i) = elements[i];
    });
  };
  std::uint16_t a[kM][kK];
  std::vector<std::array<std::uint16_t, kK>> b(d.n);
  if (multiplication.a_of_registers.empty())
    fetch(multiplication.a, [&](unsigned row, unsigned k) -> std::uint16_t& { return a[row][k]; });
  else
    std::memcpy(a, multiplication.a_of_registers.data(), sizeof a);
  if (multiplication.negates) negate(a, multiplication.form.a);
  fetch(multiplication.b, [&](unsigned row, unsigned k) -> std::uint16_t& { return b[row][k]; });
  for (unsigned j = 0; j < d.n; j += 8) {
    std::uint32_t part[16][8];
    std::uint16_t columns[8][16];
    for (unsigned column = 0; column < 8; ++column) std::copy_n(b[j + column].begin(), 16, columns[column]);
    for (unsigned i = 0; i < kM; ++i)
      for (unsigned column = 0; column < 8; ++column)
        part[i][column] = multiplication.accumulates ? d.values[i * d.n + j + column] : 0;
    if (block_.work.options().mma) multiply_tile(multiplication.form, true, part, a, columns);
    for (unsigned i = 0; i < kM; ++i) std::copy_n(part[i], 8, &d.values[i * d.n + j]);
  }
  multiplication.is_done = true;
}

void Warpgroups::put_in_registers(Accumulators& d) {
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < d.words(); ++i)
      d.registers[lane][i] = d.are_halves ? d.value_of(lane, 2 * i) | d.value_of(lane, 2 * i + 1) << 16 : d.value_of(lane, i);
}

// @return its number; 0: there is none
std::uint64_t Warpgroups::last_to_wait_for(const Warp& warp, unsigned groups_under_way) const {
  std::uint64_t last = 0;
  for (const Product& p : warp.under_way)
    if (p.group + groups_under_way < warp.groups) last = p.number;
  return last;
}

bool Warpgroups::waits_for_other_warps(Fiber& fiber, unsigned groups_under_way) {
  const std::uint64_t last = last_to_wait_for(warps_[fiber.warp], groups_under_way);
  bool waits = false;
  for_each_of_warpgroup(fiber.warp, [&](std::size_t w, const Warp& other) {
    // Of one that has ended, on_exit() tells.
    waits |= other.issued < last && block_.scheduler.warp(block_.scheduler.fiber(static_cast<unsigned>(w), 0)).live;
  });
  if (waits) waiting_.push_back(&fiber);
  return waits;
}

void Warpgroups::note_reads(const Fiber& fiber) {
  if (block_.work.options().racecheck) warps_[fiber.warp].read = without_writes(block_.clock.release(fiber.linear));
}

void Warpgroups::wake_waiting() {
  for (Fiber* const fiber : std::exchange(waiting_, {})) block_.scheduler.wake_in_family(*fiber);
}

std::string Warpgroups::what_is_awaited(const Fiber& fiber) const {
  return std::find(waiting_.begin(), waiting_.end(), &fiber) == waiting_.end() ? ""
                                                                               : " for a wgmma that not all four warps have issued";
}

Family::Missing Warpgroups::what_is_missing(const Fiber& fiber) const {
  if (what_is_awaited(fiber).empty()) return {};
  return {"", false,
          "the four warps of a warpgroup execute the same wgmma, and none of them waits for another one between two of them"};
}

void Warpgroups::wait(Fiber& fiber, unsigned groups_under_way) {
  Warp& warp = warps_[fiber.warp];
  const std::uint64_t last = last_to_wait_for(warp, groups_under_way);
  if (!last) return;
  for_each_of_warpgroup(fiber.warp, [&](std::size_t w, Warp& other) {
    for (Product& p : other.under_way)
      if (p.number <= last && !p.is_done) multiply(fiber, p);
    if (w != fiber.warp && other.read) block_.clock.acquire(fiber.linear, other.read);
  });
  note_reads(fiber);
  while (!warp.under_way.empty() && warp.under_way.front().number <= last) {
    Accumulators& d = *warp.under_way.front().d;
    if (--d.under_way == 0) put_in_registers(d);
    warp.under_way.pop_front();
  }
}

// --------------------------------------------------------------------------------------------------------- accumulators
void Warpgroups::on_access(Fiber& fiber, const void* p, unsigned size, const void* return_address) {
  Warp& warp = warps_[fiber.warp];
  const auto* const begin = static_cast<const char*>(p);
  for (const auto& [key, d] : warp.accumulators) {
    const auto* const first = reinterpret_cast<const char*>(d.registers[fiber.lane]);
    if (begin >= first + d.words() * sizeof(std::uint32_t) || begin + size <= first) continue;
    if (d.under_way == 0) {
      warp.fences = false;
      continue;
    }
    const auto last =
        std::find_if(warp.under_way.rbegin(), warp.under_way.rend(), [&, of = &d](const auto& m) { return m.d == of; });
    const bool committed = last->group < warp.groups;
    block_.reporter.fail(Check::kRacecheck,
                         "accumulator " + std::to_string((std::max(begin, first) - first) / 4) + " of the wgmma at " +
                             at(user_location(last->pc)) + " is touched while that is under way" +
                             (committed ? "" : ": it is in no group yet"),
                         committed ? "wgmma.wait_group before accumulators are read or written"
                                   : "wgmma.commit_group, then wgmma.wait_group, before accumulators are read or written",
                         &fiber, user_location(to_pc(return_address)));
  }
}

void Warpgroups::on_exit(Fiber& fiber) {
  wake_waiting();
  const Warp& warp = warps_[fiber.warp];
  if (!warp.under_way.empty())
    block_.reporter.fail(Check::kRacecheck, "the thread ends while its wgmma is under way",
                         "wgmma.commit_group, then wgmma.wait_group 0, before the thread ends", &fiber,
                         user_location(warp.under_way.front().pc));
  if (block_.scheduler.live() > 1) return;
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const Warp& first = warps_[w / 4 * 4];
    if (warps_[w].issued == first.issued && (w % 4 || w + 3 < warps_.size() || !warps_[w].issued)) continue;
    const Warp& one = warps_[w].issued > first.issued ? warps_[w] : first;
    block_.reporter.fail(
        Check::kSynccheck,
        "wgmma by some warps of a warpgroup: warp " + std::to_string(w / 4 * 4) + " has issued " + std::to_string(first.issued) +
            ", warp " + std::to_string(w) + " " + std::to_string(warps_[w].issued),
        "the four warps of a warpgroup, of which the first one's number is a multiple of 4, execute the same wgmma", &fiber,
        user_location(one.pc));
  }
}

// ------------------------------------------------------------------------------------------------------------ registers
// How many registers the threads of a warp have. The compiler knows how many a kernel begins with; here these are as many as there
// can be, as in a kernel whose __launch_bounds__ say its number of threads. So an inc to fewer is an error only later.
class RegisterPool final : public Family {
 public:
  explicit RegisterPool(BlockContext& block) : block_(block) {}
  void begin(unsigned threads) override {
    const unsigned warps = (threads + 31) / 32;
    const unsigned at_launch = std::min(256u, kRegisters / (warps * 32)) / 8 * 8;
    held_.assign(warps, at_launch);
    got_.assign(warps, 0);
    asked_.assign(warps, {});
    free_ = 0;
    waiting_.clear();
  }
  std::string what_is_awaited(const Fiber& fiber) const override {
    for (const auto& [waiting, registers] : waiting_)
      if (waiting->warp == fiber.warp)
        return " for " + std::to_string(registers) + " registers a thread: it has " + std::to_string(held_[fiber.warp]) + ", and " +
               std::to_string(free_) + " are free for a warp's threads";
    return "";
  }
  Missing what_is_missing(const Fiber& fiber) const override {
    if (what_is_awaited(fiber).empty()) return {};
    return {"", true,
            "other warpgroups give back enough registers by setmaxnreg.dec: a block has those of its launch, and no more"};
  }

  void on_exit(Fiber& fiber) override {
    if (block_.scheduler.live() > 1) return;
    for (std::size_t w = 0; w < asked_.size(); ++w) {
      const Asked &mine = asked_[w], &first = asked_[w / 4 * 4], &one = mine.times > first.times ? mine : first;
      if (mine.times == first.times) continue;
      block_.reporter.fail(Check::kSynccheck,
                           "setmaxnreg by some warps of a warpgroup: warp " + std::to_string(w / 4 * 4) + " has executed " +
                               std::to_string(first.times) + ", warp " + std::to_string(w) + " " + std::to_string(mine.times),
                           "the four warps of a warpgroup, of which the first one's number is a multiple of 4, execute the same "
                           "setmaxnreg",
                           &fiber, user_location(one.pc));
    }
  }

  void set(Fiber& fiber, unsigned registers, bool more, Pc pc) {
    ++asked_[fiber.warp].times, asked_[fiber.warp].pc = pc;
    unsigned& held = held_[fiber.warp];
    const char* const name = more ? "setmaxnreg.inc" : "setmaxnreg.dec";
    if (more && registers < held && held_at_launch(held)) {
      free_ += held - registers;
      held = registers;
      return;
    }
    if (more ? registers < held : registers > held)
      block_.reporter.fail(Check::kSynccheck,
                           std::string(name) + " to " + std::to_string(registers) + " registers, where the thread has " +
                               std::to_string(held) +
                               (held_at_launch(held) ? ", as many as a launch of so many threads can give it" : ""),
                           more ? "inc asks for at least as many as there are" : "dec keeps at most as many as there are", &fiber,
                           user_location(pc));
    if (!more) {
      free_ += held - registers;
      held = registers, got_[fiber.warp] = std::min(got_[fiber.warp], registers);
      block_.activity.note_change();
      for (std::size_t i = 0; i < waiting_.size();) {
        const auto [waiter, wanted] = waiting_[i];
        if (!take(waiter->warp, wanted)) {
          ++i;
          continue;
        }
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
        block_.scheduler.wake_in_family(*waiter);
      }
      return;
    }
    if (take(fiber.warp, registers)) return;
    waiting_.emplace_back(&fiber, registers);
    block_.scheduler.wait_in_family(fiber, name, pc);
  }
  unsigned got(unsigned warp) const { return got_[warp]; }  // by setmaxnreg.inc, for each thread of the warp

 private:
  static constexpr unsigned kRegisters = 65536;  // of an SM
  bool held_at_launch(unsigned held) const {
    return held == std::min(256u, kRegisters / static_cast<unsigned>(held_.size() * 32)) / 8 * 8;
  }
  bool take(unsigned warp, unsigned registers) {
    const unsigned more = registers - held_[warp];
    if (more > free_) return false;
    free_ -= more, held_[warp] = registers;
    got_[warp] = registers;
    return true;
  }

  BlockContext& block_;
  struct Asked {
    unsigned times = 0;
    Pc pc = 0;  // of the last time
  };
  std::vector<unsigned> held_;  // by warp, for each of its threads
  std::vector<unsigned> got_;   // the same, since it has asked for more; 0: it never has
  std::vector<Asked> asked_;    // by warp
  unsigned free_ = 0;           // given back, for the threads of one warp
  std::vector<std::pair<Fiber*, unsigned>> waiting_;
};

unsigned registers_got(BlockContext& block, unsigned warp) { return block.family<RegisterPool>().got(warp); }

// The lanes meet; the last one that comes does it for the warp. What one lane has waited for, all of the warp know from here on.
template <void (*kDo)(const std::array<Call*, 32>&)>
void together(void* const* lanes, unsigned) {
  std::array<Call*, 32> calls;
  for (int lane = 0; lane < 32; ++lane) calls[lane] = static_cast<Call*>(lanes[lane]);
  current_block->pass_warp_barrier(calls[0]->fiber->warp, 0xffffffffu);
  kDo(calls);
}

// The warp's log has just been drained, so this is its place.
void note(EventKind kind, const Call& call) {
  if (current_block->events) [[unlikely]]
    current_block->add_event({kind, static_cast<std::uint16_t>(call.fiber->warp), 0xffffffffu, call.pc, call.groups});
}
void do_fence(const std::array<Call*, 32>& lanes) {
  current_block->family<Warpgroups>().fence(*lanes[0]->fiber);
  note(EventKind::kWgmmaFence, *lanes[0]);
}
void do_issue(const std::array<Call*, 32>& lanes) { current_block->family<Warpgroups>().issue(lanes); }
void do_commit(const std::array<Call*, 32>& lanes) {
  current_block->family<Warpgroups>().commit(*lanes[0]->fiber);
  note(EventKind::kWgmmaCommit, *lanes[0]);
}
// The end of what the warp has read belongs to the time before the wait's end, whichever lane says so to others.
void do_wait(const std::array<Call*, 32>& lanes) {
  current_block->family<Warpgroups>().wait(*lanes[0]->fiber, lanes[0]->groups);
  note(EventKind::kWgmmaWait, *lanes[0]);
  current_block->pass_warp_barrier(lanes[0]->fiber->warp, 0xffffffffu);
}

}  // namespace

// ------------------------------------------------------------------------------------------------------ what a kernel calls
void wgmma_fence() {
  const Entered in;
  Call call{&in.fiber, to_pc(__builtin_return_address(0))};
  in.block.meetings.instruction_of_warp(in.fiber, "wgmma.fence", &call, together<do_fence>, call.pc);
}
void wgmma_commit_group() {
  const Entered in;
  Call call{&in.fiber, to_pc(__builtin_return_address(0))};
  in.block.meetings.instruction_of_warp(in.fiber, "wgmma.commit_group", &call, together<do_commit>, call.pc);
}
void wgmma_wait_group(unsigned groups) {
  const Entered in;
  Call call{&in.fiber, to_pc(__builtin_return_address(0))};
  call.groups = groups;
  in.block.scheduler.rendezvous(in.fiber);
  while (in.block.family<Warpgroups>().waits_for_other_warps(in.fiber, groups))
    in.block.scheduler.wait_in_family(in.fiber, "wgmma.wait_group", call.pc);
  in.block.meetings.instruction_of_warp(in.fiber, "wgmma.wait_group", &call, together<do_wait>, call.pc);
}
// Each lane's accumulators and operands stay where they are until the last lane has come.
static void issue_wgmma(const MmaForm& form, unsigned n, std::uint32_t* d, const WgmmaOperands& operands,
                        const void* return_address) {
  const Entered in;
  Call call{&in.fiber, to_pc(return_address), form, n, d, operands};
  in.block.meetings.instruction_of_warp(in.fiber, "wgmma", &call, together<do_issue>, call.pc);
}
void wgmma_m64k16(float* d, unsigned n, std::uint64_t descriptor_a, std::uint64_t descriptor_b, bool accumulates, bool is_half,
                  bool transposed_a, bool transposed_b) {
  const Number type = is_half ? Number::kF16 : Number::kBf16;
  issue_wgmma({type, type, Number::kF32}, n, reinterpret_cast<std::uint32_t*>(d),
              {descriptor_a, descriptor_b, nullptr, accumulates, false, transposed_a, transposed_b}, __builtin_return_address(0));
}
void wgmma(const MmaForm& form, unsigned n, std::uint32_t* d, const WgmmaOperands& operands) {
  issue_wgmma(form, n, d, operands, __builtin_return_address(0));
}
void setmaxnreg(unsigned registers, bool more) {
  const Entered in;
  Call call{&in.fiber, to_pc(__builtin_return_address(0))};
  const Pc pc = call.pc;
  in.block.meetings.instruction_of_warp(
      in.fiber, "setmaxnreg", &call, [](void* const*, unsigned) {}, pc);
  if (in.fiber.lane == 0) in.block.family<RegisterPool>().set(in.fiber, registers, more, pc);
}

std::uint32_t shared_address(const void* p) {
  const Entered in(Worlds::kBoth);
  return in.block.shared.instruction_address(reinterpret_cast<std::uintptr_t>(p));
}
void* shared_at(std::uint32_t address) {
  const Entered in(Worlds::kBoth);
  return reinterpret_cast<void*>(in.block.shared.address_at(address));
}
// Who leaves out __cvta_generic_to_shared has what a GPU takes, too: there, the low half of a pointer to shared memory is the
// address.
void* shared_at_low_half(std::uint32_t low_half) {
  const Entered in(Worlds::kBoth);
  for (const SharedMemory::Part* const part : {&in.block.shared.arena, &in.block.shared.statics})
    if (const std::uint32_t offset = low_half - static_cast<std::uint32_t>(part->begin); offset < part->bytes) {
      in.block.work.launch->note(
          "an instruction gets half a pointer as an address of shared memory, which PTX does not promise to be one: "
          "__cvta_generic_to_shared() gives the address");
      return reinterpret_cast<void*>(part->begin + offset);
    }
  return nullptr;
}

}  // namespace interpreter
