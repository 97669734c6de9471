/// @file
/// Where a block's threads wait for each other, for reports on others that did not.
#pragma once

#include <string>

#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

/// Where `waiting` waits.
inline Location place_of(const Fiber& waiting) {
  return waiting.waits_at_pc ? user_location(waiting.waits_at_pc) : Location{waiting.waits_at.file, waiting.waits_at.line};
}

/// What checks ask; Meetings knows the answers.
class Whereabouts {
 public:
  /// Where `fiber` waits at a __syncthreads() that stands between the two lines: who came from one to the other without it has
  /// gone past it. In a loop the barrier may be that of another round, which everybody has reached. @return line 0: at none
  virtual Location barrier_between(const Fiber& fiber, const Location& from, const Location& to) const = 0;
  /// The same of lanes: `fiber` waits for `running`, in a collective that stands between the two lines.
  virtual Location collective_between(const Fiber& fiber, const Fiber& running, const Location& from, const Location& to) const = 0;
  /// A thread that waits at a __syncthreads() in a loop of which `running` is in a later round; null if there is none.
  virtual const Fiber* waits_where_passed_by(const Fiber& running) = 0;
  /// A thread that waits at a __syncthreads() while `running` has gone through code again that both have passed since the last
  /// one: of a barrier where nobody has gone on yet, one does not know whether it stands in that loop. Null if there is none.
  virtual const Fiber* waits_in_earlier_round(const Fiber& running) const = 0;
  /// A __syncthreads() of this kernel, which other blocks have passed, in a loop of which `running` has gone through a round since
  /// its last barrier. @return line 0: there is none
  virtual Location barrier_left_out(const Fiber& running) const = 0;
  /// Of two lanes of the warp that met in one collective, each at another call in the source, the first time: the end of a
  /// sentence. Empty if that has not happened in a collective of that name.
  virtual std::string who_met_elsewhere(unsigned warp, const char* name) const = 0;

 protected:
  ~Whereabouts() = default;
};

}  // namespace interpreter
