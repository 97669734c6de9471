#include "common/interpreter/memory/shared_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "common/interpreter/debug_info/symbols.h"

namespace interpreter {
namespace {

// A pointer to dynamic shared memory has the instruction's address in its low 18 bits, as on a GPU: programs take it from there.
constexpr std::size_t kAlignment = SharedMemory::kArenaBytes;

void poison(char* p, std::size_t bytes) { std::memset(p, 0xff, bytes); }  // NaN

}  // namespace

SharedMemory::SharedMemory() {
  const std::uintptr_t mapped = reinterpret_cast<std::uintptr_t>(reserve(kArenaBytes + kAlignment));
  arena.begin = mapped + (-mapped & (kAlignment - 1));
  if (arena.begin > mapped) munmap(reinterpret_cast<void*>(mapped), arena.begin - mapped);
  if (const std::size_t rest = mapped + kAlignment - arena.begin) munmap(dynamic() + kArenaBytes, rest);
  arena.bytes = kArenaBytes;
  arena.initialised.resize(kArenaBytes);

  const Range tls = calling_thread_tls();
  statics.begin = reinterpret_cast<std::uintptr_t>(tls.begin);
  statics.bytes = static_cast<std::size_t>(tls.end - tls.begin);
  statics.initialised.resize(statics.bytes);
  variable_at_.assign(statics.bytes, 0);
  for (const SharedVariable& variable : shared_variables()) {
    variables_.push_back({static_cast<std::uint32_t>(variable.offset + variable.bytes), 0});
    for (std::size_t i = 0; i < variable.bytes && variable.offset + i < statics.bytes; ++i)
      variable_at_[variable.offset + i] = static_cast<std::uint16_t>(variables_.size());
  }
  for (const SharedVariable& variable : shared_variables())
    poison(reinterpret_cast<char*>(statics.begin) + variable.offset, variable.bytes);
  for (const SharedVariable& guard : construction_guards())
    for (std::size_t i = 0; i < guard.bytes && guard.offset + i < statics.bytes; ++i) variable_at_[guard.offset + i] = kGuard;
}

SharedMemory::~SharedMemory() { munmap(dynamic(), kArenaBytes); }

void SharedMemory::begin(std::size_t bytes) {
  ++serial_;
  // Not at the variable's first access: writes that the hooks do not see may come before that.
  for (const unsigned index : touched_) {
    const SharedVariable& variable = shared_variables()[index];
    poison(reinterpret_cast<char*>(statics.begin) + variable.offset, variable.bytes);
  }
  touched_.clear();
  static_bytes_ = 0;
  dynamic_bytes = bytes;
  poison(dynamic(), bytes);
}

void SharedMemory::begin_variable(unsigned variable) {
  variables_[variable - 1].touched_by = serial_;
  touched_.push_back(variable - 1);
  const SharedVariable& named = shared_variables()[variable - 1];
  statics.initialised.clear(named.offset, named.bytes);
  static_bytes_ += named.bytes;
}

}  // namespace interpreter
