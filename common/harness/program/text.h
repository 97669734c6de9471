/// @file
/// Messages: errors that a user can repair, and numbers for people.
#pragma once

#include <stdexcept>
#include <string>

namespace harness {

/// The message says what to do. Programs exit with 2.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// As printf writes it, up to 127 characters.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);
/// Three significant digits, without an exponent: "0.250", "16.0", "1500".
std::string digits(double x);
/// "1.23 T": three significant digits with the prefix that suits; a unit can follow.
std::string with_prefix(double x);

}  // namespace harness
