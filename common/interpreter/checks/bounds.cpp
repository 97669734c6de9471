#include "common/interpreter/checks/bounds.h"

#include <cstring>
#include <string>

#include "common/interpreter/debug_info/source_text.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/cluster.h"

namespace interpreter {

bool Bounds::touch_no_variable(Fiber& fiber, std::uintptr_t address, unsigned size, Op op, const void* return_address) {
  if (shared_.variable_at(address - shared_.statics.begin) != SharedMemory::kGuard && work_.options().memcheck)
    bad_access(fiber, reinterpret_cast<const void*>(address), size, op, return_address);
  return false;
}

// The first access of this block: the variable begins to exist.
void Bounds::begin_variable(Fiber& fiber, unsigned variable, const void* return_address) {
  const SharedVariable& named = shared_variables()[variable - 1];
  if (work_.options().racecheck) shadows_.forget_static(named.offset, named.bytes);
  const std::size_t bytes = shared_.static_bytes();
  // ptxas refuses more than 48 KB, but for sm_90a, where a block may have all its shared memory in variables (CUDA 13.0, sm_75 to
  // sm_90a).
  const Gpu& gpu = work_.launch->gpu;
  const std::size_t most = gpu.compute_capability < 90 ? kMaxStaticShared : gpu.shared_per_block;
  if (bytes > kMaxStaticShared && bytes <= most)
    work_.launch->note("more than " + std::to_string(kMaxStaticShared) +
                       " bytes of __shared__ variables: nvcc compiles that for sm_90a alone, not for sm_90 or any other");
  if (bytes > most || bytes + shared_.dynamic_bytes > gpu.shared_per_block)
    reporter_.fail(Check::kLaunch,
                   std::to_string(bytes) + " bytes of __shared__ variables and " + std::to_string(shared_.dynamic_bytes) +
                       " of dynamic shared memory",
                   "at most " + std::to_string(most) + " bytes in variables, and " + std::to_string(gpu.shared_per_block) +
                       " together on " + std::string(gpu.title),
                   &fiber, user_location(to_pc(return_address)), named.name);
}

// Whether the bytes belong to one variable of the program, none of which are __shared__.
bool Bounds::in_a_variable(const void* p, unsigned size) {
  const char* const begin = static_cast<const char*>(p);
  const auto holds = [&](const Variable* v) { return v && begin >= v->begin && begin + size <= v->begin + v->bytes; };
  if (!holds(last_variable_)) last_variable_ = variable_near(p);
  return holds(last_variable_);
}

bool Bounds::is_storage(const void* p, unsigned size) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  const GlobalMemory& global = GlobalMemory::instance();
  if (const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(global.base()); offset < GlobalMemory::kBytes)
    return global.valid(offset, size);
  if (shared_.arena.contains(address)) return address - shared_.arena.begin + size <= shared_.dynamic_bytes;
  if (shared_.statics.contains(address)) {
    const std::size_t offset = address - shared_.statics.begin;
    const unsigned variable = shared_.variable_at(offset);
    return variable != 0 && variable != SharedMemory::kGuard && offset + size <= shared_.end_of(variable);
  }
  return inside(p, variables()) && in_a_variable(p, size) && !last_variable_->of_host;
}

bool Bounds::touch_elsewhere(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  if (stacks_.contains(p)) {
    if (stacks_.contains(fiber.linear, p) || !work_.options().memcheck) return false;
    const std::size_t owner = stacks_.owner_of(p);
    reporter_.fail(
        Check::kMemcheck,
        std::string(writes(op) ? "write to" : "read of") + " a local variable of thread " +
            to_text(unflatten(owner, work_.launch->launch.block)) + " through a pointer",
        "local variables are their own thread's: on a GPU the same address is another variable for each thread; share through "
        "__shared__ or device memory",
        &fiber, user_location(to_pc(return_address)));
  }
  const char* closure = static_cast<const char*>(work_.launch->launch.closure);
  if (static_cast<std::size_t>(static_cast<const char*>(p) - closure) < work_.launch->launch.closure_bytes && !writes(op))
    return false;
  if (inside(p, constant_memory())) {
    if (work_.options().memcheck && (writes(op) || !in_a_variable(p, size))) bad_access(fiber, p, size, op, return_address);
    return false;
  }
  if (inside(p, image()) && !inside(p, variables()) && !writes(op)) return false;  // the compiler's own constants
  if (inside(p, variables())) {                                                    // a __device__ variable: global memory
    if (work_.options().memcheck && (!in_a_variable(p, size) || last_variable_->of_host)) {
      bad_access(fiber, p, size, op, return_address);
      return false;
    }
    return true;
  }
  if (work_.options().memcheck) bad_access(fiber, p, size, op, return_address);
  return false;
}

// Whether an argument of the launch, or a member of one, points into the memory.
bool Bounds::launched_with(const char* begin, std::size_t bytes) const {
  const char* const closure = static_cast<const char*>(work_.launch->launch.closure);
  for (std::size_t i = 0; i + sizeof(const char*) <= work_.launch->launch.closure_bytes; i += sizeof(const char*)) {
    const char* pointer = nullptr;
    std::memcpy(&pointer, closure + i, sizeof pointer);
    if (pointer >= begin && pointer <= begin + bytes) return true;
  }
  return false;
}

// The argument that would be reached if an index had not overflowed an int; empty if there is none.
std::string Bounds::reached_without_overflow(const void* p) const {
  for (std::size_t element = 1; element <= 16; element *= 2) {
    const char* const there = static_cast<const char*>(p) + (element << 32);
    if (!GlobalMemory::instance().contains(reinterpret_cast<std::uintptr_t>(there))) continue;
    const GlobalMemory::Allocation a = GlobalMemory::instance().nearest(there);
    const auto offset = static_cast<std::size_t>(there - a.begin);
    if (a.begin && !a.released && offset >= element << 31 && offset < a.bytes && launched_with(a.begin, a.bytes))
      return a.label.empty() ? "its buffer" : a.label;
  }
  return "";
}

// Whether a wrong access may take place: there is memory, and it is none of the host's, nor of what the program is made of. A write
// changes it, as on a GPU; a read finds there what is there.
bool Bounds::harms_nobody(const void* p, unsigned size, Op op) const {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  const auto holds = [&](std::uintptr_t begin, std::size_t bytes) {
    return address - begin < bytes && bytes - (address - begin) >= size;
  };
  if (holds(reinterpret_cast<std::uintptr_t>(GlobalMemory::instance().base()), GlobalMemory::kBytes) ||
      holds(shared_.arena.begin, SharedMemory::kArenaBytes) || holds(shared_.statics.begin, shared_.statics.bytes))
    return true;
  return !writes(op) && inside(p, variables());
}

void Bounds::bad_access(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  const GlobalMemory& global = GlobalMemory::instance();
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  // A vector that straddles the end because it is misaligned.
  if (address & (size - 1) && address >= kPage) return misaligned(fiber, p, size, op, return_address);
  const bool may_go_on = harms_nobody(p, size, op);
  if (may_go_on && !reporter_.is_new(to_pc(return_address))) return;
  const std::string access = std::string(!writes(op)    ? "read"
                                         : is_store(op) ? "write"
                                                        : "atomic") +
                             " of " + std::to_string(size) + " bytes ";
  std::string what, expected = "accesses stay inside allocations and variables";
  const Variable* const variable = inside(p, variables()) ? variable_near(p) : nullptr;
  if (variable && variable->of_host && p < variable->begin + variable->bytes) {
    what = access + "of a variable of the host: " + reporter_.describe(p) + ", at " + at(user_location(to_pc(return_address)));
    const Variable* const before = variable_near(variable->begin - 1);
    if (before && !before->of_host && !before->name.empty() && inside(before->begin, variables()))
      what += "; or beyond the end of " + before->name;
    expected = "a kernel's variables are declared __device__, __constant__ or __managed__; data of the host are copied to a buffer";
    work_.launch->arguments_are_to_blame = launched_with(variable->begin, variable->bytes);
  } else if (inside(p, constant_memory()) && writes(op)) {
    what = access + "to __constant__ memory: " + reporter_.describe(p), expected = "kernels only read constants";
  } else if (global.contains(address) || shared_.arena.contains(address) || shared_.statics.contains(address) ||
             work_.cluster->peer_at(address) || inside(p, variables())) {
    const GlobalMemory::Allocation nearest = global.contains(address) ? global.nearest(p) : GlobalMemory::Allocation();
    const bool released = nearest.released;
    what = access + (released ? "of released memory: " : "out of bounds: ") +
           reporter_.describe(p, to_pc(return_address), is_store(op), size);
    if (released) {
      if (!nearest.released_by.empty()) what += ", at " + at(first_line_of_user(nearest.released_by));
      what += "; the kernel's line is " + at(user_location(to_pc(return_address)));
      expected = "memory that a kernel uses is released after the launch";
      work_.launch->arguments_are_to_blame = launched_with(nearest.begin, nearest.bytes);
    }
  } else {
    what = access + (address < 4096 ? "through a null pointer" : "at an address that is not device memory (a host pointer?)");
    expected = "kernels use device memory only";
  }
  std::string name = reporter_.variable_at(p);
  if (const std::string meant = reached_without_overflow(p); !meant.empty()) {
    name = meant;
    what = access + "out of bounds: in front of " + meant + ". An index overflowed 32 bits: 2^32 more lies inside";
    expected = "an index that passes 2^31 has 64 bits before it is multiplied: size_t(row) * stride";
  }
  const Location where = user_location(to_pc(return_address));
  if (!may_go_on) reporter_.fail(Check::kMemcheck, what, expected, &fiber, where, name);
  reporter_.tell(Check::kMemcheck, what, expected, &fiber, where, name);
}

void Bounds::misaligned(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  // The processor's own instructions of 16 bytes want them aligned, too.
  const bool may_go_on = size <= 8 && (op == Op::kLoad || op == Op::kStore) && harms_nobody(p, size, op);
  if (may_go_on && !reporter_.is_new(to_pc(return_address))) return;
  const std::string what = std::string("misaligned ") + (writes(op) ? "write" : "read") + " of " + std::to_string(size) +
                           " bytes: " + reporter_.describe(p, to_pc(return_address), is_store(op), size);
  const std::string expected = "an access of n bytes has an address that n divides", name = reporter_.variable_at(p);
  const Location where = user_location(to_pc(return_address));
  if (!may_go_on) reporter_.fail(Check::kMemcheck, what, expected, &fiber, where, name);
  reporter_.tell(Check::kMemcheck, what, expected, &fiber, where, name);
}

void Bounds::beyond_variable(Fiber& fiber, const void* p, bool write, const char* type, const Location& where) {
  std::string pointer = accessed_name(where, write);
  if (pointer.empty()) pointer = subscripted(where);
  std::string what = std::string(write ? "write" : "read") + " of " + type + " through a pointer that has left its variable";
  if (!pointer.empty()) what += ": " + pointer;
  if (!stacks_.contains(p)) what += "; what lies there is " + reporter_.describe(p);
  reporter_.fail(Check::kMemcheck, what, "a pointer into a variable stays inside it", &fiber, where, pointer);
}

void Bounds::misaligned_type(Fiber& fiber, const void* p, const char* type, unsigned alignment, const void* return_address) {
  // Local arrays are kept in registers or aligned by nvcc, so that kernels move them as vectors; here the stack may put them
  // anywhere.
  if (stacks_.contains(p)) return;
  const bool may_go_on = alignment <= 8 && harms_nobody(p, alignment, Op::kStore);  // as in misaligned()
  if (may_go_on && !reporter_.is_new(to_pc(return_address))) return;
  const std::string what = std::string("misaligned access to ") + type + ": " + reporter_.describe(p);
  const std::string expected = "the address of this type is a multiple of " + std::to_string(alignment);
  const Location where = user_location(to_pc(return_address));
  if (!may_go_on) reporter_.fail(Check::kMemcheck, what, expected, &fiber, where, reporter_.variable_at(p));
  reporter_.tell(Check::kMemcheck, what, expected, &fiber, where, reporter_.variable_at(p));
}

}  // namespace interpreter
