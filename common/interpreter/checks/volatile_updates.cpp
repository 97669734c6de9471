// Updates through volatile that get lost, and lanes that take each other's data through volatile without waiting.
//
// volatile makes each access one that others see. It does not make a read and a write one, and it makes nobody wait. Threads that
// read volatile memory to decide something (a flag, a lock, whose turn it is) may do so without order: that is what it is for. A
// read is no such look when a volatile store follows it in the same basic block: whatever was read, the thread goes on to store.
//   - If it stores where it has read, others' stores there that nothing orders before it may be lost: an atomic is missing.
//   - If it stores elsewhere what it made of data of another lane of its warp: __syncwarp() is missing. Lanes have not been in step
//     by themselves since Volta.
// Who has used atomics or looked at volatile memory to decide since the last barrier may own a lock, or have its turn: believed.
#include "common/interpreter/checks/volatile_updates.h"

#include <bit>

#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

void VolatileUpdates::begin(unsigned threads) {
  threads_.resize(threads);
  looking_.assign((threads + 31) / 32, 0);
  pass_barrier();
}

void VolatileUpdates::pass_barrier() {
  for (Thread& thread : threads_) thread.count = 0, thread.has_looked = false;
}

void VolatileUpdates::end_looks(unsigned w, std::uint32_t lanes) {
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    Thread& thread = threads_[w * 32 + static_cast<unsigned>(std::countr_zero(rest))];
    for (unsigned i = 0; i < thread.count; ++i) thread.has_looked |= thread.looks[i].written.thread != 0;
    thread.count = 0;
  }
  looking_[w] &= ~lanes;
}

void VolatileUpdates::note_look(ShadowedRange& range, unsigned w, unsigned lane, const Request& request, std::uintptr_t address) {
  const unsigned self = w * 32 + lane;
  Thread& thread = threads_[self];
  if (thread.has_looked) return;
  const Stamp written = unordered_strong_write(range, clock_, self, address);
  if (thread.count == std::size(thread.looks)) {  // too many to remember
    thread.has_looked |= written.thread != 0;
    return;
  }
  const Cell& cell = cell_at(range, address);
  // Of many readers it is not known who they were.
  const bool read_before =
      cell.read.thread == clock_.id(self) || cell.read_level() >= ReadLevel::kWarps ||
      (cell.read_level() == ReadLevel::kLanes && thread_of(cell.read.thread) / 32 == w && (cell.lanes >> lane & 1));
  thread.looks[thread.count++] = {address, request.pc, cell.read.thread != 0 && read_before, written};
  looking_[w] |= 1u << lane;
}

std::optional<Diagnosis> VolatileUpdates::check_store(ShadowedRange& range, unsigned w, unsigned lane, const Request& request,
                                                      std::uintptr_t address) {
  const Fiber& fiber = scheduler_.fiber(w, lane);
  Thread& self = threads_[w * 32 + lane];
  const unsigned count = std::exchange(self.count, 0);
  looking_[w] &= ~(1u << lane);
  const auto who = [&](ThreadId thread) { return reporter_.name_of(thread, clock_); };
  const auto report_of = [&](std::string what, const char* expected, Pc pc, std::uintptr_t where) {
    Diagnosis d = reporter_.diagnose(Check::kRacecheck, std::move(what), expected, &fiber, user_location(pc));
    d.variable = reporter_.variable_at(reinterpret_cast<const void*>(where));
    return d;
  };
  for (unsigned i = 0; i < count; ++i) {
    const Look& look = self.looks[i];
    const std::string place = reporter_.describe(reinterpret_cast<const void*>(look.address));
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
