// What a block records of what happens in it, for pictures.
#include "common/interpreter/block/recording.h"

#include <algorithm>

#include "common/interpreter/block/block.h"

namespace interpreter {

// -------------------------------------------------------------------------------------------------------------- marks
void Marks::begin(unsigned threads) {
  free_.clear();
  for (Mark& mark : marks_) free_.push_back(&mark);
  registers_.assign((threads + 31) / 32, 0);
}

void Marks::note(Fiber& fiber, const Event& event) {
  if (free_.empty()) free_.push_back(&marks_.emplace_back());
  Mark& mark = *free_.back();
  free_.pop_back();
  mark.family = this, mark.event = event;
  block_.record(fiber, mark, 1, event.pc);
}

std::uint64_t Marks::take_registers(unsigned warp) { return std::exchange(registers_[warp], 0); }

void Marks::on_request(unsigned warp, const Request& request) {
  const auto mark_of = [&](unsigned i) { return static_cast<Mark*>(reinterpret_cast<Record*>(request.addresses[i])); };
  Event all[32];
  unsigned different = 0, i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    Mark* const mark = mark_of(i);
    free_.push_back(mark);
    const Event& event = mark->event;
    const auto same = std::find_if(all, all + different, [&](const Event& other) {
      const bool same_place = other.c == event.c || event.kind == EventKind::kStoreAsync;  // of these it is each lane's own
      return other.kind == event.kind && other.a == event.a && other.b == event.b && same_place && other.d == event.d &&
             other.e == event.e;
    });
    if (same == all + different) {
      all[different] = event;
      all[different].warp = static_cast<std::uint16_t>(warp), all[different].pc = request.pc, all[different].lanes = 0;
      ++different;
    }
    same->lanes |= rest & -rest;
    same->c = std::min(same->c, event.c);
  }
  for (unsigned each = 0; each < different; ++each)
    if (all[each].kind == kRegisters)
      registers_[warp] = all[each].a;
    else if (block_.events)
      block_.add_event(all[each]);
}

// --------------------------------------------------------------------------------------------------- what a block records
void Block::add_event(Event event) {
  event.warp = static_cast<std::uint16_t>(event.warp + work_.rank * scheduler_.warps());
  events->add(event);
}

void Block::note_event(Fiber& fiber, const Event& event) {
  if (!worlds_.in_other()) family<Marks>().note(fiber, event);
}

void Block::record_request(unsigned w, const Request& request) {
  Event event{EventKind::kGlobalLoad, static_cast<std::uint16_t>(w), request.lanes, request.pc};
  event.a = request.size;
  const std::uint64_t lowest = *std::min_element(request.addresses, request.addresses + request.count);
  if (request.shared && cluster().size() > 1 && record_visits(w, request)) return;
  if (request.shared) {
    event.kind = request.op == Op::kMatrixLoad    ? EventKind::kMatrixLoad
                 : request.op == Op::kMatrixStore ? EventKind::kMatrixStore
                 : request.op == Op::kLoad        ? EventKind::kSharedLoad
                 : request.op == Op::kStore       ? EventKind::kSharedStore
                                                  : EventKind::kSharedAtomic;
    const Wavefronts wavefronts = wavefronts_of(request);
    event.b = wavefronts.actual, event.d = wavefronts.ideal;
    event.c = shared_.instruction_address(lowest);
    if (request.op == Op::kMatrixLoad) event.e = family<Marks>().take_registers(w);
  } else {
    event.kind = request.op == Op::kLoad    ? EventKind::kGlobalLoad
                 : request.op == Op::kStore ? EventKind::kGlobalStore
                                            : EventKind::kGlobalAtomic;
    std::uint64_t sectors[64];
    event.b = sectors_of(request, sectors);
    event.c = lowest - global_begin_;
  }
  add_event(event);
  events->add_addresses(request);
}

// If a lane accesses another block's shared memory, an event for each block that lanes access. @return whether one does
bool Block::record_visits(unsigned w, const Request& request) {
  const auto is_own = [&](std::uint64_t address) { return shared_.contains(address); };
  if (std::all_of(request.addresses, request.addresses + request.count, is_own)) return false;
  for (const BlockContext* const block : cluster().blocks()) {
    Event event{EventKind::kClusterLoad, static_cast<std::uint16_t>(w), 0, request.pc, request.size, 0, ~0ull, block->work.rank};
    if (request.op != Op::kLoad) event.kind = request.op == Op::kStore ? EventKind::kClusterStore : EventKind::kClusterAtomic;
    unsigned i = 0;
    for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
      if (!block->shared.contains(request.addresses[i])) continue;
      event.lanes |= rest & -rest;
      event.c = std::min<std::uint64_t>(event.c, block->shared.instruction_address(request.addresses[i]));
    }
    if (event.lanes) add_event(event);
  }
  return true;
}

}  // namespace interpreter
