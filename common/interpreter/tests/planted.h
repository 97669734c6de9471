/// @file
/// Planted bugs and the diagnoses that they must get.
///
/// A comment "// BUG" marks the lines that a report may name; of a race, these are the lines of both accesses. A test finds the
/// marks in its own source, from the kernel's head to its closing brace.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/interpreter/interpreter.h"
#include "common/interpreter/tests/orders.h"

namespace planted {

/// The diagnosis that a bug must get.
struct Bug {
  std::string kernel;  ///< without its namespace
  interpreter::Check check = interpreter::Check::kLaunch;
  std::string variable = "";           ///< empty: none is involved
  std::vector<std::string> says = {};  ///< parts of the sentence, or of what is expected
  std::optional<uint3> thread = {};    ///< where only one thread can be to blame
  std::optional<uint3> block = {};
  std::string marked_in = "";                       ///< the function with the marks, if not the kernel
  bool nobodys_fault = false;                       ///< no thread, no line: the launch itself
  std::optional<interpreter::Check> or_check = {};  ///< the other thing that may be seen first
};

// Line numbers with a BUG mark between the head of `function` and the brace that closes it.
inline std::vector<int> marked_lines(const std::string& function, const char* file) {
  std::ifstream source(file);
  REQUIRE_MESSAGE(source.good(), "cannot read ", file);
  const std::string name = function.substr(0, function.find('<'));
  std::vector<int> marked;
  bool in_function = false;
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    const bool head = line.compare(0, 2, "__") == 0 && line.find(" " + name + "(") != std::string::npos;
    in_function |= head;
    if (in_function && line.find("// BUG") != std::string::npos) marked.push_back(number);
    if (in_function && (line == "}" || (head && line.back() == '}'))) break;
  }
  return marked;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
inline bool equal(uint3 a, uint3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

inline void check_diagnosis(const Bug& bug, const interpreter::Diagnosis& d, const char* file) {
  const std::string file_name = std::filesystem::path(file).filename();
  CAPTURE(d.text());
  if (!(bug.or_check && d.check == *bug.or_check)) CHECK(std::string(name(d.check)) == name(bug.check));
  CHECK_FALSE(d.what.empty());
  CHECK_FALSE(d.expected.empty());
  CHECK(contains(d.kernel, bug.kernel));
  for (const std::string& part : bug.says) CHECK_MESSAGE(contains(d.what + "\n" + d.expected, part), "should say: ", part);
  if (bug.nobodys_fault) {
    CHECK(d.warp == -1);
    CHECK(d.line == 0);
    return;
  }
  if (!bug.variable.empty()) CHECK(d.variable == bug.variable);

  const std::vector<int> lines = marked_lines(bug.marked_in.empty() ? bug.kernel : bug.marked_in, file);
  REQUIRE_FALSE(lines.empty());
  CHECK_MESSAGE(std::count(lines.begin(), lines.end(), d.line) == 1, "not a marked line: ", d.line);
  CHECK(contains(d.file, file_name));
  if (d.check == interpreter::Check::kRacecheck)  // names the other side, too
    CHECK(std::any_of(lines.begin(), lines.end(),
                      [&](int l) { return contains(d.what, file_name + ":" + std::to_string(l) + ","); }));

  CHECK(d.warp >= 0);
  CHECK(d.lane >= 0);
  if (bug.thread) CHECK(equal(d.thread, *bug.thread));
  if (bug.block) CHECK(equal(d.block, *bug.block));
  CHECK(contains(d.text(), ":" + std::to_string(d.line)));
}

/// `start` launches the kernel, in every order with new buffers.
inline void must_be_caught(const Bug& bug, const std::function<void()>& start, const char* file) {
  in_all_orders([&] {
    std::optional<interpreter::Diagnosis> found;
    try {
      start();
    } catch (const interpreter::KernelError& error) {
      found = error.diagnosis;
    }
    REQUIRE_MESSAGE(found.has_value(), "nothing was reported for ", bug.kernel);
    check_diagnosis(bug, *found, file);
  });
}

}  // namespace planted
