/// @file
/// __restrict__ that is not true: a kernel reads through such a parameter what it has written through another.
///
/// Parameters are known by the names that the accesses have in the source, and only where two of them were given pointers into one
/// allocation. What is read first and written then is let pass: many kernels work in place, and no compiler makes that wrong.
#pragma once

#include <set>
#include <string>

#include "common/interpreter/happens_before/clocks.h"
#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/running/launch_state.h"

namespace interpreter {

class Reporter;
class Scheduler;

/// Names of the __restrict__ parameters of the launched kernel that point into the same allocation as another parameter.
std::set<std::string> shared_restrict_parameters(const Launch& launch);

/// Looks at the reads of the running block.
class RestrictCheck {
 public:
  RestrictCheck(const Assignment& work, const BlockClock& clock, Scheduler& scheduler, Reporter& reporter)
      : work_(work), clock_(clock), scheduler_(scheduler), reporter_(reporter) {}
  /// One instruction of a warp.
  void check(unsigned warp, const Request& request) {
    if (!work_.launch->restricted.empty() && request.op == Op::kLoad && !request.shared) [[unlikely]]
      check_load(warp, request);
  }

 private:
  void check_load(unsigned warp, const Request& request);

  const Assignment& work_;
  const BlockClock& clock_;
  Scheduler& scheduler_;
  Reporter& reporter_;
};

}  // namespace interpreter
