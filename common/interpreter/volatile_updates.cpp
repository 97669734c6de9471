// Updates through volatile that get lost, and lanes that take each other's data through volatile without waiting.
//
// volatile makes each access one that others see. It does not make a read and a write one, and it makes nobody wait. Threads that
// read volatile memory to decide something (a flag, a lock, whose turn it is) may do so without order: that is what it is for. A
// read is no such look when a volatile store follows it in the same basic block: whatever was read, the thread goes on to store.
//   - If it stores where it has read, others' stores there that nothing orders before it may be lost: an atomic is missing.
//   - If it stores elsewhere what it made of data of another lane of its warp: __syncwarp() is missing. Lanes have not been in step
//     by themselves since Volta.
// Who has used atomics or looked at volatile memory to decide since the last barrier may own a lock, or have its turn: believed.
#include <bit>

#include "common/interpreter/block_parts.h"

namespace interpreter {

// The lanes have passed a branch: what others have written and they have read before it, they have looked at.
void Block::end_looks(Warp& warp, unsigned w, std::uint32_t lanes) {
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    Fiber& fiber = fibers_[w * 32 + static_cast<unsigned>(std::countr_zero(rest))];
    for (unsigned i = 0; i < fiber.looks_before_store; ++i) fiber.has_looked |= fiber.looks_at[i].written.thread != 0;
    fiber.looks_before_store = 0;
  }
  warp.looking &= ~lanes;
}

void Block::note_look(ShadowedRange& range, unsigned w, unsigned lane, const Request& request, std::uintptr_t address) {
  Fiber& fiber = fibers_[w * 32 + lane];
  if (fiber.has_looked) return;
  const Stamp written = unordered_strong_write(range, clock_, fiber.linear, address);
  if (fiber.looks_before_store == std::size(fiber.looks_at)) {  // too many to remember
    fiber.has_looked |= written.thread != 0;
    return;
  }
  const Cell& cell = cell_at(range, address);
  // Of many readers it is not known who they were.
  const bool read_before =
      cell.read.thread == clock_.id(fiber.linear) || cell.read_level() >= ReadLevel::kWarps ||
      (cell.read_level() == ReadLevel::kLanes && thread_of(cell.read.thread) / 32 == w && (cell.lanes >> lane & 1));
  fiber.looks_at[fiber.looks_before_store++] = {address, request.pc, cell.read.thread != 0 && read_before, written};
  warps_[w].looking |= 1u << lane;
}

std::optional<Diagnosis> Block::check_update(ShadowedRange& range, unsigned w, unsigned lane, const Request& request,
                                             std::uintptr_t address) {
  Warp& warp = warps_[w];
  Fiber& fiber = fibers_[w * 32 + lane];
  const unsigned count = std::exchange(fiber.looks_before_store, 0);
  warp.looking &= ~(1u << lane);
  const auto who = [&](ThreadId thread) {
    std::string text = "thread " + to_text(unflatten(thread_of(thread), launch_->launch.block));
    if (block_of(thread) != clock_.block())
      text += " of block " + to_text(unflatten(block_of(thread) & ((1ull << 40) - 1), launch_->launch.grid));
    return text;
  };
  const auto report_of = [&](std::string what, const char* expected, Pc pc, std::uintptr_t where) {
    Diagnosis d = diagnose(Check::kRacecheck, std::move(what), expected, &fiber, user_location(pc), *this);
    d.variable = variable_at(reinterpret_cast<const void*>(where));
    return d;
  };
  for (unsigned i = 0; i < count; ++i) {
    const Fiber::Look& look = fiber.looks_at[i];
    const std::string place = describe(reinterpret_cast<const void*>(look.address));
    if (look.address != address) {
      const bool same_warp = block_of(look.written.thread) == clock_.block() && thread_of(look.written.thread) / 32 == w;
      if (look.written.thread && same_warp && request.shared && !look.guarded)
        return report_of("race on " + place + ": written by " + who(look.written.thread) + " at " +
                             at(user_location(look.written.pc & ~kPcFlags)) +
                             ", then read by this thread, with no order between them: volatile makes no lane wait for another",
                         "__syncwarp() between the two", look.pc, look.address);
      continue;
    }
    // Another lane in the same instruction, or somebody before.
    ThreadId other = 0;
    Pc there = request.pc;
    unsigned n = 0;
    for (std::uint32_t rest = request.lanes; rest && !other; rest &= rest - 1, ++n)
      if (request.addresses[n] == address && !(rest & -rest & 1u << lane))
        other = clock_.id(w * 32 + static_cast<unsigned>(std::countr_zero(rest)));
    if (!other && !look.guarded) {
      const Stamp write = unordered_strong_write(range, clock_, fiber.linear, address);
      other = write.thread, there = write.pc & ~kPcFlags;
    }
    if (other)
      return report_of(
          "race on " + place + ": " + who(other) + " writes it too, at " + at(user_location(there)) +
              ", with no order between the two; this thread's read and its write are not one for being volatile, and what "
              "is written between them gets lost",
          "an atomic: it reads and writes in one", request.pc, address);
  }
  return std::nullopt;
}

}  // namespace interpreter
