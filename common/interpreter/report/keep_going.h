/// @file
/// --keep-going: a program that goes on after a report, where nothing but the report would have ended it.
#pragma once

#include <string>

#include "common/interpreter/interpreter.h"

namespace interpreter {

/// What was told of a program that goes on. Several threads of the host may tell.
class KeepGoing {
 public:
  static constexpr unsigned kMost = 20;  ///< problems, after which the program ends

  static KeepGoing& instance();

  /// From now on the program goes on, and ends with exit code 1 if anything was told.
  void begin();
  bool is_on() const { return is_on_; }
  /// Prints a problem, each once. @param other_place the other one of two, file and line: whichever comes first, it is one problem
  /// @return whether the program may go on; if not, nothing is printed
  bool tell(const Diagnosis& diagnosis, const std::string& other_place);
  /// Prints how many there were, if any. @return whether there were
  bool end() const;

 private:
  bool is_on_ = false;
};

}  // namespace interpreter
