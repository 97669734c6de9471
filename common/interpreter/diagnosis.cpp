// From a failed check to what its report says.
#include <cstdio>

#include "common/interpreter/block.h"
#include "common/interpreter/block_parts.h"

namespace interpreter {

std::string at(const Location& l) { return l.file.empty() ? "an unknown line" : l.file + ":" + std::to_string(l.line); }

std::string to_text(uint3 i) { return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")"; }

std::string hex(unsigned x) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", x);
  return text;
}

Diagnosis diagnose(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where,
                   const Block& block) {
  Diagnosis d;
  d.check = check;
  d.what = std::move(what), d.expected = std::move(expected);
  d.file = where.file, d.line = where.line;
  d.kernel = block.launch().kernel_name();
  d.block = block.index();
  if (fiber) d.thread = fiber->thread, d.warp = static_cast<int>(fiber->warp), d.lane = static_cast<int>(fiber->lane);
  return d;
}

std::string Block::variable_at(const void* p) const {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  if (address - global_begin_ < GlobalMemory::kBytes) return global_.nearest(p).label;
  if (address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes) return "dynamic shared memory";
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(tls_begin_);
  if (offset < tls_bytes_) {
    const SharedVariable* best = nullptr;  // the one that holds it, or the last before it
    for (const SharedVariable& v : shared_variables())
      if (v.offset <= offset) best = &v;
    if (best) return best->name;
  }
  return "";
}

std::string Block::describe(const void* p) const {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  const std::string name = variable_at(p);
  const char* begin = nullptr;
  std::size_t bytes = 0;
  if (address - global_begin_ < GlobalMemory::kBytes) {
    const GlobalMemory::Allocation a = global_.nearest(p);
    if (!a.begin) return "global memory with no allocation";
    begin = a.begin, bytes = a.bytes;
  } else if (address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes) {
    begin = arena_, bytes = dynamic_bytes_;
  } else if (!name.empty()) {
    for (const SharedVariable& v : shared_variables())
      if (v.name == name && v.offset <= address - reinterpret_cast<std::uintptr_t>(tls_begin_))
        begin = tls_begin_ + v.offset, bytes = v.bytes;
  }
  if (!begin) return "address " + std::to_string(address);
  const std::ptrdiff_t offset = static_cast<const char*>(p) - begin;
  return name + " (byte " + std::to_string(offset) + " of " + std::to_string(bytes) + ")";
}

void Block::bad_access(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  // A vector that straddles the end because it is misaligned.
  if (address & (size - 1) && address >= kPage) misaligned(fiber, p, size, op, return_address);
  const std::string access = std::string(!writes(op)        ? "read"
                                         : op == Op::kStore ? "write"
                                                            : "atomic") +
                             " of " + std::to_string(size) + " bytes ";
  std::string what, expected = "accesses stay inside allocations and variables";
  if (address - global_begin_ < GlobalMemory::kBytes || address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes ||
      address - reinterpret_cast<std::uintptr_t>(tls_begin_) < tls_bytes_) {
    what = access + "out of bounds: " + describe(p);
  } else if (inside(p, constant_memory())) {
    what = access + "to __constant__ memory", expected = "kernels only read constants";
  } else {
    what = access + (address < 4096 ? "through a null pointer" : "at an address that is not device memory (a host pointer?)");
    expected = "kernels use device memory only";
  }
  fail(Check::kMemcheck, what, expected, &fiber, user_location(to_pc(return_address)), variable_at(p));
}

void Block::misaligned(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  fail(Check::kMemcheck,
       std::string("misaligned ") + (writes(op) ? "write" : "read") + " of " + std::to_string(size) + " bytes: " + describe(p),
       "an access of n bytes has an address that n divides", &fiber, user_location(to_pc(return_address)), variable_at(p));
}

void Block::fail(Check check, std::string what, std::string expected, const Fiber* fiber, Location where, std::string variable) {
  {
    Diagnosis d = diagnose(check, std::move(what), std::move(expected), fiber, where, *this);
    d.variable = std::move(variable);
    report(std::move(d));
  }
  leave(Stop::kFailed);  // the fibers are dropped where they stand: kernels own nothing
}

void Block::report(Diagnosis d) {
  // What else goes wrong after a read of uninitialised bytes may come from them.
  launch_->fail(uninitialised_ && d.check != Check::kRacecheck ? *uninitialised_ : std::move(d));
}

void Block::fail_stack_overflow(Fiber& fiber, Pc pc) {
  fail(Check::kStackOverflow, "stack overflow",
       "a thread needs at most Options::stack_bytes of stack; large arrays belong elsewhere", &fiber, user_location(pc));
}

void Block::index_out_of_bounds(Fiber& fiber, std::int64_t index, const char* array, Location where) {
  if (fiber.bad_index) report_bad_index(fiber, nullptr);  // nobody asked for the last one's memory: a local array
  std::string what = "index " + std::to_string(index) + " out of bounds of an array of type " + array;
  fiber.bad_index.reset(new Fiber::BadIndex{std::move(what), std::move(where)});  // clang 14 has no parentheses for aggregates
}

void Block::report_bad_index(Fiber& fiber, const void* p) {
  const auto bad = std::move(fiber.bad_index);
  // The address is some elements beyond the array's end, or before its begin: the variable is the nearest on the other side.
  std::string variable;
  const std::size_t offset = static_cast<std::size_t>(static_cast<const char*>(p) - tls_begin_);
  if (p && offset < tls_bytes_)
    for (const SharedVariable& v : shared_variables())
      if (bad->what.starts_with("index -") ? variable.empty() && v.offset > offset : v.offset + v.bytes <= offset)
        variable = v.name;
  fail(Check::kMemcheck, bad->what, "accesses stay inside allocations and variables", &fiber, bad->where,
       variable.empty() && p ? variable_at(p) : variable);
}

void Block::fail_misaligned(Fiber& fiber, const void* p, unsigned alignment, Location where) {
  fail(Check::kMemcheck, "misaligned access: " + describe(p),
       "the address of this type is a multiple of " + std::to_string(alignment), &fiber, where, variable_at(p));
}

bool Block::in_guard_page(const void* p) const {
  const std::size_t offset = static_cast<std::size_t>(static_cast<const char*>(p) - stacks_);
  return offset < stack_count_ * stack_bytes_ && offset % stack_bytes_ < kPage;
}

void Block::fail_from_signal(Check check, const char* what, const char* expected, Pc pc) {
  const Fiber* fiber = std::exchange(current_fiber, nullptr);
  // An endless loop may be interrupted anywhere, even in what it calls of the interpreter.
  const Pc where = check == Check::kEndless && fiber->path->pc ? fiber->path->pc : pc + 1;
  signal_diagnosis_ = diagnose(check, what, expected, fiber, user_location(where), *this);
  std::longjmp(after_signal_, 1);
}

}  // namespace interpreter
