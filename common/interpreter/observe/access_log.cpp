#include "common/interpreter/observe/access_log.h"

namespace interpreter {
namespace {

// Whether two instructions belong to one expression, remembered: the answer costs a walk through debug information.
bool one_expression(Pc a, Pc b) {
  struct Known {
    Pc a = 0, b = 0;
    bool same = false;
  };
  static thread_local Known cache[1024];
  Known& known = cache[(a * 31 + b) % 1024];
  if (known.a != a || known.b != b) known = {a, b, same_expression(a, b)};
  return known.same;
}

}  // namespace

std::uint32_t AccessLog::stored_bytes(std::uintptr_t address, unsigned size) const {
  std::uint32_t bytes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < count_[lane]; ++i) {
      const std::uint64_t entry = entries_[i][lane];
      const std::uintptr_t begin = entry & kAddressMask;
      if (!writes(op_of(entry)) || begin >= address + size || address >= begin + size_of(entry)) continue;
      for (unsigned byte = 0; byte < size; ++byte)
        if (address + byte - begin < size_of(entry)) bytes |= 1u << byte;
    }
  return bytes;
}

void AccessLog::read_stored_in(unsigned row, unsigned lane) {
  const std::uint64_t entry = entries_[row][lane];
  std::memcpy(stored_[row][lane].bytes, reinterpret_cast<const void*>(entry & kAddressMask), size_of(entry));
}

bool AccessLog::join(unsigned lane, unsigned last, std::uintptr_t address, unsigned size, Op op, bool shared, bool strong, Pc pc,
                     std::uint64_t same_block) {
  const std::uint64_t before = entries_[last][lane];
  const unsigned before_size = size_of(before), piece = piece_of(before);
  const std::uintptr_t begin = address - before_size;
  // Nothing here depends on the address itself, so that all lanes join the same pieces.
  if (op > Op::kStore || size != piece || before_size + size > 16) return false;
  if (((before ^ pack(begin, before_size, op, shared, strong, piece)) & ~(kAddressMask | kSameBlock)) != 0) return false;
  const Pc last_pc = before_size == piece ? pcs_[last][lane] : joined_pc_[lane];
  // Checks that the compiler inserted may lie between the pieces, but no loop: its rounds are accesses of their own.
  if (last_pc > pc || (last_pc == pc && !same_block) || !one_expression(last_pc, pc)) return false;
  entries_[last][lane] = pack(begin, before_size + size, op, shared, strong, piece) | (before & kSameBlock);
  if (op == Op::kStore) unread_[lane] = last + 1;
  joined_pc_[lane] = pc;
  return true;
}

}  // namespace interpreter
