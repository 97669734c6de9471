/// @file
/// What cooperative groups need of the interpreter beyond CUDA's functions.
#pragma once

#include "common/interpreter/language/language.h"

namespace interpreter {

/// The lanes of the warp that execute the call `site` together: those that come here before the warp can only go on with this.
/// A GPU promises no more than the calling lane; so much do all GPUs give where lanes have not parted.
unsigned converged_lanes(Site site);

/// Lets all threads of a cooperative launch meet. Traps in any other.
void grid_sync(Site site);

}  // namespace interpreter
