/// @file
/// Medians and quantiles of rounds.
#pragma once

#include <vector>

namespace harness {

/// The q-quantile of `values`, interpolated between neighbours (type 7 of R. J. Hyndman and Y. Fan, 1996).
/// @param values at least one; q from 0 to 1
double quantile(std::vector<double> values, double q);

/// The time of `other` over that of `ours`, round by round, without rounds of ours that the clock did not resolve.
std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& other);

/// What contestants take, so that they can be compared: the median of the first one, times the median of the ratio to it, round by
/// round. By medians alone, who was just measured before the clocks fell would beat who came after.
/// @param seconds of each contestant in each round, at least one of each
std::vector<double> comparable(const std::vector<std::vector<double>>& seconds);

}  // namespace harness
