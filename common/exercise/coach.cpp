#include "common/exercise/coach.h"

#include <array>
#include <cstdio>
#include <exception>
#include <optional>

#include "common/device/device.cuh"
#include "common/exercise/posed.h"
#include "common/exercise/race.h"

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

// What a learner is told about C, with what the exercise has to say of it.
NotYet about_c(const Case& c, const std::string& text) { return {text + (c.hint.empty() ? "" : "\n" + c.hint)}; }

// Where the C of this order of threads is not `before`, that of another one, in words; the first call keeps C in it.
std::string differs(const harness::TestMatrix& C, std::vector<double>& before) {
  const auto digits = [](double x) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", x);
    return std::string(text);
  };
  const bool is_first = before.empty();
  for (std::int64_t i = 0; i < C.rows() * C.cols(); ++i) {
    const std::int64_t row = i / C.cols(), col = i % C.cols();
    const double x = C.at(row, col);
    if (is_first)
      before.push_back(x);
    else if (const double y = before[static_cast<std::size_t>(i)]; x != y)
      return "C[" + std::to_string(row) + ", " + std::to_string(col) + "] is " + digits(x) + " here, and was " + digits(y);
  }
  return "";
}

// ------------------------------------------------------------------------------------------------------------ running

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
  interpreter::options().workers = 1;  // blocks that run side by side come in any order: a verdict would change with it
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

double load_sectors(const Counters& c) { return static_cast<double>(c.global_load.sectors + c.copy_read.sectors); }
double loaded_bytes(const Counters& c) { return 32 * (load_sectors(c) + static_cast<double>(c.bulk_read.sectors)); }
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
  const double stored = static_cast<double>(sum.global_store.bytes + sum.global_atomic.bytes + sum.bulk_write.bytes);
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

Figure sectors_per_load() { return {"sectors per request of global loads", load_sectors, load_requests, "load_sectors"}; }
Figure sectors_per_store() {
  return {"sectors per request of global stores", [](const Counters& c) { return static_cast<double>(c.global_store.sectors); },
          [](const Counters& c) { return static_cast<double>(c.global_store.requests); }, "store_sectors"};
}
Figure wavefronts_of_ideal() {
  return {"wavefronts of shared memory, where 1 is the fewest possible",
          [](const Counters& c) {
            return static_cast<double>(c.shared_load.wavefronts + c.shared_store.wavefronts + c.matrix_load.wavefronts +
                                       c.matrix_store.wavefronts + c.copy_write.wavefronts);
          },
          [](const Counters& c) {
            return static_cast<double>(c.shared_load.ideal_wavefronts + c.shared_store.ideal_wavefronts +
                                       c.matrix_load.ideal_wavefronts + c.matrix_store.ideal_wavefronts +
                                       c.copy_write.ideal_wavefronts);
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
          [](const Counters& c) { return static_cast<double>(c.shared_store.requests + c.matrix_store.requests); }, constant(of)};
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

namespace {
Subject subject_of(const Case& c, harness::DType in, harness::DType out) { return {shape(c, in), 1, c.m, c.n, c.k, in, out}; }
Subject subject_of(const Heads& h, harness::DType in, harness::DType out) {
  const std::string words = std::to_string(h.count) + (h.count == 1 ? " head of " : " heads of ") + shape(h.each, in);
  return {words, h.count, h.each.m, h.each.n, h.each.k, in, out};
}
}  // namespace

// `c` says what is judged of the problem that `pose` makes.
Counts Coach::judge(const Subject& subject, const Case& c, const std::function<std::unique_ptr<Posed>()>& pose,
                    const Function& function) const {
  if (only_asks_) return {subject.words, {}};
  std::vector<double> before;
  return in_all_orders(subject, [&] {
    const std::unique_ptr<Posed> problem = pose();
    auto launches = launches_of(subject, [&] { function(problem->operands()); });
    require_kernels(launches);
    if (std::string wrong = problem->verify(); !wrong.empty()) throw about_c(c, "The result is wrong: " + wrong + ".");
    if (std::string other = c.same_bits ? differs(problem->C, before) : ""; !other.empty())
      throw about_c(c, "Each order of threads has its own C: " + other +
                           ".\nBoth are near enough, but who looks for a mistake wants the same bits from the same input.");
    require_work(launches, problem->input_bytes(), problem->output_bytes());
    return launches;
  });
}

Counts Coach::multiply(const Case& c, harness::DType in, harness::DType out, const Function& function) const {
  subjects_.push_back(subject_of(c, in, out));
  return judge(
      subjects_.back(), c, [=] { return posed(c, in, out); }, function);
}

Counts Coach::multiply_heads(const Heads& h, harness::DType in, harness::DType out, const Function& function) const {
  subjects_.push_back(subject_of(h, in, out));
  return judge(
      subjects_.back(), h.each, [=] { return posed(h, in, out); }, function);
}

#ifdef COURSE_ON_GPU
void Coach::multiply_on_gpu(const Case& c, harness::DType in, harness::DType out, const Function& function) const {
  timed_.push_back({subject_of(c, in, out), c.bar, c.slow, !c.epilogue.is_identity(), [=] { return posed(c, in, out); }, function});
  judge(timed_.back().subject, c, timed_.back().pose, function);
}

void Coach::multiply_heads_on_gpu(const Heads& h, harness::DType in, harness::DType out, const Function& function) const {
  timed_.push_back({subject_of(h, in, out), h.each.bar, h.each.slow, false, [=] { return posed(h, in, out); }, function});
  judge(timed_.back().subject, h.each, timed_.back().pose, function);
}
#else
void Coach::multiply_on_gpu(const Case&, harness::DType, harness::DType, const Function&) const {}
void Coach::multiply_heads_on_gpu(const Heads&, harness::DType, harness::DType, const Function&) const {}
#endif

Counts Coach::run(const std::string& what, const std::function<void()>& body) const {
  if (only_asks_) return {what, {}};
  const Subject subject{.words = what};
  return in_all_orders(subject, [&] {
    auto launches = launches_of(subject, body);
    require_own_kernels(launches);
    return launches;
  });
}

void Coach::require(bool holds, const std::string& text) const {
  if (!holds && !only_asks_) throw NotYet{text};
}

}  // namespace exercise

namespace {

// After the test has passed: the speed bars. @return what to tell who has passed them
std::string timed([[maybe_unused]] const exercise::Coach& coach, [[maybe_unused]] const std::string& results) {
#ifdef COURSE_ON_GPU
  exercise::Coach solution(true);
  solution::check(solution);
  return exercise::race(coach.timed(), solution.timed(), results);
#else
  return "";
#endif
}

#ifdef COURSE_ON_GPU
// The words of the problem with most to do, of those that the interpreter has, too; of several the last.
std::string largest() {
  exercise::Coach coach(true);
  exercise::check(coach);
  const exercise::Subject* found = nullptr;
  const auto products = [](const exercise::Subject& s) { return s.heads * s.m * s.n * s.k; };
  for (const exercise::Subject& s : coach.subjects())
    if (!found || products(s) >= products(*found)) found = &s;
  if (!found) return "";
  std::printf("profiled: %lldx%lldx%lld-%s\n", static_cast<long long>(found->m), static_cast<long long>(found->n),
              static_cast<long long>(found->k), std::string(harness::name(found->in)).c_str());
  std::fflush(stdout);
  return found->words;
}
#endif

void profile_to(const std::string& profile) {
#ifdef COURSE_ON_GPU
  if (profile == "largest") return exercise::profile_to(largest());
#endif
  exercise::profile_to(profile);
}

}  // namespace

// Judges the file that it is linked with: judge FILE [WORD [PROFILE [RESULTS]]]. The last line of what it prints is "passed WORD"
// if that is right; so a file that ends the program has not passed. PROFILE is what exercise::profile_to() takes, on a GPU also
// "largest", for the problem with most to do; nothing is timed then. RESULTS is what exercise::race() takes. An empty word is as
// none.
int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    std::fprintf(stderr, "usage: %s FILE [WORD [PROFILE [RESULTS]]]\n", argv[0]);
    return 2;
  }
  const auto argument = [&](int i) { return std::string(i < argc ? argv[i] : ""); };
  const std::string file = argument(1), profile = argument(3);
  exercise::folder = file.substr(0, file.rfind('/') + 1);
#ifdef COURSE_ON_INTERPRETER
  // The problems are small: what takes longer than this does not end.
  interpreter::options().hang_seconds = 5;
  interpreter::options().step_budget = 200'000'000;
#endif
  exercise::Coach coach;
  std::string text;
  try {
    if (!profile.empty()) profile_to(profile);
    exercise::check(coach);
    exercise::write_profile();
    if (profile.empty()) std::printf("%s", timed(coach, argument(4)).c_str());
    std::printf("passed %s\n", argument(2).c_str());
    return 0;
  } catch (const exercise::Seen&) {
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
