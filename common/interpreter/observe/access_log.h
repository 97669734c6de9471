/// @file
/// Rebuilds a warp's instructions from what its lanes did one after the other.
///
/// A GPU runs the 32 lanes of a warp together, the interpreter one by one. Each lane logs its accesses; drain() takes the logs as a
/// GPU would have: of the lanes' next accesses the one furthest up in the code goes first, and every lane that stands at the same
/// instruction takes part (lanes that skipped a predicated access do not).
/// Lanes that went different ways meet again where a GPU's would, see ControlFlow: the lane that stands furthest up in the code
/// goes first. A lane that a loop has brought back up has passed code further down, and waits there for the others: at its gate.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/observe/control_flow.h"

namespace interpreter {

enum class Op : std::uint8_t {
  kLoad,
  kStore,
  kAtomic,
  kMatrixLoad,   ///< ldmatrix: the rows' addresses
  kMatrixStore,  ///< stmatrix: the same
  kRecord,       ///< none of memory: the addresses are those of records, see running/family.h
  kExchange,     ///< atomic: writes without regard to what was there
  // The same for the block's threads alone.
  kBlockAtomic,
  kBlockExchange,
};
/// Whether it may change memory when it is executed.
constexpr bool writes(Op op) { return op != Op::kLoad && op != Op::kMatrixLoad && op != Op::kRecord; }
/// Whether it is a store, of lanes or of a warp.
constexpr bool is_store(Op op) { return op == Op::kStore || op == Op::kMatrixStore; }
/// Whether it writes all of its bytes and needs none of those that were there.
constexpr bool overwrites(Op op) { return is_store(op) || op == Op::kExchange || op == Op::kBlockExchange; }
constexpr bool is_block_scope(Op op) { return op == Op::kBlockAtomic || op == Op::kBlockExchange; }

/// One memory instruction of one warp.
struct Request {
  Pc pc;
  Op op;
  bool shared;                     ///< shared memory; global otherwise
  bool strong;                     ///< atomic or volatile
  unsigned size;                   ///< bytes per lane: 1, 2, 4, 8 or 16
  std::uint32_t lanes;             ///< who takes part
  unsigned count;                  ///< how many
  const std::uint64_t* addresses;  ///< of the participating lanes, in lane order
  bool uniform;                    ///< all addresses equal
  bool contiguous;                 ///< each address follows the one before
  bool same_block;                 ///< stands in the same basic block as each lane's access before
  const struct Stored* stored;     ///< of a store, by lane
  unsigned stored_offset;          ///< where in Stored::bytes this request's begin
};

/// What a store has put into memory. The compiler's hook comes before the store, so it is read from there as soon as the lane does
/// something else, or stops: nobody but a block on another core can have stored there in between. Of two blocks that store
/// different values within the same few hundred nanoseconds, both may find the same one.
struct Stored {
  unsigned char bytes[16];
};

/// A number that stands for the contents of `size` <= 16 bytes.
inline std::uint32_t content(const void* p, unsigned size) {
  std::uint64_t words[2] = {};
  std::memcpy(words, p, size);
  const std::uint64_t x = (words[0] ^ words[1] * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
  return static_cast<std::uint32_t>(x >> 32) | 1;
}

/// The logs of the running warp's lanes.
class AccessLog {
 public:
  /// Entries per lane. Small, so that the whole log stays in the L1 cache.
  static constexpr unsigned kDepth = 64;

  /// Logs an access. @param path the lane's way since its last access
  /// @return whether the lane's log is now full.
  bool append(unsigned lane, std::uintptr_t address, unsigned size, Op op, bool shared, bool strong, Pc pc,
              const ControlFlow::Path& path) {
    const unsigned n = count_[lane];
    read_stored(lane);
    // The bit itself: a bool would be spilled as a byte and read back as a word, for which a processor has to wait.
    const std::uint64_t same_block = path.blocks.empty() ? kSameBlock : 0;
    if (n && try_to_join(lane, n - 1, address, size, op, shared, strong, pc, same_block)) return false;
    // A copy member by member (__half2's operator=) loads and stores in turn.
    if (n > 1 && same_block & entries_[n - 1][lane] && try_to_join(lane, n - 2, address, size, op, shared, strong, pc, kSameBlock))
      return false;
    entries_[n][lane] = pack(address, size, op, shared, strong, size) | same_block;
    pcs_[n][lane] = pc;
    paths_[n][lane] = path.id;
    count_[lane] = n + 1;
    if (is_store(op)) unread_[lane] = n + 1;
    return n + 1 == kDepth;
  }

  /// To be called when a lane stops: its last store has taken place, unless it stops because append() has returned true.
  void read_stored(unsigned lane) {
    if (unread_[lane]) read_stored_in(unread_[lane] - 1, lane), unread_[lane] = 0;
  }

  unsigned count(unsigned lane) const { return count_[lane]; }
  /// Whether there is more to find out about the lane's last access: it is a plain load, or a store.
  bool ends_unfinished(unsigned lane) const {
    const unsigned n = count_[lane];
    return n && (is_plain_load(entries_[n - 1][lane]) || op_of(entries_[n - 1][lane]) == Op::kStore);
  }
  /// Calls `visit(address, size, shared, pc)` for the lane's last plain loads, the last one first, at most `most` of them.
  template <class Visit>
  void visit_last_plain_loads(unsigned lane, unsigned most, Visit visit) const {
    for (unsigned n = count_[lane]; n-- > 0 && most;)
      if (is_plain_load(entries_[n][lane]))
        visit(entries_[n][lane] & kAddressMask, size_of(entries_[n][lane]), is_shared(entries_[n][lane]), pcs_[n][lane]), --most;
  }
  /// Calls `visit(address, size)` for the plain stores with which the lane's log ends: they may be still to happen.
  template <class Visit>
  void visit_trailing_stores(unsigned lane, Visit visit) const {
    for (unsigned n = count_[lane]; n-- > 0 && op_of(entries_[n][lane]) == Op::kStore && !is_strong(entries_[n][lane]);)
      visit(entries_[n][lane] & kAddressMask, size_of(entries_[n][lane]));
  }
  /// Whether a store to the byte at `address` waits in a lane's log.
  bool stores_to(std::uintptr_t address) const { return stored_bytes(address, 1); }
  /// To which of `size` <= 16 bytes (a bit each) one waits there.
  std::uint32_t stored_bytes(std::uintptr_t address, unsigned size) const;
  void clear() {
    for (unsigned& n : count_) n = 0;
    for (unsigned& n : unread_) n = 0;
    for (bool& past : past_gate_) past = false;
  }

  /// Calls `sink(const Request&)` for every instruction that is known completely. A lane of `open` may still reach an instruction
  /// at which others stand, so nothing beyond its log is certain; what is not certain stays. The last access of lanes of `held`
  /// stays too.
  template <class Sink>
  void drain(ControlFlow& flow, std::uint32_t open, std::uint32_t held, Sink&& sink);

 private:
  // An entry: address in bits 0-47, then size (5 bits), op (4), shared (1), strong (1), the first piece's size as a power of two
  // (4), whether it stands in the same basic block as the one before it (1).
  static constexpr std::uint64_t kAddressMask = (1ull << 48) - 1, kSameBlock = 1ull << 63;
  static constexpr std::uint64_t pack(std::uintptr_t address, unsigned size, Op op, bool shared, bool strong, unsigned piece) {
    return address | std::uint64_t(size) << 48 | std::uint64_t(op) << 53 | std::uint64_t(shared) << 57 |
           std::uint64_t(strong) << 58 | std::uint64_t(std::countr_zero(piece)) << 59;
  }
  static constexpr unsigned size_of(std::uint64_t entry) { return entry >> 48 & 31; }
  static constexpr Op op_of(std::uint64_t entry) { return static_cast<Op>(entry >> 53 & 15); }
  static constexpr bool is_shared(std::uint64_t entry) { return entry >> 57 & 1; }
  static constexpr bool is_strong(std::uint64_t entry) { return entry >> 58 & 1; }
  static constexpr unsigned piece_of(std::uint64_t entry) { return 1u << (entry >> 59 & 15); }
  static constexpr bool is_plain_load(std::uint64_t entry) { return op_of(entry) == Op::kLoad && !is_strong(entry); }

  // Compilers split an access to a struct (float4 under clang, __half2 under both) into accesses to its members; nvcc does not.
  // Pieces that follow each other, in time and in memory, and come from one expression are one access.
  bool try_to_join(unsigned lane, unsigned last, std::uintptr_t address, unsigned size, Op op, bool shared, bool strong, Pc pc,
                   std::uint64_t same_block) {
    const std::uint64_t before = entries_[last][lane];
    if ((before & kAddressMask) + size_of(before) != address) return false;
    return join(lane, last, address, size, op, shared, strong, pc, same_block);
  }
  bool join(unsigned lane, unsigned last, std::uintptr_t address, unsigned size, Op op, bool shared, bool strong, Pc pc,
            std::uint64_t same_block);

  void read_stored_in(unsigned row, unsigned lane);
  template <class Sink>
  static void emit(Pc pc, std::uint64_t entry, std::uint32_t lanes, unsigned count, std::uint64_t* addresses, const Stored* stored,
                   Sink&& sink);

  std::uint64_t entries_[kDepth][32];
  Pc pcs_[kDepth][32];
  std::uint32_t paths_[kDepth][32];
  Stored stored_[kDepth][32];
  unsigned count_[32] = {};
  unsigned unread_[32] = {};  // one more than the row of each lane's store that read_stored() has not seen; 0: there is none
  bool past_gate_[32] = {};   // of each lane's first entry
  Pc joined_pc_[32] = {};     // of the last piece that was joined to each lane's last entry
};

template <class Sink>
void AccessLog::emit(Pc pc, std::uint64_t entry, std::uint32_t lanes, unsigned count, std::uint64_t* addresses,
                     const Stored* stored, Sink&& sink) {
  unsigned size = size_of(entry);
  const unsigned piece = piece_of(entry);
  // Joined pieces that make no aligned vector (a float3, say) stay what they were.
  std::uint64_t misaligned = size & (size - 1);
  if (size != piece)
    for (unsigned i = 0; i < count; ++i) misaligned |= addresses[i] & (size - 1);
  const unsigned pieces = misaligned ? size / piece : 1;
  if (misaligned) size = piece;

  std::uint64_t differs = 0, jumps = 0;
  for (unsigned i = 1; i < count; ++i) {
    differs |= addresses[i] ^ addresses[0];
    jumps |= addresses[i] ^ (addresses[0] + std::uint64_t(i) * size);
  }
  for (unsigned p = 0; p < pieces; ++p) {
    sink(Request{pc, op_of(entry), is_shared(entry), is_strong(entry), size, lanes, count, addresses, differs == 0, jumps == 0,
                 bool(entry & kSameBlock), stored, p * size});
    for (unsigned i = 0; i < count; ++i) addresses[i] += size;
  }
}

template <class Sink>
void AccessLog::drain(ControlFlow& flow, std::uint32_t open, std::uint32_t held, Sink&& sink) {
  unsigned head[32] = {}, end[32];
  std::uint64_t addresses[32];
  Stored stored[32];
  std::uint32_t active = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    end[lane] = count_[lane] - (held >> lane & 1);
    if (!(held >> lane & 1)) read_stored(lane);
    active |= std::uint32_t(end[lane] != 0) << lane;
  }

  // The usual case first: all lanes did the same. Rows of the log are then requests.
  if (active && !(open & ~active)) {
    const bool full_warp = active == 0xffffffffu;
    unsigned rows = kDepth;
    for (std::uint32_t rest = active; rest; rest &= rest - 1) {
      const unsigned n = end[__builtin_ctz(rest)];
      rows = n < rows ? n : rows;
    }
    const unsigned first = static_cast<unsigned>(__builtin_ctz(active));
    unsigned row = 0;
    for (; row < rows; ++row) {
      const Pc pc = pcs_[row][first];
      const std::uint32_t path = paths_[row][first];
      const std::uint64_t entry = entries_[row][first];
      unsigned n = 0;
      std::uint64_t differs = 0;
      if (full_warp) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          differs |= (pcs_[row][lane] ^ pc) | (paths_[row][lane] ^ path) | (entries_[row][lane] ^ entry) >> 48;
          addresses[lane] = entries_[row][lane] & kAddressMask;
        }
        n = 32;
      } else {
        for (std::uint32_t rest = active; rest; rest &= rest - 1) {
          const unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
          differs |= (pcs_[row][lane] ^ pc) | (paths_[row][lane] ^ path) | (entries_[row][lane] ^ entry) >> 48;
          addresses[n++] = entries_[row][lane] & kAddressMask;
        }
      }
      if (differs) break;
      emit(pc, entry, active, n, addresses, stored_[row], sink);
    }
    for (std::uint32_t rest = active; rest; rest &= rest - 1) {
      head[__builtin_ctz(rest)] = row;
      if (row) past_gate_[__builtin_ctz(rest)] = false;
    }
  }

  for (;;) {
    // A position in the code: that of the block, then that of the instruction. A gate is a block.
    constexpr std::uint64_t kNowhere = ~0ull;
    std::uint64_t stands_at[32], first = kNowhere;
    bool uncertain = false;
    for (unsigned lane = 0; lane < 32; ++lane) {
      stands_at[lane] = kNowhere;
      if (head[lane] == end[lane]) {
        uncertain |= open >> lane & 1;
        continue;
      }
      const std::uint32_t path = paths_[head[lane]][lane];
      const std::uint32_t gate = past_gate_[lane] ? 0 : flow.gate(path);
      stands_at[lane] = gate ? std::uint64_t(gate) << 32 : std::uint64_t(flow.position(path)) << 32 | pcs_[head[lane]][lane];
      first = stands_at[lane] < first ? stands_at[lane] : first;
    }
    if (uncertain || first == kNowhere) break;
    const Pc pc = static_cast<Pc>(first);
    if (pc == 0) {
      for (unsigned lane = 0; lane < 32; ++lane) past_gate_[lane] |= stands_at[lane] == first;
      continue;
    }
    std::uint64_t entry = 0;
    std::uint32_t lanes = 0;
    unsigned n = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned at = head[lane];
      if (stands_at[lane] != first) continue;
      if (!lanes)
        entry = entries_[at][lane];
      else if ((entries_[at][lane] ^ entry) >> 48)
        continue;
      lanes |= 1u << lane;
      addresses[n++] = entries_[at][lane] & kAddressMask;
      if (is_store(op_of(entry))) stored[lane] = stored_[at][lane];
      ++head[lane];
      past_gate_[lane] = false;
    }
    emit(pc, entry, lanes, n, addresses, stored, sink);
  }

  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = head[lane]; i < count_[lane]; ++i) {
      entries_[i - head[lane]][lane] = entries_[i][lane];
      pcs_[i - head[lane]][lane] = pcs_[i][lane];
      paths_[i - head[lane]][lane] = paths_[i][lane];
      stored_[i - head[lane]][lane] = stored_[i][lane];
    }
    count_[lane] -= head[lane];
    if (unread_[lane]) unread_[lane] -= head[lane];
  }
}

}  // namespace interpreter
