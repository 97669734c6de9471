/// @file
/// Kernels with a planted bug that name lines by labels: a comment "// <- label" at a line's end. A test says which lines a report
/// may name.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/interpreter/tests/orders.h"

namespace labelled {

/// The diagnosis that a bug must get.
struct Bug {
  std::string kernel;
  interpreter::Check check = interpreter::Check::kLaunch;
  std::string variable = "";
  std::vector<std::string> says = {};   ///< parts of the sentence, or of what is expected
  std::vector<std::string> at = {};     ///< labels of lines, one of which is to blame
  std::vector<std::string> other = {};  ///< labels of lines, one of which the sentence names as the other side
  /// What another order may see first, and where; of that, no more is asked.
  std::optional<interpreter::Check> or_check = {};
  std::vector<std::string> or_at = {};
};

inline int labelled_line(const std::string& function, const std::string& label, const char* file) {
  std::ifstream source(file);
  REQUIRE_MESSAGE(source.good(), "cannot read ", file);
  bool in_function = false;
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    in_function |= line.compare(0, 2, "__") == 0 && line.find(" " + function + "(") != std::string::npos;
    if (in_function && line.ends_with("// <- " + label)) return number;
    if (in_function && line == "}") break;
  }
  FAIL("no line of ", function, " is labelled ", label);
  return 0;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline void check_diagnosis(const Bug& bug, const interpreter::Diagnosis& d, const char* file) {
  const std::string file_name = std::filesystem::path(file).filename();
  CAPTURE(d.text());
  if (bug.or_check && d.check == *bug.or_check) {
    CHECK(contains(d.kernel, bug.kernel));
    CHECK(std::any_of(bug.or_at.begin(), bug.or_at.end(), [&](auto& l) { return labelled_line(bug.kernel, l, file) == d.line; }));
    return;
  }
  CHECK(std::string(name(d.check)) == name(bug.check));
  CHECK_FALSE(d.expected.empty());
  CHECK(contains(d.kernel, bug.kernel));
  CHECK(d.variable == bug.variable);
  for (const std::string& part : bug.says) CHECK_MESSAGE(contains(d.what + "\n" + d.expected, part), "should say: ", part);
  CHECK(contains(d.file, file_name));
  CHECK_MESSAGE(std::any_of(bug.at.begin(), bug.at.end(), [&](auto& l) { return labelled_line(bug.kernel, l, file) == d.line; }),
                "names another line: ", d.line);
  if (!bug.other.empty())
    CHECK(std::any_of(bug.other.begin(), bug.other.end(), [&](auto& l) {
      const std::string there = file_name + ":" + std::to_string(labelled_line(bug.kernel, l, file));
      return contains(d.what + " ", there + ",") || contains(d.what + " ", there + " ");
    }));
}

/// `start` launches the kernel and says whether the result is right.
inline void must_be_caught(const Bug& bug, const std::function<bool()>& start, const char* file) {
  in_all_orders([&] {
    std::optional<interpreter::Diagnosis> found;
    try {
      start();
    } catch (const interpreter::KernelError& error) {
      found = error.diagnosis;
    }
    REQUIRE_MESSAGE(found.has_value(), "nothing was reported");
    check_diagnosis(bug, *found, file);
  });
}
inline void must_be_right(const std::function<bool()>& start) {
  in_all_orders([&] { CHECK(start()); });
}
inline void must_be_wrong(const std::function<bool()>& start) {
  in_all_orders([&] { CHECK_FALSE(start()); });
}

}  // namespace labelled
