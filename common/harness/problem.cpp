#include "common/harness/problem.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <random>
#include <vector>

#include "common/harness/parallel.h"
#include "common/harness/text.h"

namespace harness {
namespace {

constexpr unsigned kSeed = 0;

// Box and Muller's method, because std::normal_distribution gives other numbers with other libraries. One thread draws, which takes
// little; all cores compute the logarithms, sines and cosines of what was drawn, which for 4096 x 4096 takes one of them a second.
class NormalNumbers {
 public:
  double operator()() {
    if (next_ == numbers_.size()) refill();
    return numbers_[next_++];
  }

 private:
  void refill() {
    // Small problems need few, and there are many of them in tests.
    numbers_.resize(numbers_.empty() ? 1024 : std::min<std::size_t>(2 * numbers_.size(), 1 << 20));
    next_ = 0;
    for (std::size_t i = 0; i < numbers_.size(); i += 2) {
      numbers_[i] = static_cast<double>((engine_() >> 11) + 1) * 0x1p-53;
      numbers_[i + 1] = static_cast<double>(engine_() >> 11) * 0x1p-53;
    }
    const std::int64_t pairs = static_cast<std::int64_t>(numbers_.size()) / 2;
    in_parts(pairs, 20.0 * static_cast<double>(pairs), [this](std::int64_t begin, std::int64_t end) {
      for (double* pair = &numbers_[static_cast<std::size_t>(2 * begin)]; begin < end; ++begin, pair += 2) {
        const double radius = std::sqrt(-2 * std::log(pair[0])), angle = 2 * std::numbers::pi * pair[1];
        pair[0] = radius * std::cos(angle), pair[1] = radius * std::sin(angle);
      }
    });
  }

  std::mt19937_64 engine_{kSeed};
  std::vector<double> numbers_;
  std::size_t next_ = 0;
};

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

Problem::Problem(const Spec& spec) : Problem(spec, NormalNumbers()) {}

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
