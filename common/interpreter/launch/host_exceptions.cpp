#include "common/interpreter/launch/host_exceptions.h"

#include <ucontext.h>
#include <unwind.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace interpreter {
namespace {

thread_local std::optional<Diagnosis> kept;

#if defined(__x86_64__)

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

// A caller to whom the exception goes: its registers as they are when what it calls returns.
struct Caller {
  std::uintptr_t stack, rbx, rbp, r12, r13, r14, r15;
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
  if (std::exchange(search.none_left, false))
    search.caller =
        Caller{_Unwind_GetCFA(context),    _Unwind_GetGR(context, 3),  _Unwind_GetGR(context, 6), _Unwind_GetGR(context, 12),
               _Unwind_GetGR(context, 13), _Unwind_GetGR(context, 14), _Unwind_GetGR(context, 15)};
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

#endif

}  // namespace

void throw_where_interrupted(Diagnosis diagnosis, [[maybe_unused]] void* context) {
#if defined(__x86_64__)
  Search search;
  _Unwind_Backtrace(look, &search);
  if (search.found_catch && search.caller) {
    kept = std::move(diagnosis);
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const Caller& to = *search.caller;
    registers[REG_RBX] = static_cast<greg_t>(to.rbx), registers[REG_RBP] = static_cast<greg_t>(to.rbp);
    registers[REG_R12] = static_cast<greg_t>(to.r12), registers[REG_R13] = static_cast<greg_t>(to.r13);
    registers[REG_R14] = static_cast<greg_t>(to.r14), registers[REG_R15] = static_cast<greg_t>(to.r15);
    // As if the caller had called it: the return address is still there.
    registers[REG_RSP] = static_cast<greg_t>(to.stack - sizeof(void*));
    registers[REG_RIP] = reinterpret_cast<greg_t>(&throw_kept);
    return;
  }
#endif
  throw KernelError(std::move(diagnosis));
}

}  // namespace interpreter
