#include "common/interpreter/language/math.h"

namespace interpreter {

// Newton's method on erfc, from a start that is good to three digits; each step doubles the right ones.
double inverse_erfc(double y) {
  if (!(y >= 0 && y <= 2)) return std::numeric_limits<double>::quiet_NaN();
  if (y == 0 || y == 2) return y == 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  if (y > 1) return -inverse_erfc(2 - y);
  const double t = std::sqrt(-2 * std::log(y / 2));
  double x = -std::sqrt(0.5) * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
  for (int round = 0; round < 4; ++round) {
    const double error = std::erfc(x) - y;
    x += error / (2 / std::sqrt(std::numbers::pi) * std::exp(-x * x) - x * error);
  }
  return x;
}

}  // namespace interpreter
