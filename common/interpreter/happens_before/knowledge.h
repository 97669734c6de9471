/// @file
/// Who did something when, and what threads know of it.
#pragma once

#include <boost/container/flat_map.hpp>
#include <cstdint>
#include <memory>

namespace interpreter {

/// A thread of a launch: `launch << 50 | block << 10 | thread`. Never 0.
using ThreadId = std::uint64_t;
constexpr ThreadId make_thread_id(std::uint64_t launch, std::uint64_t block, unsigned thread) {
  return (launch & 0x1fff) << 50 | block << 10 | thread;
}
constexpr std::uint64_t block_of(ThreadId id) { return id >> 10; }  ///< unique per launch and block
constexpr std::uint64_t launch_of(ThreadId id) { return id >> 50; }
constexpr unsigned thread_of(ThreadId id) { return static_cast<unsigned>(id) & 1023; }

/// Of the copy engine, when it writes for the mbarrier number `thread` of a block.
inline constexpr ThreadId kEngine = 1ull << 49;

/// An access: who, when by the clock of his block, and from where.
struct Stamp {
  ThreadId thread = 0;  ///< 0: no access
  std::uint32_t time = 0;
  std::uint32_t pc = 0;  ///< with flags: kAtomicPc, kBlockScopePc, kEnginePc
};
inline constexpr std::uint32_t kAtomicPc = 1u << 31;      ///< an atomic or volatile access, which races only with plain ones
inline constexpr std::uint32_t kBlockScopePc = 1u << 30;  ///< and with those of other blocks
inline constexpr std::uint32_t kEnginePc = 1u << 29;      ///< an access of the copy engine, which the thread has issued there
inline constexpr std::uint32_t kPcFlags = kAtomicPc | kBlockScopePc | kEnginePc;

/// Small, and copied and merged far more often than searched: a sorted array, not nodes.
template <class Key, class T>
using FlatMap = boost::container::flat_map<Key, T>;

/// Times up to which accesses of others are known, per block and thread.
struct BlockKnowledge {
  std::uint32_t before = 0;                  ///< of every thread of the block
  FlatMap<unsigned, std::uint32_t> threads;  ///< of single threads, where later than `before`
};
using Knowledge = FlatMap<std::uint64_t, BlockKnowledge>;
using KnowledgePtr = std::shared_ptr<const Knowledge>;
/// With this bit in the block's number, knowledge is of reads alone: they are over, but what was written need not be seen.
inline constexpr std::uint64_t kReadsOnly = 1ull << 53;  // the launch ends below
/// Whether what `stamp` stands for is among it.
bool covers(const KnowledgePtr& knowledge, const Stamp& stamp);
/// The same of a read.
bool covers_read(const KnowledgePtr& knowledge, const Stamp& stamp);
/// What is in one of the two.
KnowledgePtr merge(const KnowledgePtr& a, const KnowledgePtr& b);
/// What is left of it when threads' writes are not seen.
KnowledgePtr without_writes(const KnowledgePtr& knowledge);
/// Adds what is in `from`.
void add(Knowledge& to, const Knowledge& from);
using Times = FlatMap<unsigned, std::uint32_t>;  ///< as in BlockKnowledge
void add(Times& to, const Times& from);

}  // namespace interpreter
