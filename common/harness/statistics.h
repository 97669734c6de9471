/// @file
/// Medians and quantiles of rounds.
#pragma once

#include <vector>

namespace harness {

/// The q-quantile of `values`, interpolated between neighbours (type 7 of R. J. Hyndman and Y. Fan, 1996).
/// @param values at least one; q from 0 to 1
double quantile(std::vector<double> values, double q);

}  // namespace harness
