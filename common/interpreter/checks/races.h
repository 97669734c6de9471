/// @file
/// racecheck: accesses of two threads to the same bytes with no order between them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "common/interpreter/checks/shadows.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class AsyncProxy;
class Reporter;
class Scheduler;
class VolatileUpdates;

/// Looks at the accesses of the running block, and remembers them.
class RaceCheck {
 public:
  RaceCheck(const Assignment& work, const BlockClock& clock, Shadows& shadows, VolatileUpdates& updates, Scheduler& scheduler,
            Reporter& reporter, AsyncProxy& async_proxy)
      : work_(work),
        clock_(clock),
        shadows_(shadows),
        updates_(updates),
        scheduler_(scheduler),
        reporter_(reporter),
        async_proxy_(async_proxy) {}
  /// A block begins.
  void begin();

  /// One instruction of a warp. @param comparing lanes whose plain load is the look before an atomicCAS
  void check(unsigned warp, const Request& request, std::uint32_t comparing);
  /// The fiber is about to do an atomicCAS at `address`, where it has looked before by the plain load at `pc`.
  void learn_look_before_cas(const Fiber& fiber, Pc pc, std::uintptr_t address, unsigned size);
  /// A load of the fiber through the read-only cache.
  void check_read_only_load(Fiber& fiber, const void* p, std::size_t bytes, const void* return_address);
  void report(const Race& race, unsigned warp, const WarpAccess& access);

 private:
  void note_same_value(const Race& race, const WarpAccess& access);
  void note_look_before_cas(const WarpAccess& access, std::uintptr_t address);
  std::string not_handed_on(const Race& race, unsigned thread, bool by_other) const;

  const Assignment& work_;
  const BlockClock& clock_;
  Shadows& shadows_;
  VolatileUpdates& updates_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  AsyncProxy& async_proxy_;
  std::uint64_t launch_ = 0;           // whose notes these are
  std::set<std::pair<Pc, Pc>> noted_;  // what has been looked at for a note
};

}  // namespace interpreter
