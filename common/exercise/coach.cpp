#include "common/exercise/coach.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include "common/device/device.cuh"
#include "common/exercise/profile.h"
#include "common/harness/problem/reference.h"
#include "common/harness/problem/test_matrix.h"

namespace exercise {
namespace {

using interpreter::Counters;

std::string folder;  // in which the file lies that is judged

std::string shape(const Case& c, harness::DType in) {
  std::string text = std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k) + " (m, n, k) in " +
                     std::string(name(in)) + ", " + c.layout;
  if (c.padding) text += ", rows " + std::to_string(c.padding) + " elements longer than what they hold";
  if (c.b_offset) text += ", B begins " + std::to_string(c.b_offset) + " elements behind an aligned address";
  if (!c.what.empty()) text += ", " + c.what;
  return text;
}

// ------------------------------------------------------------------------------------------------------------ operands

harness::Placement placement(std::int64_t rows, std::int64_t cols, bool transposed, std::int64_t padding, std::int64_t offset = 0) {
  harness::Placement p = transposed ? harness::column_major(rows, cols, padding) : harness::row_major(rows, cols, padding);
  p.offset = offset;
  return p;
}

Matrix<void> erased(const harness::TestMatrix& m) {
  const harness::AnyMatrix v = m.view();
  return {v.data, v.rows, v.cols, v.row_stride, v.col_stride};
}

// Numbers that nobody can guess from the element's place, of both signs, a few bits long: between -2 and 2.
double element(std::uint64_t matrix, std::int64_t row, std::int64_t col) {
  std::uint64_t x =
      matrix * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(row) * 0xbf58476d1ce4e5b9u + static_cast<std::uint64_t>(col);
  x = (x ^ x >> 31) * 0x94d049bb133111ebu;
  x ^= x >> 29;
  return static_cast<double>(static_cast<std::int64_t>(x % 257) - 128) / 64;
}

std::string why_nan(const std::string& matrix) {
  return ".\n" + matrix +
         " is NaN before the call: no thread has stored this element, or something went into its sum that nobody wrote";
}

// What a learner is told about C, with what the exercise has to say of it.
NotYet about_c(const Case& c, const std::string& text) { return {text + (c.hint.empty() ? "" : "\n" + c.hint)}; }

class Problem {
 public:
  Problem(const Case& c, harness::DType in, harness::DType out)
      : case_(c),
        a_(filled(1, "A", in, placement(c.m, c.k, c.layout.at(0) == 't', c.padding), c.scale, c.a)),
        b_(filled(2, "B", in, placement(c.k, c.n, c.layout.at(1) == 't', c.padding, c.b_offset), 1, c.b)),
        c_("C", out, harness::row_major(c.m, c.n, c.padding)),
        bias_(filled(3, "bias", out, harness::row_major(c.epilogue.bias ? 1 : 0, c.n), 1)),
        reference_(a_, b_) {
    c_.poison();
  }
  Operands operands() const { return {case_.m, case_.n, case_.k, erased(a_), erased(b_), erased(c_), bias_.view().data}; }
  double input_bytes() const {
    return static_cast<double>((case_.m + case_.n) * case_.k) * static_cast<double>(harness::bytes(a_.type()));
  }
  double output_bytes() const { return static_cast<double>(case_.m * case_.n) * static_cast<double>(harness::bytes(c_.type())); }

  // What is wrong, or an empty string.
  std::string verify() {
    if (std::string wrong = c_.fetch(); !wrong.empty()) return wrong;
    if (std::string wrong = reference_.compare(c_, harness::Reference::Sums::kFloat, case_.epilogue, bias_); !wrong.empty()) {
      if (wrong.find(" is nan,") != std::string::npos || wrong.find(" is -nan,") != std::string::npos)
        wrong += why_nan("C");
      else if (const std::size_t at = wrong.find("] is ");
               at != std::string::npos && std::abs(std::strtod(wrong.c_str() + at + 5, nullptr)) > 1e30)
        wrong +=
            ".\nNo sum of these inputs is so large: something was used that nobody has set, a local variable for example, or the "
            "range of a type ends too early";
      return wrong;
    }
    for (const harness::TestMatrix* input : {&a_, &b_, &bias_})
      if (std::string wrong = input->changed(); !wrong.empty()) return wrong;
    return "";
  }

  // After verify(): where C is not `before`, the C of another order, in words; the first call keeps C in it.
  std::string differs_from(std::vector<double>& before) const {
    const bool is_first = before.empty();
    for (std::int64_t i = 0; i < case_.m * case_.n; ++i) {
      const std::int64_t row = i / case_.n, col = i % case_.n;
      const double x = c_.at(row, col);
      if (is_first)
        before.push_back(x);
      else if (const double y = before[static_cast<std::size_t>(i)]; x != y)
        return "C[" + std::to_string(row) + ", " + std::to_string(col) + "] is " + digits(x) + " here, and was " + digits(y);
    }
    return "";
  }

 private:
  static std::string digits(double x) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", x);
    return text;
  }
  static harness::TestMatrix filled(std::uint64_t number, const char* name, harness::DType type,
                                    const harness::Placement& placement, double scale,
                                    const std::function<double(std::int64_t, std::int64_t)>& given = {}) {
    harness::TestMatrix m(name, type, placement);
    m.fill([&](std::int64_t r, std::int64_t c) { return scale * (given ? given(r, c) : element(number, r, c)); });
    return m;
  }
  Case case_;
  harness::TestMatrix a_, b_, c_, bias_;
  harness::Reference reference_;
};

// ------------------------------------------------------------------------------------------------------------ running

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, x >= 1000 ? "%.0f" : "%.4g", x);
  return text;
}

#ifdef COURSE_ON_INTERPRETER
struct OrderOfThreads {
  interpreter::Order order;
  std::uint64_t seed;
  const char* words;
};
constexpr std::array<OrderOfThreads, 3> kOrders = {{{interpreter::Order::kForward, 1, ""},
                                                    {interpreter::Order::kReverse, 1, ", last threads first"},
                                                    {interpreter::Order::kRandom, 7, ", threads in random order"}}};

#endif

// Kernels have to be the learner's: their lines stand in the learner's folder, but for what the course's wrappers hide.
void require_own_kernels([[maybe_unused]] const std::vector<interpreter::KernelProfile>& launches) {
#ifdef COURSE_ON_INTERPRETER
  for (const auto& launch : launches)
    for (const auto& line : launch.lines)
      if (!line.file.empty() && !line.file.starts_with(folder))
        throw NotYet{"The kernel " + launch.kernel + " is not yours: what it does stands in " + line.file +
                     ".\nWrite the kernel in this exercise's file; what lies in common/device may be called from it."};
#endif
}

// All launches of `body`, in one order.
std::vector<interpreter::KernelProfile> launches_of(const Subject& subject, const std::function<void()>& body) {
#ifdef COURSE_ON_INTERPRETER
  interpreter::clear_profiles();
  call_in_sight(subject, body);
  return interpreter::profiles();
#else
  call_in_sight(subject, body);
  device::synchronize();
  return {};
#endif
}

// Calls `once` for each order; a failure says which order it was.
Counts in_all_orders(const Subject& subject, const std::function<std::vector<interpreter::KernelProfile>()>& once) {
  const std::string& what = subject.words;
#ifdef COURSE_ON_INTERPRETER
  std::optional<Counts> first;
  for (const OrderOfThreads& each : kOrders) {
    interpreter::options().order = each.order, interpreter::options().seed = each.seed;
    try {
      auto launches = once();
      if (first) continue;
      add_to_profile(subject, launches);
      first.emplace(what, std::move(launches));
    } catch (const NotYet& failure) {
      NotYet told = failure;
      told.text += "\n\nProblem: " + what + each.words + ".";
      if (first) told.text += " In the usual order it was right: the result depends on who is first.";
      throw told;
    } catch (const std::bad_alloc&) {
      throw NotYet{"There is not enough memory for what this allocates: the modelled GPU, " + interpreter::options().gpu +
                   ", has no more.\n\nProblem: " + what + "."};
    } catch (const std::exception& error) {
      throw NotYet{std::string(error.what()) + "\n\nProblem: " + what + each.words + "."};
    }
  }
  interpreter::options().order = interpreter::Order::kForward;
  return *first;
#else
  try {
    return Counts(what, once());
  } catch (const NotYet& failure) {
    throw NotYet{failure.text + "\n\nProblem: " + what + "."};
  } catch (const std::exception& error) {
    throw NotYet{std::string(error.what()) + "\n\nProblem: " + what + "."};
  }
#endif
}

double loaded_bytes(const Counters& c) { return 32.0 * static_cast<double>(c.global_load.sectors + c.copy_read.sectors); }
double load_requests(const Counters& c) { return static_cast<double>(c.global_load.requests + c.copy_read.requests); }

// C has to come from kernels, and they have to be the learner's.
void require_kernels([[maybe_unused]] const std::vector<interpreter::KernelProfile>& launches) {
#ifdef COURSE_ON_INTERPRETER
  if (launches.empty())
    throw NotYet{"No kernel was started. C has to be computed on the GPU: launch a kernel with device::launch()."};
  require_own_kernels(launches);
#endif
}
// The kernels have stored all of C, and have read A and B.
void require_work([[maybe_unused]] const std::vector<interpreter::KernelProfile>& launches, [[maybe_unused]] double input_bytes,
                  [[maybe_unused]] double output_bytes) {
#ifdef COURSE_ON_INTERPRETER
  const Counters sum = Counts("", launches).total();
  const double stored = static_cast<double>(sum.global_store.bytes + sum.global_atomic.bytes);
  if (stored < output_bytes)
    throw NotYet{"C is right, but kernels have stored " + number(stored) + " of its " + number(output_bytes) +
                 " bytes: all of C has to be computed on the GPU."};
  if (loaded_bytes(sum) + 32.0 * static_cast<double>(sum.global_atomic.sectors) < input_bytes)
    throw NotYet{"C is right, but kernels have read " + number(loaded_bytes(sum)) + " of " + number(input_bytes) +
                 " bytes of A and B: C has to be computed from them."};
#endif
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ figures

Figure sectors_per_load() {
  return {"sectors per request of global loads", [](const Counters& c) { return loaded_bytes(c) / 32; }, load_requests,
          "load_sectors"};
}
Figure sectors_per_store() {
  return {"sectors per request of global stores", [](const Counters& c) { return static_cast<double>(c.global_store.sectors); },
          [](const Counters& c) { return static_cast<double>(c.global_store.requests); }, "store_sectors"};
}
Figure wavefronts_of_ideal() {
  return {"wavefronts of shared memory, where 1 is the fewest possible",
          [](const Counters& c) {
            return static_cast<double>(c.shared_load.wavefronts + c.shared_store.wavefronts + c.matrix_load.wavefronts +
                                       c.copy_write.wavefronts);
          },
          [](const Counters& c) {
            return static_cast<double>(c.shared_load.ideal_wavefronts + c.shared_store.ideal_wavefronts +
                                       c.matrix_load.ideal_wavefronts + c.copy_write.ideal_wavefronts);
          }};
}
namespace {
std::function<double(const Counters&)> constant(double value) {
  return [value](const Counters&) { return value; };
}
}  // namespace
Figure loaded(double bytes) {
  return {"bytes that are loaded, as a multiple of what is needed", loaded_bytes, constant(bytes), "asked"};
}
Figure stored(double bytes) {
  return {"bytes that are stored, as a multiple of what is needed",
          [](const Counters& c) { return 32.0 * static_cast<double>(c.global_store.sectors); }, constant(bytes)};
}
Figure mma(double count) {
  return {"mma instructions, as a multiple of what is needed", [](const Counters& c) { return static_cast<double>(c.mma); },
          constant(count), "mma"};
}
Figure shared_loads(double of) {
  return {"loads from shared memory, as a multiple of what is needed",
          [](const Counters& c) { return static_cast<double>(c.shared_load.requests + c.matrix_load.requests); }, constant(of)};
}
Figure shared_stores(double of) {
  return {"stores to shared memory, as a multiple of what is enough",
          [](const Counters& c) { return static_cast<double>(c.shared_store.requests); }, constant(of)};
}
Figure global_loads(double of) {
  return {"loads from global memory, as a multiple of what is needed", load_requests, constant(of)};
}

// ------------------------------------------------------------------------------------------------------------ bounds

Counters Counts::total() const {
  Counters sum;
#ifdef COURSE_ON_INTERPRETER
  for (const auto& launch : launches_) sum += launch.total;
#endif
  return sum;
}

const std::vector<interpreter::KernelProfile>& Counts::launches([[maybe_unused]] std::size_t count,
                                                                [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (launches_.size() != count)
    throw NotYet{"The function starts " + std::to_string(launches_.size()) + " kernels; it should start " + std::to_string(count) +
                 ".\n" + std::string(why) + "\n\nProblem: " + what_ + "."};
#endif
  return launches_;
}

const Counts& Counts::bounded([[maybe_unused]] const Figure& figure, [[maybe_unused]] double bound,
                              [[maybe_unused]] bool from_above, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  const Counters sum = total();
  const double fixed = figure.unit(Counters());  // 0 where the unit is counted, too
  if (from_above) add_to_profile(what_, figure.row, fixed > 0 ? bound * fixed : bound);
  const double unit = figure.unit(sum), value = unit > 0 ? figure.amount(sum) / unit : 0;
  if (from_above ? value <= bound * (1 + 1e-9) : value >= bound * (1 - 1e-9)) return *this;
  std::string text = "The result is right, the way to it is not yet: " + figure.name + ": " + number(value) + ", where " +
                     (from_above ? "at most " : "at least ") + number(bound) + " is wanted.\n";
  // The line that is farthest from the bound.
  const interpreter::LineProfile* worst = nullptr;
  double most = 0;
  const bool is_ratio = fixed == 0;
  for (const auto& launch : launches_)
    for (const auto& line : launch.lines) {
      const double excess = figure.amount(line.counters) - (is_ratio ? bound * figure.unit(line.counters) : 0);
      if (from_above && excess > most) worst = &line, most = excess;
    }
  if (worst) {
    const double of_line =
        is_ratio ? figure.amount(worst->counters) / figure.unit(worst->counters) : figure.amount(worst->counters) / unit;
    text += "Most of it is " + worst->file + ":" + std::to_string(worst->line) + ", with " + number(of_line) + ":\n" +
            interpreter::quoted_line(worst->file, worst->line) + "\n";
  }
  throw NotYet{text + std::string(why) + "\n\nProblem: " + what_ + "."};
#else
  return *this;
#endif
}

const Counts& Counts::enough([[maybe_unused]] std::string_view of, [[maybe_unused]] std::uint64_t count,
                             [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  std::uint64_t started = 0;
  for (const auto& launch : launches_) {
    const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    started += blocks * (of == "warps" ? (launch.block.x * launch.block.y * launch.block.z + 31) / 32 : 1);
  }
  if (started < count)
    throw NotYet{"The result is right, the way to it is not yet: the GPU gets " + std::to_string(started) + " " + std::string(of) +
                 ", where at least " + std::to_string(count) + " are wanted.\n" + std::string(why) + "\n\nProblem: " + what_ + "."};
#endif
  return *this;
}

// ------------------------------------------------------------------------------------------------------------- the coach

Counts Coach::multiply(const Case& c, harness::DType in, harness::DType out,
                       const std::function<void(const Operands&)>& run) const {
  std::vector<double> before;
  const Subject subject{shape(c, in), 1, c.m, c.n, c.k, in, out};
  return in_all_orders(subject, [&] {
    Problem problem(c, in, out);
    auto launches = launches_of(subject, [&] { run(problem.operands()); });
    require_kernels(launches);
    if (std::string wrong = problem.verify(); !wrong.empty()) throw about_c(c, "The result is wrong: " + wrong + ".");
    if (std::string other = c.same_bits ? problem.differs_from(before) : ""; !other.empty())
      throw about_c(c, "Each order of threads has its own C: " + other +
                           ".\nBoth are near enough, but who looks for a mistake wants the same bits from the same input.");
    require_work(launches, problem.input_bytes(), problem.output_bytes());
    return launches;
  });
}

Counts Coach::multiply_heads(const Heads& h, harness::DType in, harness::DType out,
                             const std::function<void(const Operands&)>& run) const {
  const Case& c = h.each;
  const bool transposed = c.layout.at(1) == 't';
  // A head's part of a matrix, and where it begins.
  struct Stored {
    std::int64_t rows, cols;
    bool beside;
    std::int64_t row(std::int64_t head) const { return beside ? 0 : head * rows; }
    std::int64_t col(std::int64_t head) const { return beside ? head * cols : 0; }
  };
  const Stored a{c.m, c.k, h.a_beside}, b{transposed ? c.n : c.k, transposed ? c.k : c.n, h.b_beside}, to{c.m, c.n, h.c_beside};
  const auto matrix = [&](int i, const Stored& part, harness::DType type) {
    return harness::TestMatrix(h.names.substr(static_cast<std::size_t>(i), 1), type,
                               harness::row_major(part.beside ? part.rows : h.count * part.rows,
                                                  part.beside ? h.count * part.cols : part.cols, c.padding));
  };
  const std::string words = std::to_string(h.count) + (h.count == 1 ? " head of " : " heads of ") + shape(c, in);
  const Subject subject{words, h.count, c.m, c.n, c.k, in, out};
  return in_all_orders(subject, [&] {
    harness::TestMatrix A = matrix(0, a, in), B = matrix(1, b, in), C = matrix(2, to, out);
    A.fill([&](std::int64_t row, std::int64_t col) { return c.scale * (c.a ? c.a(row, col) : element(1, row, col)); });
    B.fill([&](std::int64_t row, std::int64_t col) { return c.b ? c.b(row, col) : element(2, row, col); });
    C.poison();
    auto launches = launches_of(subject, [&] { run({c.m, c.n, c.k, erased(A), erased(B), erased(C), nullptr}); });
    require_kernels(launches);
    const auto fail = [&](const std::string& wrong) { throw about_c(c, "The result is wrong: " + wrong + "."); };
    if (const std::string wrong = C.fetch(); !wrong.empty()) fail(wrong);
    std::vector<double> of_b(static_cast<std::size_t>(c.n * c.k));  // by column: at() is slow
    for (std::int64_t head = 0; head < h.count; ++head) {
      for (std::int64_t i = 0; i < c.n * c.k; ++i)
        of_b[static_cast<std::size_t>(i)] =
            B.at(b.row(head) + (transposed ? i / c.k : i % c.k), b.col(head) + (transposed ? i % c.k : i / c.k));
      for (std::int64_t row = 0; row < c.m; ++row) {
        std::vector<double> of_a;
        for (std::int64_t k = 0; k < c.k; ++k) of_a.push_back(A.at(a.row(head) + row, a.col(head) + k));
        for (std::int64_t col = 0; col < c.n; ++col) {
          double sum = 0, magnitude = 0;
          for (std::size_t k = 0; k < of_a.size(); ++k) {
            const double product = of_a[k] * of_b[static_cast<std::size_t>(col) * of_a.size() + k];
            sum += product, magnitude += std::abs(product);
          }
          const double expected = h.factor * sum, found = C.at(to.row(head) + row, to.col(head) + col);
          const double tolerance = std::abs(h.factor) * magnitude * static_cast<double>(c.k + 2) * 0x1p-23 +
                                   std::abs(expected) * 1.01 * harness::unit_roundoff(out) + harness::underflow_unit(out);
          if (std::abs(found - expected) <= tolerance) continue;
          std::string wrong = "element (" + std::to_string(row) + ", " + std::to_string(col) + ") of head " + std::to_string(head) +
                              " is " + number(found) + ", expected " + number(expected) + " within " + number(tolerance);
          if (std::isnan(found)) wrong += why_nan(h.names.substr(2, 1));
          fail(wrong);
        }
      }
    }
    for (const harness::TestMatrix* input : {&A, &B})
      if (const std::string wrong = input->changed(); !wrong.empty()) fail(wrong);
    const auto bytes = [&](const Stored& part, harness::DType type) {
      return static_cast<double>(h.count * part.rows * part.cols) * static_cast<double>(harness::bytes(type));
    };
    require_work(launches, bytes(a, in) + bytes(b, in), bytes(to, out));
    return launches;
  });
}

Counts Coach::run(const std::string& what, const std::function<void()>& body) const {
  const Subject subject{.words = what};
  return in_all_orders(subject, [&] {
    auto launches = launches_of(subject, body);
    require_own_kernels(launches);
    return launches;
  });
}

void Coach::require(bool holds, const std::string& text) const {
  if (!holds) throw NotYet{text};
}

}  // namespace exercise

// Judges the file that it is linked with: judge FILE [WORD [PROFILE]]. The last line of what it prints is "passed WORD" if that is
// right; so a file that ends the program has not passed. PROFILE is what exercise::profile_to() takes.
int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: %s FILE [WORD [PROFILE]]\n", argv[0]);
    return 2;
  }
  const std::string file = argv[1];
  exercise::folder = file.substr(0, file.rfind('/') + 1);
#ifdef COURSE_ON_INTERPRETER
  // The problems are small: what takes longer than this does not end.
  interpreter::options().hang_seconds = 5;
  interpreter::options().step_budget = 200'000'000;
#endif
  exercise::Coach coach;
  std::string text;
  try {
    if (argc == 4) exercise::profile_to(argv[3]);
    exercise::check(coach);
    exercise::write_profile();
    std::printf("passed %s\n", argc >= 3 ? argv[2] : "");
    return 0;
  } catch (const exercise::NotYet& failure) {
    text = failure.text;
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "The function throws something that is no std::exception.";
  }
  while (text.ends_with('\n')) text.pop_back();
  exercise::write_profile();  // of what came before it, too
  std::printf("%s\n", text.c_str());
  if (!coach.lesson().empty()) std::printf("Reread: %s\n", coach.lesson().c_str());
  return 1;
}
