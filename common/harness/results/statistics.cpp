#include "common/harness/results/statistics.h"

#include <algorithm>

namespace harness {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& other) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < ours.size(); ++round)
    if (ours[round] > 0) ratios.push_back(other[round] / ours[round]);
  return ratios;
}

std::vector<double> comparable(const std::vector<std::vector<double>>& seconds) {
  const std::vector<double>& first = seconds.front();
  std::vector<double> compared;
  for (const std::vector<double>& each : seconds) {
    const std::vector<double> to_first = ratios(first, each);
    compared.push_back(to_first.empty() ? quantile(each, 0.5) : quantile(first, 0.5) * quantile(to_first, 0.5));
  }
  return compared;
}

}  // namespace harness
