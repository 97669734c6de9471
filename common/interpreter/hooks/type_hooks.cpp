// What the compiler calls where a type alone tells what is wrong (-fsanitize=alignment and bounds), or where
// the processor does not (-fsanitize=integer-divide-by-zero, see tools/cmake/course.cmake).
#include <algorithm>
#include <utility>

#include "common/interpreter/block/block.h"
#include "common/interpreter/checks/bad_indices.h"
#include "common/interpreter/checks/bounds.h"
#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/running/block_context.h"

using interpreter::current_block;
using interpreter::current_fiber;

extern "C" {

struct TypeDescriptor {
  std::uint16_t kind, info;  // of an integer: bit 0 signed, the others log2 of its bits
  char name[1];              // in quotes
};
// Both tell of misaligned vectors here (-fsanitize=alignment), because both may split their accesses. g++ also tells of accesses
// beyond the variable that a pointer was made from, where it can follow the pointer (-fsanitize=object-size): one variable's end is
// another one's beginning, so the address alone cannot tell.
struct TypeMismatch {
  const char* file;
  std::uint32_t line, column;
  const TypeDescriptor* type;
  unsigned char log_alignment, kind;
};
void __ubsan_handle_type_mismatch_v1(const TypeMismatch* data, std::uintptr_t address) {
  enum Kind { kLoad, kStore, kReference, kMember };  // and more, which access no memory
#ifdef __clang__
  constexpr bool kIsCopied = true;  // clang tells of the reference alone when a struct is copied
#else
  constexpr bool kIsCopied = false;
#endif
  if (!current_fiber || !current_block->work.options().memcheck) return;
  if (data->kind > kMember || (data->kind == kReference && !kIsCopied)) return;
  interpreter::Fiber& fiber = *std::exchange(current_fiber, nullptr);
  const auto* const p = reinterpret_cast<const void*>(address);
  if (data->log_alignment == 0) {  // any address is aligned to that
    interpreter::Location where = interpreter::user_location(interpreter::to_pc(__builtin_return_address(0)));
    where.column = static_cast<int>(data->column);
    // Of an array's index, the access will tell more.
    if (!current_block->indices.has_noted(fiber))
      current_block->bounds.beyond_variable(fiber, p, data->kind == kStore, data->type->name, where);
  } else {
    current_block->bounds.misaligned_type(fiber, p, data->type->name, 1u << data->log_alignment, __builtin_return_address(0));
  }
  current_fiber = &fiber;
}
void __ubsan_handle_type_mismatch_v1_abort(const TypeMismatch* data, std::uintptr_t address) {
  __ubsan_handle_type_mismatch_v1(data, address);
}

// Both tell of an index beyond the array's type here (-fsanitize=bounds): one __shared__ variable's end is another one's beginning,
// so the address alone cannot tell.
struct OutOfBounds {
  const char* file;
  std::uint32_t line, column;
  const TypeDescriptor *array, *index;
};
void __ubsan_handle_out_of_bounds(const OutOfBounds* data, std::uintptr_t index) {
  if (!current_fiber || !current_block->work.options().memcheck) return;
  interpreter::Fiber& fiber = *std::exchange(current_fiber, nullptr);
  if (current_block->worlds.in_other()) current_block->worlds.end_other();  // an index that is not used is no use
  const unsigned unused_bits = data->index->info & 1 ? 64 - std::min(64u, 1u << (data->index->info >> 1)) : 0;
  const std::int64_t value = static_cast<std::int64_t>(index << unused_bits) >> unused_bits;
  const std::string array = data->array->name;
  interpreter::Location where = interpreter::user_location(interpreter::to_pc(__builtin_return_address(0)));
  where.column = static_cast<int>(data->column);
  current_block->indices.note(fiber, value, array.substr(1, array.size() - 2), where);
  current_fiber = &fiber;
}
void __ubsan_handle_out_of_bounds_abort(const OutOfBounds* data, std::uintptr_t index) {
  __ubsan_handle_out_of_bounds(data, index);
}

// Where the processor raises no signal for it. Host code goes on, as it does there.
struct Overflow {
  const char* file;
  std::uint32_t line, column;
  const TypeDescriptor* type;
};
void __ubsan_handle_divrem_overflow(const Overflow*, std::uintptr_t, std::uintptr_t) {
  const interpreter::Pc pc =
      interpreter::to_pc(__builtin_return_address(0)) - 1;  // first: g++ makes a function of what follows an if
  if (current_fiber) interpreter::running_block().fail_division_by_zero(pc);
}

}  // extern "C"
