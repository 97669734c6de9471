#include "common/harness/problem/problem.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <random>
#include <vector>

#include "common/harness/program/parallel.h"
#include "common/harness/program/text.h"

namespace harness {
namespace {

constexpr unsigned kSeed = 0;

// Box and Muller's method, because std::normal_distribution gives other numbers with other libraries. One thread draws, which takes
// little; all cores compute the logarithms, sines and cosines of what was drawn.
class NormalNumbers {
 public:
  const double* operator()(std::int64_t count) {
    std::int64_t have = 0;
    numbers_.resize(static_cast<std::size_t>(count + 2));
    if (has_second_ && count > 0) numbers_[have++] = second_, has_second_ = false;
    const std::int64_t pairs = (count - have + 1) / 2;
    double* const first = numbers_.data() + have;
    for (std::int64_t i = 0; i < pairs; ++i) {
      first[2 * i] = static_cast<double>((engine_() >> 11) + 1) * 0x1p-53;
      first[2 * i + 1] = static_cast<double>(engine_() >> 11) * 0x1p-53;
    }
    in_parts(pairs, 20.0 * static_cast<double>(pairs), [first](std::int64_t begin, std::int64_t end) {
      for (double* pair = first + 2 * begin; begin < end; ++begin, pair += 2) {
        const double radius = std::sqrt(-2 * std::log(pair[0])), angle = 2 * std::numbers::pi * pair[1];
        pair[0] = radius * std::cos(angle), pair[1] = radius * std::sin(angle);
      }
    });
    if (have + 2 * pairs > count) second_ = first[2 * pairs - 1], has_second_ = true;
    return numbers_.data();
  }

 private:
  std::mt19937_64 engine_{kSeed};
  std::vector<double> numbers_;
  double second_ = 0;  // of a pair whose first has been given out
  bool has_second_ = false;
};

Placement placement(std::int64_t rows, std::int64_t cols, bool transposed) {
  return transposed ? column_major(rows, cols) : row_major(rows, cols);
}

TestMatrix filled(const char* name, DType type, const Placement& placement, const Problem::Numbers& random) {
  TestMatrix matrix(name, type, placement);
  matrix.fill_in_order(random);
  return matrix;
}

// Numbers one by one, as many at once as are wanted.
Problem::Numbers collected(const std::function<double()>& random) {
  return [&random, numbers = std::vector<double>()](std::int64_t count) mutable {
    numbers.resize(static_cast<std::size_t>(count));
    for (double& number : numbers) number = random();
    return static_cast<const double*>(numbers.data());
  };
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

Problem::Problem(const Spec& spec) : Problem(spec, Numbers(NormalNumbers())) {}

Problem::Problem(const Spec& spec, const std::function<double()>& random) : Problem(spec, collected(random)) {}

Problem::Problem(const Spec& s, const Numbers& random)
    : spec(s),
      A(filled("A", s.in, placement(s.m, s.k, s.transpose_a), random)),
      B(filled("B", s.in, placement(s.k, s.n, s.transpose_b), random)),
      C("C", s.out, row_major(s.m, s.n)),
      bias(filled("bias", s.out, row_major(s.epilogue.bias ? 1 : 0, s.n), random)),
      reference(A, B) {
  C.poison();
}

Reference::Sums sums_of(const Variant& v, const Spec& spec) {
  return v.unfused && !spec.epilogue.is_identity() ? Reference::Sums::kInParts : Reference::Sums::kFloat;
}

std::string Problem::verify(Reference::Sums sums) {
  if (std::string wrong = C.fetch(); !wrong.empty()) return wrong;
  if (std::string wrong = reference.compare(C, sums, spec.epilogue, bias); !wrong.empty()) return wrong;
  if (std::string wrong = A.changed(); !wrong.empty()) return wrong;
  if (std::string wrong = B.changed(); !wrong.empty()) return wrong;
  return bias.changed();
}

}  // namespace harness
