#include "common/interpreter/report/reporter.h"

#include <cctype>

#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/memory/global_memory.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

// Another block of the cluster, whose shared memory holds `p`.
const BlockContext* Reporter::peer_at(const void* p) const {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  return shared_.contains(address) || !work_.cluster ? nullptr : work_.cluster->peer_at(address);
}

Reporter::Part Reporter::dynamic_at(std::uintptr_t address) const {
  const std::size_t offset = address - shared_.arena.begin;
  const SharedBytes::Place place = work_.launch->launch.shared.place(offset);
  if (!place.part.name) return {shared_.dynamic(), shared_.dynamic_bytes, "dynamic shared memory"};
  Part found{shared_.dynamic() + place.begin, place.part.bytes, place.part.name};
  const std::string number = std::to_string(place.number);
  if (place.is_numbered && place.of) found.name = place.of + (" " + number) + ", " + found.name;
  if (place.is_numbered && !place.of) found.name += "[" + number + "]";
  if (const std::size_t size = place.part.panel_bytes) {
    const std::size_t panel = (offset - place.begin) / size;
    if (size < place.part.bytes) found.name += ", panel " + std::to_string(panel);
    found.begin += panel * size, found.bytes = size, found.is_panel = true;
  }
  return found;
}

std::string Reporter::variable_at(const void* p) const {
  if (const BlockContext* const peer = peer_at(p)) return peer->reporter.variable_at(p);
  const GlobalMemory& global = GlobalMemory::instance();
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  if (global.contains(address)) return global.nearest(p).label;
  if (shared_.arena.contains(address)) return dynamic_at(address).name;
  const std::size_t offset = address - shared_.statics.begin;
  if (offset < shared_.statics.bytes) {
    const SharedVariable* best = nullptr;  // the one that holds it, or the last before it
    for (const SharedVariable& v : shared_variables())
      if (v.offset <= offset) best = &v;
    if (best) return best->name;
  }
  if (const Variable* v = inside(p, image()) ? variable_near(p) : nullptr) return v->name;
  return "";
}

std::string Reporter::describe(const void* p) const {
  if (const BlockContext* const peer = peer_at(p)) return peer->reporter.describe(p) + " of block " + to_text(peer->work.index);
  const GlobalMemory& global = GlobalMemory::instance();
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  const std::string name = variable_at(p);
  const char* begin = nullptr;
  std::size_t bytes = 0;
  const char* released = "";
  bool is_panel = false;
  if (global.contains(address)) {
    const GlobalMemory::Allocation a = global.nearest(p);
    if (!a.begin) return "global memory with no allocation";
    begin = a.begin, bytes = a.bytes;
    if (a.released) released = ", which has been released";
  } else if (shared_.arena.contains(address)) {
    const Part part = dynamic_at(address);
    begin = part.begin, bytes = part.bytes, is_panel = part.is_panel;
    if (p == begin && bytes == sizeof(std::uint64_t)) return name;  // an mbarrier
  } else if (!name.empty()) {
    for (const SharedVariable& v : shared_variables())
      if (v.name == name && v.offset <= address - shared_.statics.begin)
        begin = reinterpret_cast<const char*>(shared_.statics.begin) + v.offset, bytes = v.bytes;
    if (const Variable* v = inside(p, image()) ? variable_near(p) : nullptr) begin = v->begin, bytes = v->bytes;
  }
  if (!begin) return "address " + std::to_string(address);
  const std::ptrdiff_t offset = static_cast<const char*>(p) - begin;
  const std::string row = is_panel ? ", row " + std::to_string(offset / SharedPart::kRowBytes) : "";
  return name + " (byte " + std::to_string(offset) + " of " + std::to_string(bytes) + row + ")" + released;
}

AccessedThrough Reporter::through(const void* p, Pc pc, bool store) const {
  return shared_.arena.contains(reinterpret_cast<std::uintptr_t>(p)) ? accessed_through(pc, store) : AccessedThrough();
}

std::string Reporter::describe_element(const void* p, const AccessedThrough& through, unsigned size) const {
  std::string text = describe(p);
  if (through.bytes != size || text.back() != ')') return text;
  const std::size_t offset = static_cast<const char*>(p) - dynamic_at(reinterpret_cast<std::uintptr_t>(p)).begin;
  if (offset % size != 0) return text;
  text.back() = ':';
  return text + " " + through.type + " " + std::to_string(offset / size) + ")";
}

std::string Reporter::describe(const void* p, Pc pc, bool store, unsigned size) const {
  const AccessedThrough pointer = through(p, pc, store);
  return describe_element(p, pointer, size) + (pointer.name.empty() ? "" : ", through " + pointer.name);
}

std::string Reporter::name_of(ThreadId thread, const BlockClock& clock) const {
  constexpr std::uint64_t kNumber = (1ull << 39) - 1;  // in the launch
  const Launch& launch = work_.launch->launch;
  const bool engine = thread & kEngine;
  const std::uint64_t block = block_of(thread & ~kEngine);
  std::string text = engine ? "the copy engine" : "thread " + to_text(unflatten(thread_of(thread), launch.block));
  if (block != clock.block()) text += " of block " + to_text(unflatten(block & kNumber, launch.grid));
  return text;
}

std::string Reporter::name_of(const Stamp& access, const BlockClock& clock) const {
  const bool by_engine = access.pc & kEnginePc;
  return (access.thread & kEngine) && !by_engine ? "a copy in the background" : name_of(access.thread, clock);
}

Diagnosis Reporter::diagnose(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where) const {
  Diagnosis d;
  d.check = check;
  d.what = std::move(what), d.expected = std::move(expected);
  d.file = where.file, d.line = where.line, d.called_at = where.called_at, d.called_in = where.called_in;
  d.kernel = work_.launch->kernel_name();
  d.block = work_.index;
  if (fiber) d.thread = fiber->thread, d.warp = static_cast<int>(fiber->warp), d.lane = static_cast<int>(fiber->lane);
  return d;
}

void Reporter::fail(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where,
                    std::string variable) {
  if (current_block->in_other_world()) current_block->end_other_world_in_error();
  if (fiber && check == Check::kMemcheck) current_block->look_back(*fiber);
  {
    Diagnosis d = diagnose(check, std::move(what), std::move(expected), fiber, where);
    d.variable = std::move(variable);
    report(std::move(d));
  }
  current_block->give_up();  // the fibers are dropped where they stand: kernels own nothing
  __builtin_unreachable();   // which g++ does not see of a virtual function
}

void Reporter::fail(Diagnosis d) {
  if (current_block->in_other_world()) current_block->end_other_world_in_error();
  report(std::move(d));
  current_block->give_up();
  __builtin_unreachable();
}

void Reporter::report(Diagnosis d) {
  // What else goes wrong after a read of uninitialised bytes may come from them; but a race there may be what they come from, or
  // one on another part of the same kind: stage 1 in place of stage 0.
  const auto kind = [](std::string variable) {
    std::erase_if(variable, [](unsigned char c) { return std::isdigit(c); });
    return variable;
  };
  const bool may_explain =
      d.check == Check::kRacecheck && suspects() && kind(d.variable) == kind(suspected_.front().diagnosis.variable);
  work_.launch->fail(suspects() && !may_explain ? suspected_.front().diagnosis : std::move(d), work_.cluster->events);
}

void Reporter::tell(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where,
                    std::string variable, const std::string& other_place) {
  if (!keeps_going() || current_block->in_other_world())
    fail(check, std::move(what), std::move(expected), fiber, where, std::move(variable));
  Diagnosis d = diagnose(check, std::move(what), std::move(expected), fiber, where);
  d.variable = std::move(variable);
  if (fiber && check == Check::kMemcheck) current_block->look_back(*fiber);
  tell(std::move(d), other_place);
}

void Reporter::tell(Diagnosis d, const std::string& other_place) {
  if (!keeps_going() || current_block->in_other_world()) fail(std::move(d));
  if (d.check != Check::kRacecheck && confirm())  // what may have led to it
    current_block->give_up();
  if (!keep_going_.tell(d, other_place)) fail(std::move(d));
}

bool Reporter::confirm() {
  while (suspects()) {
    Diagnosis d = std::move(suspected_.front().diagnosis);
    suspected_.erase(suspected_.begin());
    if (keep_going_.tell(d, "")) continue;
    work_.launch->fail(std::move(d), work_.cluster->events);
    return true;
  }
  return false;
}

void Reporter::fail_stack_overflow(const Fiber& fiber, Pc pc) {
  fail(Check::kStackOverflow, "stack overflow", kStackExpected, &fiber, user_location(pc));
}

}  // namespace interpreter
