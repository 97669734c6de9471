#include "common/interpreter/launch/host_exceptions.h"

#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

namespace interpreter {
namespace {

thread_local std::optional<Diagnosis> kept;

#if defined(__x86_64__) || defined(__aarch64__)

[[noreturn]] void throw_kept() {
  KernelError error(std::move(*kept));
  kept.reset();
  throw error;
}

// What a function does with an exception that comes from one of its instructions.
enum class Passage { kFree, kCatches, kTerminates };

// The table of call sites in the language-specific data (Itanium C++ ABI, "Exception Handling Tables"): an instruction that is in
// none of them lets no exception out.
Passage passage(const unsigned char* data, std::uintptr_t offset) {
  constexpr unsigned char kOmitted = 0xff, kUleb128 = 0x01;
  if (!data) return Passage::kFree;
  const auto number = [&] {
    std::uintptr_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const unsigned char byte = *data++;
      value |= std::uintptr_t(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
  };
  if (*data++ != kOmitted) return Passage::kCatches;  // not what compilers write for this machine: leave it to the unwinder
  if (*data++ != kOmitted) number();
  if (*data++ != kUleb128) return Passage::kCatches;
  const std::uintptr_t bytes = number();
  for (const unsigned char* const end = data + bytes; data < end;) {
    const std::uintptr_t begin = number(), length = number();
    number();  // where to go
    const bool acts = number() != 0;
    if (offset - begin < length) return acts ? Passage::kCatches : Passage::kFree;
  }
  return Passage::kTerminates;
}

// The registers that a function leaves as they were, by DWARF's numbers.
#if defined(__x86_64__)
constexpr int kPreserved[] = {3, 6, 12, 13, 14, 15};  // rbx, rbp, r12 to r15
#else
constexpr int kPreserved[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,  // x19 to x29
                              72, 73, 74, 75, 76, 77, 78, 79};             // the lower halves of v8 to v15
#endif

// A caller to whom the exception goes: its registers as they are when what it calls returns.
struct Caller {
  std::uintptr_t stack, returns_to, preserved[std::size(kPreserved)];
};
struct Search {
  bool in_user_code = false;  // behind the handler's own functions
  bool none_left = false;     // who is seen next gets it
  bool found_catch = false;
  std::optional<Caller> caller;  // none: the interrupted function itself
};

_Unwind_Reason_Code look(_Unwind_Context* context, void* argument) {
  Search& search = *static_cast<Search*>(argument);
  int interrupted = 0;
  const std::uintptr_t ip = _Unwind_GetIPInfo(context, &interrupted);
  search.in_user_code |= interrupted != 0;
  if (!search.in_user_code) return _URC_NO_REASON;
  if (std::exchange(search.none_left, false)) {
    search.caller = Caller{_Unwind_GetCFA(context), ip, {}};
    for (std::size_t i = 0; i < std::size(kPreserved); ++i) search.caller->preserved[i] = _Unwind_GetGR(context, kPreserved[i]);
  }
  const auto* const data = reinterpret_cast<const unsigned char*>(_Unwind_GetLanguageSpecificData(context));
  switch (passage(data, ip - (interrupted ? 0 : 1) - _Unwind_GetRegionStart(context))) {
    case Passage::kFree: return _URC_NO_REASON;
    case Passage::kCatches: return search.found_catch = true, _URC_NORMAL_STOP;
    case Passage::kTerminates: break;
  }
  search.none_left = true;
  search.caller.reset();
  return _URC_NO_REASON;
}

// When the handler returns, it is as if the caller had called throw_kept().
#if defined(__x86_64__)
void go_on_in(const Caller& to, mcontext_t& machine) {
  constexpr int kPlaces[] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15};
  for (std::size_t i = 0; i < std::size(kPreserved); ++i) machine.gregs[kPlaces[i]] = static_cast<greg_t>(to.preserved[i]);
  machine.gregs[REG_RSP] = static_cast<greg_t>(to.stack - sizeof(void*));  // the return address is still there
  machine.gregs[REG_RIP] = reinterpret_cast<greg_t>(&throw_kept);
}
#else
void go_on_in(const Caller& to, mcontext_t& machine) {
  // Vectors lie in the first of several records that the kernel appends; a header of zeros ends them.
  char* record = reinterpret_cast<char*>(machine.__reserved);
  const auto header = [&] { return reinterpret_cast<const _aarch64_ctx*>(record); };
  while (header()->magic != FPSIMD_MAGIC && header()->size) record += header()->size;
  auto* const vectors = header()->magic == FPSIMD_MAGIC ? reinterpret_cast<fpsimd_context*>(record)->vregs : nullptr;
  for (std::size_t i = 0; i < std::size(kPreserved); ++i)
    if (kPreserved[i] < 32)
      machine.regs[kPreserved[i]] = to.preserved[i];
    else if (vectors)
      std::memcpy(&vectors[kPreserved[i] - 64], &to.preserved[i], sizeof to.preserved[i]);
  machine.regs[30] = to.returns_to;
  machine.sp = to.stack;
  machine.pc = reinterpret_cast<std::uintptr_t>(&throw_kept);
}
#endif

#endif

}  // namespace

void throw_where_interrupted(Diagnosis diagnosis, [[maybe_unused]] void* context) {
#if defined(__x86_64__) || defined(__aarch64__)
  Search search;
  _Unwind_Backtrace(look, &search);
  if (search.found_catch && search.caller) {
    kept = std::move(diagnosis);
    return go_on_in(*search.caller, static_cast<ucontext_t*>(context)->uc_mcontext);
  }
#endif
  throw KernelError(std::move(diagnosis));
}

}  // namespace interpreter
