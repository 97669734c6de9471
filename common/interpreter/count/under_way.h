/// @file
/// How much was under way at the same time. No clock says whether copies and products overlap; these numbers say whether they can.
#pragma once

#include <atomic>
#include <cstdint>

namespace interpreter {

/// The most since the program's start, or since it was set to zero. It depends on the order of threads: one in which readers come
/// late shows how far a ring lets copies run ahead.
struct MostUnderWay {
  std::atomic<std::uint64_t> copies;     ///< loads by the copy engine to one block's shared memory, issued and not yet landed
  std::atomic<std::uint64_t> ahead;      ///< cp.async of a thread that it has not waited for, when older ones of it were waited for
  std::atomic<std::uint64_t> groups;     ///< groups of a warp's wgmma, committed and not yet waited for
  std::atomic<std::uint64_t> mbarriers;  ///< that a block has initialised
  void forget() { copies = ahead = groups = mbarriers = 0; }
};
MostUnderWay& most_under_way();  ///< of all launches

/// The same of each time, not of the best one: since the program's start, or since it was forgotten. It follows from what each
/// thread does, and from what threads learn of each other, so it is the same in every order of threads.
struct EachUnderWay {
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  /// Of the copy engine: how many loads of a block, the one that begins included, may be under way for all that the thread knows
  /// which issues it; the fewest, but for those that begin when it knows of none that has landed.
  std::atomic<std::uint64_t> fewest_copies = kNever;
  std::atomic<std::uint64_t> lonely_products;  ///< wgmma of a warp that began when no other one of it was under way
  /// At each load of a warp from shared memory, the bytes that cp.async of its lanes were to bring; their sum.
  std::atomic<std::uint64_t> bytes_at_loads;
  /// Stores of a warp to shared memory that come behind its loads from global memory, with no load from shared memory between.
  std::atomic<std::uint64_t> straight_stores;
  /// That setmaxnreg.inc has given to a thread which starts a wgmma, 0 if it has given none; the fewest.
  std::atomic<std::uint64_t> fewest_registers = kNever;
  /// Loads of a warp from global memory with less than half of its loads from shared memory behind them: of those between a store
  /// to shared memory and the next one.
  std::atomic<std::uint64_t> late_loads;
  void forget() {
    fewest_copies = fewest_registers = kNever;
    lonely_products = bytes_at_loads = straight_stores = late_loads = 0;
  }
};
EachUnderWay& each_under_way();  ///< of all launches

/// Whether the next launches look at each access for EachUnderWay::bytes_at_loads and straight_stores and for what Teamwork says of
/// bytes. These stay 0 if not: it takes time, and only exercises ask.
extern bool count_each_access;

/// `most` becomes `now` if that is more.
inline void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t now) {
  std::uint64_t before = most;
  while (before < now && !most.compare_exchange_weak(before, now)) {
  }
}
/// `fewest` becomes `now` if that is less.
inline void lower_to(std::atomic<std::uint64_t>& fewest, std::uint64_t now) {
  std::uint64_t before = fewest;
  while (before > now && !fewest.compare_exchange_weak(before, now)) {
  }
}

}  // namespace interpreter
