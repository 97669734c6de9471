#include "steps/tensor_parallel/problem.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

namespace tensor_parallel {
namespace {

// A number in `type`, as the device rounds it.
double rounded(harness::DType type, double x) {
  unsigned char bytes[4];
  harness::store(type, bytes, x);
  return harness::load(type, bytes);
}

// body(begin, end) on all cores, for parts of 0 to n.
template <class Body>
void on_all_cores(std::int64_t n, const Body& body) {
  const std::int64_t parts = std::min<std::int64_t>(n, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (std::int64_t part = 0; part < parts; ++part)
    threads.emplace_back([&, part] { body(n * part / parts, n * (part + 1) / parts); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

// With 64 products that are not zero, a hidden sum has a deviation of 8; with 25 of those, one of Y has about 40. bf16 has all
// integers up to 256.
Data integers(const Shape& shape) {
  const auto of = [](double products, std::int64_t k) {
    return std::clamp(static_cast<int>(65536 * products / static_cast<double>(std::max<std::int64_t>(1, k))), 1, 65536);
  };
  return {{1, 43690}, {2, of(64, shape.model)}, {3, of(25, shape.hidden)}};
}

Data reals(const Shape& shape) {
  const auto scale = [](std::int64_t k) {
    return static_cast<float>(std::exp2(-std::floor(std::log2(std::sqrt(static_cast<double>(std::max<std::int64_t>(1, k)))))));
  };
  return {{4, 0, 1}, {5, 0, scale(shape.model)}, {6, 0, scale(shape.hidden)}};
}

Reference::Reference(const Shape& shape, const Data& data, float slope, int ranks, harness::DType type, bool exact,
                     std::vector<std::int64_t> tokens)
    : shape_(shape), type_(type), tokens_(std::move(tokens)) {
  const auto index = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const auto count = static_cast<std::int64_t>(tokens_.size());
  const double u = harness::unit_roundoff(type), float_u = 0x1p-24;
  const auto w = [&](const Numbers& numbers, std::int64_t row, std::int64_t col) {
    const float x = numbers(row, col);
    return x == 0 ? 0 : rounded(type, x);
  };

  // Hidden layer, of each token: what it is, and by how much it may be off.
  std::vector<double> X(index(count * shape.model)), hidden(index(count * shape.hidden)), off(index(count * shape.hidden));
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t c = 0; c < shape.model; ++c) X[index(i * shape.model + c)] = w(data.X, tokens_[index(i)], c);
  on_all_cores(shape.hidden, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sum(index(count)), magnitude(index(count));
    for (std::int64_t f = begin; f < end; ++f) {
      std::fill(sum.begin(), sum.end(), 0), std::fill(magnitude.begin(), magnitude.end(), 0);
      for (std::int64_t c = 0; c < shape.model; ++c) {
        const double weight = w(data.W1, c, f);
        for (std::int64_t i = 0; weight != 0 && i < count; ++i) {
          const double product = X[index(i * shape.model + c)] * weight;
          sum[index(i)] += product, magnitude[index(i)] += std::abs(product);
        }
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const double h = sum[index(i)] > 0 ? sum[index(i)] : slope * sum[index(i)];
        hidden[index(i * shape.hidden + f)] = rounded(type, h);
        off[index(i * shape.hidden + f)] = 2 * u * std::abs(h) + static_cast<double>(shape.model) * float_u * magnitude[index(i)];
      }
    }
  });

  // Y: each rank rounds its part, and sums of parts are rounded up to once for each rank.
  sums_.resize(index(count * shape.model)), allowed_.resize(sums_.size());
  on_all_cores(shape.model, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      std::vector<double> sum(index(count)), tolerance(index(count)), parts(index(count));
      for (int rank = 0; rank < ranks; ++rank) {
        const Range mine = share(shape.hidden, kHiddenUnit, rank, ranks);
        std::vector<double> part(index(count));
        for (std::int64_t f = mine.begin; f < mine.end; ++f) {
          const double weight = w(data.W2, f, c);
          for (std::int64_t i = 0; weight != 0 && i < count; ++i) {
            const double h = hidden[index(i * shape.hidden + f)];
            part[index(i)] += h * weight;
            tolerance[index(i)] +=
                std::abs(weight) * (off[index(i * shape.hidden + f)] + static_cast<double>(shape.hidden) * float_u * std::abs(h));
          }
        }
        for (std::int64_t i = 0; i < count; ++i) sum[index(i)] += part[index(i)], parts[index(i)] += std::abs(part[index(i)]);
      }
      for (std::int64_t i = 0; i < count; ++i) {
        sums_[index(i * shape.model + c)] = sum[index(i)];
        const double allowed = tolerance[index(i)] + (ranks + 1) * u * parts[index(i)] + harness::underflow_unit(type);
        allowed_[index(i * shape.model + c)] = exact ? 0 : allowed;
      }
    }
  });
}

std::string Reference::compare(const std::vector<unsigned char>& rows) const {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const double y = harness::load(type_, rows.data() + i * harness::bytes(type_));
    if (std::abs(y - sums_[i]) <= allowed_[i]) continue;
    const auto model = static_cast<std::size_t>(shape_.model);
    return "Y of token " + std::to_string(tokens_[i / model]) + ", column " + std::to_string(i % model) + ": " + std::to_string(y) +
           " instead of " + std::to_string(sums_[i]) + ", which may be off by " + std::to_string(allowed_[i]);
  }
  return "";
}

}  // namespace tensor_parallel
