// Launches every pattern once, for ncu to count; with arguments, those that have one of them in their names; with -l, only says
// what they are.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "common/interpreter/tests/hopper_patterns.h"

int main(int argc, char** argv) {
  std::vector<std::string> parts(argv + 1, argv + argc);
  const bool list = !parts.empty() && parts[0] == "-l";
  if (list) parts.erase(parts.begin());
  for (const hopper_patterns::Pattern& pattern : hopper_patterns::all()) {
    const auto has = [&](const std::string& part) { return pattern.what.find(part) != std::string::npos; };
    if (!parts.empty() && std::none_of(parts.begin(), parts.end(), has)) continue;
    if (list)
      std::puts(pattern.what.c_str());
    else
      pattern.launch();
  }
}
