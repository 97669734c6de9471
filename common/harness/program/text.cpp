#include "common/harness/program/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace harness {

std::string digits(double x) {  // three significant ones
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", x);
  if (!std::isfinite(x)) return text;
  const int exponent = std::atoi(std::strchr(text, 'e') + 1);  // of the rounded number: 9.996 has one more digit than it seems
  std::snprintf(text, sizeof text, "%.*f", std::clamp(2 - exponent, 0, 6), x);
  return text;
}

std::string with_prefix(double x) {
  for (const auto& [scale, prefix] : {std::pair{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}})
    if (x >= 0.9995 * scale) return digits(x / scale) + prefix;
  return digits(x) + " ";
}

}  // namespace harness
