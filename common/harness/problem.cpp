#include "common/harness/problem.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <random>

#include "common/harness/text.h"

namespace harness {
namespace {

constexpr unsigned kSeed = 0;

// Box and Muller's method, because std::normal_distribution gives other numbers with other libraries.
std::function<double()> normal_numbers() {
  return [engine = std::mt19937_64(kSeed), second = 0.0, has_second = false]() mutable {
    if (has_second) {
      has_second = false;
      return second;
    }
    const double u = static_cast<double>((engine() >> 11) + 1) * 0x1p-53, v = static_cast<double>(engine() >> 11) * 0x1p-53;
    const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
    second = radius * std::sin(angle), has_second = true;
    return radius * std::cos(angle);
  };
}

Placement placement(std::int64_t rows, std::int64_t cols, bool transposed) {
  return transposed ? column_major(rows, cols) : row_major(rows, cols);
}

TestMatrix filled(const char* name, DType type, const Placement& placement, const std::function<double()>& random) {
  TestMatrix matrix(name, type, placement);
  matrix.fill([&](std::int64_t, std::int64_t) { return random(); });
  return matrix;
}

double available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key; meminfo >> key;) {
    double kilobytes;
    if (key == "MemAvailable:" && meminfo >> kilobytes) return kilobytes * 1024;
  }
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

double matrix_bytes(const Spec& s) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  return (m * k + k * n) * static_cast<double>(bytes(s.in)) +
         (m + (s.epilogue.bias ? 1 : 0)) * n * static_cast<double>(bytes(s.out));
}

void check_host_memory(const Spec& s, double extra) {
  // Matrices as they are and as they were fetched, with their patterns; B and the reference in double precision.
  const double kn = static_cast<double>(s.k) * static_cast<double>(s.n), mn = static_cast<double>(s.m) * static_cast<double>(s.n);
  const double needed = 2.2 * matrix_bytes(s) + 8 * kn + 16 * mn + extra;
  if (needed > available_bytes())
    throw BadInput(s.shape() + " needs about " + with_prefix(needed) + "B of memory, " + with_prefix(available_bytes()) +
                   "B are available; choose a smaller --shape");
}

Problem::Problem(const Spec& spec) : Problem(spec, normal_numbers()) {}

Problem::Problem(const Spec& s, const std::function<double()>& random)
    : spec(s),
      A(filled("A", s.in, placement(s.m, s.k, s.transpose_a), random)),
      B(filled("B", s.in, placement(s.k, s.n, s.transpose_b), random)),
      C("C", s.out, row_major(s.m, s.n)),
      bias(filled("bias", s.out, row_major(s.epilogue.bias ? 1 : 0, s.n), random)),
      reference(A, B) {
  C.poison();
}

std::string Problem::verify() {
  if (std::string wrong = C.fetch(); !wrong.empty()) return wrong;
  if (std::string wrong = reference.compare(C, Reference::Sums::kFloat, spec.epilogue, bias); !wrong.empty()) return wrong;
  if (std::string wrong = A.changed(); !wrong.empty()) return wrong;
  if (std::string wrong = B.changed(); !wrong.empty()) return wrong;
  return bias.changed();
}

}  // namespace harness
