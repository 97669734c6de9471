#include "common/exercise/speed.h"

#include <cmath>
#include <cstdio>

namespace exercise {
namespace {

std::string digits(const char* format, double x) {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}
std::string milliseconds(double seconds) { return digits("%.4g ms", 1e3 * seconds); }
std::string times(double ratio) { return digits("%.2f times", ratio); }

}  // namespace

std::string too_slow(const Speed& s) {
  if (s.ratio > 0 && s.ratio <= s.bar) return "";
  if (!(s.ratio > 0) || std::isinf(s.ratio))
    return "The result is right, but no clock could tell what the kernel takes: try again.";
  return "The result is right, the way to it is not yet: it takes " + times(s.ratio) +
         " as long as the solution does, where at most " + times(s.bar) + " is wanted.\nA call takes " + milliseconds(s.seconds) +
         ", one of the solution " + milliseconds(s.solutions_seconds) + ": medians of " + std::to_string(s.rounds) +
         " rounds in which both ran in turn.";
}

std::string in_words(const Speed& s) {
  return milliseconds(s.seconds) + " a call, " + times(s.ratio) + " what the solution takes (at most " + digits("%.4g", s.bar) +
         ")";
}

}  // namespace exercise
