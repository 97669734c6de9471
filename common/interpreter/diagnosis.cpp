// From a failed check to what its report says.
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

namespace {

// Of the functions that run, innermost first.
std::vector<const void*> return_addresses() {
  std::vector<const void*> addresses;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* addresses) {
        int interrupted = 0;  // by a signal: the address is that of the instruction itself
        const auto address = static_cast<std::uintptr_t>(_Unwind_GetIPInfo(context, &interrupted)) + (interrupted ? 1 : 0);
        static_cast<std::vector<const void*>*>(addresses)->push_back(reinterpret_cast<const void*>(address));
        return _URC_NO_REASON;
      },
      &addresses);
  return addresses;
}

Location first_line_of_user(const std::vector<const void*>& addresses) {
  for (const void* address : addresses)
    if (inside(address, image()))
      if (const Location where = user_location(to_pc(address)); where.line) return where;
  return {};
}

}  // namespace

Location host_line() { return first_line_of_user(return_addresses()); }

void fail_outside_of_launches() {
  const std::vector<const void*> stack = return_addresses();
  Diagnosis d;
  d.check = Check::kLaunch;
  d.what = "host code calls what only kernels may call";
  d.expected = "built-in variables, barriers and their like are for kernels, and kernels are started by a launch";
  Location where = first_line_of_user(stack);
  for (std::size_t i = 0; i + 1 < stack.size(); ++i) {
    if (!kernel_bound(function_begin(stack[i]))) continue;
    d.kernel = function_name(stack[i]);
    d.what = "the kernel " + d.kernel + " is called as a function";
    d.expected = "a kernel is started by a launch";
    where = user_location(to_pc(stack[i + 1]));
    break;
  }
  d.file = where.file, d.line = where.line;
  throw KernelError(d);
}

void fail_host_access(const void* p) {
  const GlobalMemory::Allocation a = GlobalMemory::instance().nearest(p);
  Diagnosis d;
  d.check = Check::kMemcheck;
  d.what = "host code accesses device memory";
  if (a.begin)
    d.what += ": " + a.label + " (byte " + std::to_string(static_cast<const char*>(p) - a.begin) + " of " +
              std::to_string(a.bytes) + (a.released ? "), which has been released" : ")");
  d.expected = "the host copies device memory, by device::Buffer or cudaMemcpy; on a GPU this is a segmentation fault";
  const Location where = host_line();
  d.variable = a.label, d.file = where.file, d.line = where.line;
  throw KernelError(d);
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
  if (const Variable* v = inside(p, image()) ? variable_near(p) : nullptr) return v->name;
  return "";
}

std::string Block::describe(const void* p) const {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  const std::string name = variable_at(p);
  const char* begin = nullptr;
  std::size_t bytes = 0;
  const char* released = "";
  if (address - global_begin_ < GlobalMemory::kBytes) {
    const GlobalMemory::Allocation a = global_.nearest(p);
    if (!a.begin) return "global memory with no allocation";
    begin = a.begin, bytes = a.bytes;
    if (a.released) released = ", which has been released";
  } else if (address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes) {
    begin = arena_, bytes = dynamic_bytes_;
  } else if (!name.empty()) {
    for (const SharedVariable& v : shared_variables())
      if (v.name == name && v.offset <= address - reinterpret_cast<std::uintptr_t>(tls_begin_))
        begin = tls_begin_ + v.offset, bytes = v.bytes;
    if (const Variable* v = inside(p, image()) ? variable_near(p) : nullptr) begin = v->begin, bytes = v->bytes;
  }
  if (!begin) return "address " + std::to_string(address);
  const std::ptrdiff_t offset = static_cast<const char*>(p) - begin;
  return name + " (byte " + std::to_string(offset) + " of " + std::to_string(bytes) + ")" + released;
}

// Whether an argument of the launch, or a member of one, points into the memory.
bool Block::launched_with(const char* begin, std::size_t bytes) const {
  const char* const closure = static_cast<const char*>(launch_->launch.closure);
  for (std::size_t i = 0; i + sizeof(const char*) <= launch_->launch.closure_bytes; i += sizeof(const char*)) {
    const char* pointer = nullptr;
    std::memcpy(&pointer, closure + i, sizeof pointer);
    if (pointer >= begin && pointer <= begin + bytes) return true;
  }
  return false;
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
  const Variable* const variable = inside(p, variables()) ? variable_near(p) : nullptr;
  if (variable && variable->of_host && p < variable->begin + variable->bytes) {
    what = access + "of a variable of the host: " + describe(p) + ", at " + at(user_location(to_pc(return_address)));
    const Variable* const before = variable_near(variable->begin - 1);
    if (before && !before->of_host && inside(before->begin, variables())) what += "; or beyond the end of " + before->name;
    expected = "a kernel's variables are declared __device__, __constant__ or __managed__; data of the host are copied to a buffer";
    launch_->arguments_are_to_blame = launched_with(variable->begin, variable->bytes);
  } else if (inside(p, constant_memory()) && writes(op)) {
    what = access + "to __constant__ memory: " + describe(p), expected = "kernels only read constants";
  } else if (address - global_begin_ < GlobalMemory::kBytes || address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes ||
             address - reinterpret_cast<std::uintptr_t>(tls_begin_) < tls_bytes_ || inside(p, variables())) {
    const bool released = address - global_begin_ < GlobalMemory::kBytes && global_.nearest(p).released;
    what = access + (released ? "of released memory: " : "out of bounds: ") + describe(p);
    if (released) {
      what += ", at " + at(user_location(to_pc(return_address)));
      expected = "memory that a kernel uses is released after the launch";
      launch_->arguments_are_to_blame = launched_with(global_.nearest(p).begin, global_.nearest(p).bytes);
    }
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

void Block::index_out_of_bounds(Fiber& fiber, std::int64_t index, const std::string& array, Location where) {
  if (fiber.bad_index) report_bad_index(fiber, nullptr);  // nobody asked for the last one's memory: a local array
  fiber.special = true;
  fiber.bad_index.reset(new Fiber::BadIndex{index, array, std::move(where)});  // clang 14 has no parentheses for aggregates
}

namespace {

// Whether `address` is what array[index] has, if the array of type "float [8][36]" is all of a variable.
bool is_element(std::uintptr_t address, const char* begin, std::size_t bytes, std::int64_t index, const std::string& array) {
  const std::size_t bracket = array.find('[');
  const std::int64_t count = bracket == array.npos ? 0 : std::atoll(array.c_str() + bracket + 1);
  if (count <= 0 || bytes % static_cast<std::size_t>(count) != 0) return false;
  const std::size_t stride = bytes / static_cast<std::size_t>(count);
  return address - (reinterpret_cast<std::uintptr_t>(begin) + static_cast<std::size_t>(index) * stride) < stride;
}

}  // namespace

// `p`: what the fiber is about to access, null if it is about to wait or to end.
void Block::report_bad_index(Fiber& fiber, const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const Fiber::BadIndex& bad = *fiber.bad_index;
  std::string variable;
  for (std::size_t i = 0; p && i < static_variables_.size() && variable.empty(); ++i) {
    const SharedVariable& v = shared_variables()[i];
    if (is_element(address, tls_begin_ + v.offset, v.bytes, bad.index, bad.array)) variable = v.name;
  }
  // The variable ends before the address, if the index is too large: the one that holds the address may be its neighbour.
  const Variable* v = p && inside(p, image()) ? variable_near(p) : nullptr;
  for (int i = 0; v && i < 8 && variable.empty(); ++i) {
    if (is_element(address, v->begin, v->bytes, bad.index, bad.array)) variable = v->name;
    v = variable_near(v->begin - 1);
  }
  if (p && variable.empty() && --fiber.bad_index->patience > 0) return;
  const auto reported = std::move(fiber.bad_index);
  if (variable.empty()) variable = subscripted(reported->where);
  fail(Check::kMemcheck,
       "index " + std::to_string(reported->index) + " out of bounds of an array of type " + reported->array +
           (variable.empty() ? "" : ": " + variable),
       "indices stay inside arrays", &fiber, reported->where, variable);
}

void Block::misaligned_type(Fiber& fiber, const void* p, const char* type, unsigned alignment, const void* return_address) {
  // Local arrays are kept in registers or aligned by nvcc, so that kernels move them as vectors; here the stack may put them
  // anywhere.
  if (on_a_stack(p)) return;
  fail(Check::kMemcheck, std::string("misaligned access to ") + type + ": " + describe(p),
       "the address of this type is a multiple of " + std::to_string(alignment), &fiber, user_location(to_pc(return_address)),
       variable_at(p));
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
