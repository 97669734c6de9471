#include "common/exercise/posed.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "common/exercise/witness.h"
#include "common/harness/problem/reference.h"
#include "common/harness/program/parallel.h"

namespace exercise {
namespace {

using harness::AnyMatrix, harness::DType, harness::Placement, harness::TestMatrix;

Placement placement(std::int64_t rows, std::int64_t cols, bool transposed, std::int64_t padding, std::int64_t offset = 0) {
  Placement p = transposed ? harness::column_major(rows, cols, padding) : harness::row_major(rows, cols, padding);
  p.offset = offset;
  return p;
}

// Numbers that nobody can guess from the element's place, of both signs, a few bits long: between -2 and 2.
double element(std::uint64_t matrix, std::int64_t row, std::int64_t col) {
  std::uint64_t x =
      matrix * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(row) * 0xbf58476d1ce4e5b9u + static_cast<std::uint64_t>(col);
  x = (x ^ x >> 31) * 0x94d049bb133111ebu;
  x ^= x >> 29;
  return static_cast<double>(static_cast<std::int64_t>(x % 257) - 128) / 64;
}

Placement moved(Placement p, std::int64_t offset) { return p.offset = offset, p; }

using Given = std::function<double(std::int64_t, std::int64_t)>;

// With the values that belong to `matrix` (1: A, 2: B, 3: the bias) among those that `values` stands for.
void fill(TestMatrix& m, std::uint64_t values, std::uint64_t matrix, double scale, const Given& given) {
  m.fill([&](std::int64_t r, std::int64_t c) { return scale * (given ? given(r, c) : element(16 * values + matrix, r, c)); });
}
TestMatrix filled(std::uint64_t values, std::uint64_t matrix, const std::string& name, DType type, const Placement& placement,
                  double scale, const Given& given = {}) {
  TestMatrix m(name, type, placement);
  fill(m, values, matrix, scale, given);
  return m;
}

std::string why_nan(const std::string& matrix) {
  return ".\n" + matrix +
         " is NaN before the call: no thread has stored this element, or something went into its sum that nobody wrote";
}

// The paddings of B and C.
std::int64_t of_b(const Case& c) { return c.padding_b < 0 ? c.padding : c.padding_b; }
std::int64_t of_c(const Case& c) { return c.padding_c < 0 ? c.padding : c.padding_c; }

class PosedCase final : public Posed {
 public:
  PosedCase(const Case& c, DType in, DType out)
      : Posed(c.m, c.n, c.k, filled(c.drawn, 1, "A", in, placement(c.m, c.k, c.layout.at(0) == 't', c.padding), c.scale, c.a),
              filled(c.drawn, 2, "B", in, placement(c.k, c.n, c.layout.at(1) == 't', of_b(c), c.b_offset), 1, c.b), out,
              placement(c.m, c.n, false, of_c(c), c.c_offset), "C",
              filled(c.drawn, 3, "bias", out, harness::row_major(c.epilogue.bias ? 1 : 0, c.n), 1), c.drawn),
        case_(c) {
    compute();
  }

  std::string compare_plain(const TestMatrix& of_c) const override {
    return reference_.value().compare(of_c, harness::Reference::Sums::kInParts);
  }
  std::vector<Product> products(const AnyMatrix& of_a, const AnyMatrix& of_b, const AnyMatrix& of_c) const override {
    return {{of_a, of_b, of_c}};
  }

 private:
  std::string compare() const override {
    std::string wrong = reference_.value().compare(C, harness::Reference::Sums::kFloat, case_.epilogue, bias);
    if (wrong.find(" is nan,") != std::string::npos || wrong.find(" is -nan,") != std::string::npos)
      wrong += why_nan("C");
    else if (const std::size_t at = wrong.find("] is ");
             at != std::string::npos && std::abs(std::strtod(wrong.c_str() + at + 5, nullptr)) > 1e30)
      wrong +=
          ".\nNo sum of these inputs is so large: something was used that nobody has set, a local variable for example, or the "
          "range of a type ends too early";
    else if (!wrong.empty())
      wrong += what_it_is(wrong);
    return wrong;
  }

  // Of a wrong element, the mistake that gives just this number; nothing where several could, or chance. Numbers that a test has
  // chosen have words of their own.
  std::string what_it_is(const std::string& wrong) const {
    long long row = 0, col = 0;
    double found = 0, tolerance = 0;
    if (case_.a || case_.b || case_.epilogue.bias || case_.epilogue.activation != harness::kActivation<gemm::Identity> ||
        std::sscanf(wrong.c_str(), "C[%lld, %lld] is %lf, expected %*f within %lf", &row, &col, &found, &tolerance) != 4)
      return "";
    std::vector<double> sums = {0};  // of the first products
    double squares = 0;
    for (std::int64_t i = 0; i < case_.k; ++i) {
      const double product = A.at(row, i) * B.at(i, col);
      sums.push_back(sums.back() + product), squares += product * product;
    }
    // How often chance hits one of so many numbers; products are multiples of 1/4096.
    const auto is_chance = [&](double candidates) {
      return candidates * std::max(tolerance, 0x1p-13 * case_.scale) > 0.01 * std::sqrt(squares);
    };
    const auto is = [&](double sum) { return std::abs(found - sum) <= tolerance; };
    const std::string all = std::to_string(case_.k);
    // What is chosen comes behind the same without padding.
    const char* const longer_rows = !case_.drawn && (case_.padding > 0 || of_c(case_) > 0)
                                        ? ".\nRows are longer here than what they hold: from one to the next it is row_stride"
                                        : "";
    if (found == 0) return ".\nThat is the sum of no products";
    if (is_chance(3 * static_cast<double>(case_.k))) return longer_rows;
    if (is(2 * sums.back())) return ".\nThat is twice the sum";
    for (std::size_t i = 1; i + 1 < sums.size(); ++i) {
      if (is(sums[i])) return ".\nThat is the sum of the first " + std::to_string(i) + " of " + all + " products";
      if (is(sums.back() - sums[i]))
        return ".\nThat is the sum without the first " + std::to_string(i) + " of " + all + " products";
    }
    const double elements = static_cast<double>(case_.m) * static_cast<double>(case_.n);
    if (is_chance(elements) || elements * static_cast<double>(case_.k) > 1e6) return longer_rows;
    for (std::int64_t r = 0; r < case_.m; ++r)
      for (std::int64_t c = 0; c < case_.n; ++c) {
        double sum = 0;
        for (std::int64_t i = 0; i < case_.k; ++i) sum += A.at(r, i) * B.at(i, c);
        if (is(sum)) return ".\nThat is what C[" + std::to_string(r) + ", " + std::to_string(c) + "] has to be";
      }
    return longer_rows;
  }

  void refill(std::uint64_t values) override {
    fill(A, values, 1, case_.scale, case_.a), fill(B, values, 2, 1, case_.b), fill(bias, values, 3, 1, {});
    compute();
  }

  void compute() {
    if (!is_witness()) reference_.emplace(A, B);
  }

  Case case_;
  std::optional<harness::Reference> reference_;
};

class PosedHeads final : public Posed {
 public:
  PosedHeads(const Heads& h, DType in, DType out)
      : Posed(h.each.m, h.each.n, h.each.k,
              filled(h.each.drawn, 1, h.names.substr(0, 1), in, of_a(h).placement(h.each.padding, h), h.each.scale, h.each.a),
              filled(h.each.drawn, 2, h.names.substr(1, 1), in, of_b(h).placement(exercise::of_b(h.each), h), 1, h.each.b), out,
              moved(of_c(h).placement(exercise::of_c(h.each), h), h.each.c_offset), h.names.substr(2, 1),
              filled(h.each.drawn, 3, "bias", out, harness::row_major(0, 0), 1), h.each.drawn),
        heads_(h) {}

  std::string compare_plain(const TestMatrix& C) const override { return compare_with(C, {1, true}); }
  std::vector<Product> products(const AnyMatrix& of_a, const AnyMatrix& of_b, const AnyMatrix& of_c) const override {
    const auto view = [](const AnyMatrix& m, const Part& part, DType type, std::int64_t head) -> AnyMatrix {
      const std::int64_t elements = part.row(head) * m.row_stride + part.col(head) * m.col_stride;
      return {static_cast<unsigned char*>(m.data) + elements * static_cast<std::int64_t>(harness::bytes(type)), part.rows,
              part.cols, m.row_stride, m.col_stride};
    };
    std::vector<Product> all;
    for (std::int64_t head = 0; head < heads_.count; ++head) {
      AnyMatrix b = view(of_b, PosedHeads::of_b(heads_), B.type(), head);
      if (is_transposed(heads_)) std::swap(b.rows, b.cols), std::swap(b.row_stride, b.col_stride);
      all.push_back(
          {view(of_a, PosedHeads::of_a(heads_), A.type(), head), b, view(of_c, PosedHeads::of_c(heads_), C.type(), head)});
    }
    return all;
  }

 private:
  // A head's part of a matrix, and where it begins.
  struct Part {
    std::int64_t rows, cols;
    bool beside;
    std::int64_t row(std::int64_t head) const { return beside ? 0 : head * rows; }
    std::int64_t col(std::int64_t head) const { return beside ? head * cols : 0; }
    Placement placement(std::int64_t padding, const Heads& h) const {
      return harness::row_major(beside ? rows : h.count * rows, beside ? h.count * cols : cols, padding);
    }
  };
  static bool is_transposed(const Heads& h) { return h.each.layout.at(1) == 't'; }
  static Part of_a(const Heads& h) { return {h.each.m, h.each.k, h.a_beside}; }
  static Part of_b(const Heads& h) {
    return is_transposed(h) ? Part{h.each.n, h.each.k, h.b_beside} : Part{h.each.k, h.each.n, h.b_beside};
  }
  static Part of_c(const Heads& h) { return {h.each.m, h.each.n, h.c_beside}; }

  std::string compare() const override { return compare_with(C, {heads_.factor, false}); }
  void refill(std::uint64_t values) override {
    fill(A, values, 1, heads_.each.scale, heads_.each.a), fill(B, values, 2, 1, heads_.each.b);
  }

  // How a result may differ from the product.
  struct Wanted {
    double factor;
    bool may_be_in_parts;  // summed in parts, in C's type
  };

  std::string compare_with(const TestMatrix& got, const Wanted& wanted) const {
    const auto& [m, n, k] = std::tie(heads_.each.m, heads_.each.n, heads_.each.k);
    const Part b = of_b(heads_);
    const bool transposed = is_transposed(heads_);
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> wrong;  // by head, and first row of a part
    std::mutex one_at_a_time;
    std::vector<double> columns(static_cast<std::size_t>(n * k));  // at() is slow
    for (std::int64_t head = 0; head < heads_.count && wrong.empty(); ++head) {
      for (std::int64_t i = 0; i < n * k; ++i)
        columns[static_cast<std::size_t>(i)] =
            B.at(b.row(head) + (transposed ? i / k : i % k), b.col(head) + (transposed ? i % k : i / k));
      harness::in_parts(m, static_cast<double>(m * n * k), [&](std::int64_t begin, std::int64_t end) {
        const std::string text = compare_rows(got, wanted, head, columns, begin, end);
        const std::lock_guard lock(one_at_a_time);
        if (!text.empty()) wrong[{head, begin}] = text;
      });
    }
    return wrong.empty() ? "" : wrong.begin()->second;
  }

  std::string compare_rows(const TestMatrix& got, const Wanted& wanted, std::int64_t head, const std::vector<double>& columns,
                           std::int64_t begin, std::int64_t end) const {
    const std::int64_t k = heads_.each.k;
    const Part a = of_a(heads_), to = of_c(heads_);
    const DType out = got.type();
    for (std::int64_t row = begin; row < end; ++row) {
      std::vector<double> of_row;
      for (std::int64_t i = 0; i < k; ++i) of_row.push_back(A.at(a.row(head) + row, a.col(head) + i));
      for (std::int64_t col = 0; col < heads_.each.n; ++col) {
        double sum = 0, magnitude = 0;
        for (std::size_t i = 0; i < of_row.size(); ++i) {
          const double product = of_row[i] * columns[static_cast<std::size_t>(col) * of_row.size() + i];
          sum += product, magnitude += std::abs(product);
        }
        const double expected = wanted.factor * sum, found = got.at(to.row(head) + row, to.col(head) + col);
        const double tolerance = std::abs(wanted.factor) * magnitude * static_cast<double>(k + 2) * 0x1p-23 +
                                 (wanted.may_be_in_parts ? magnitude * harness::unit_roundoff(out) : 0) +
                                 std::abs(expected) * 1.01 * harness::unit_roundoff(out) + harness::underflow_unit(out);
        if (std::abs(found - expected) <= tolerance) continue;
        std::string text = "element (" + std::to_string(row) + ", " + std::to_string(col) + ") of head " + std::to_string(head) +
                           " is " + number(found) + ", expected " + number(expected) + " within " + number(tolerance);
        if (std::isnan(found)) text += why_nan(heads_.names.substr(2, 1));
        return text;
      }
    }
    return "";
  }

  Heads heads_;
};

}  // namespace

Posed::Posed(std::int64_t m, std::int64_t n, std::int64_t k, TestMatrix a, TestMatrix b, DType out, const Placement& of_c,
             const std::string& name_of_c, TestMatrix of_bias, std::uint64_t values)
    : A(std::move(a)),
      B(std::move(b)),
      C(name_of_c, out, of_c),
      bias(std::move(of_bias)),
      m_(m),
      n_(n),
      k_(k),
      placement_of_c_(of_c),
      name_of_c_(name_of_c),
      values_(values) {
  C.poison();
}

Operands Posed::operands(const AnyMatrix& of_a, const AnyMatrix& of_b, const AnyMatrix& of_c, const void* of_bias) const {
  const auto erased = [](const AnyMatrix& v) { return Matrix<void>{v.data, v.rows, v.cols, v.row_stride, v.col_stride}; };
  return {m_, n_, k_, erased(of_a), erased(of_b), erased(of_c), of_bias};
}

std::string Posed::fetch() {
  if (std::string wrong = seen([&] { return C.fetch(); }); !wrong.empty()) return wrong;
  if (!is_witness() && !is_judge()) return "";
  const auto elements = seen([&] {
    std::vector<double> all;
    for (std::int64_t row = 0; row < C.rows(); ++row)
      for (std::int64_t col = 0; col < C.cols(); ++col) all.push_back(C.at(row, col));
    return all;
  });
  if (!is_judge()) return "";
  if (elements.size() != static_cast<std::size_t>(C.rows() * C.cols())) return "it has another number of elements";
  C.fill([&](std::int64_t row, std::int64_t col) { return elements[static_cast<std::size_t>(row * C.cols() + col)]; });
  return "";
}

std::string Posed::verify() {
  if (std::string wrong = fetch(); !wrong.empty()) return wrong;
  if (!is_witness())
    if (std::string wrong = compare(); !wrong.empty()) return wrong;
  for (const TestMatrix* input : {&A, &B, &bias})
    if (std::string wrong = seen([&] { return input->changed(); }); !wrong.empty()) return wrong;
  return "";
}

TestMatrix Posed::another_C() const {
  TestMatrix other(name_of_c_, C.type(), placement_of_c_);
  other.poison();
  return other;
}

double Posed::input_bytes() const {
  return static_cast<double>(A.rows() * A.cols() + B.rows() * B.cols()) * static_cast<double>(harness::bytes(A.type()));
}
double Posed::output_bytes() const {
  return static_cast<double>(C.rows() * C.cols()) * static_cast<double>(harness::bytes(C.type()));
}

std::unique_ptr<Posed> posed(const Case& c, DType in, DType out) { return std::make_unique<PosedCase>(c, in, out); }
std::unique_ptr<Posed> posed(const Heads& h, DType in, DType out) { return std::make_unique<PosedHeads>(h, in, out); }

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, x >= 1000 ? "%.0f" : "%.4g", x);
  return text;
}

}  // namespace exercise
