#include "common/harness/program/text.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace harness {

std::string formatted(const char* format, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string digits(double x) {  // three significant ones
  const std::string text = formatted("%.2e", x);
  if (!std::isfinite(x)) return text;
  const int exponent = std::stoi(text.substr(text.find('e') + 1));  // of the rounded number: 9.996 has one more digit than it seems
  return formatted("%.*f", std::clamp(2 - exponent, 0, 6), x);
}

std::string with_prefix(double x) {
  for (const auto& [scale, prefix] : {std::pair{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}})
    if (x >= 0.9995 * scale) return digits(x / scale) + prefix;
  return digits(x) + " ";
}

}  // namespace harness
