#include "common/exercise/coach.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "common/device/device.cuh"
#include "common/exercise/posed.h"
#include "common/exercise/race.h"
#include "common/exercise/witness.h"
#include "common/gemm/gemm.h"
#ifdef COURSE_ON_INTERPRETER
#include "common/interpreter/count/teamwork.h"
#include "common/interpreter/count/under_way.h"
#include "common/interpreter/instructions/mma_model.h"
#endif

namespace exercise {
namespace {

using interpreter::Counters;

std::string folder;  // in which the file lies that is judged

std::string shape(const Case& c, harness::DType in) {
  std::string text = std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k) + " (m, n, k) in " +
                     std::string(name(in)) + ", " + c.layout;
  const std::string padding = std::to_string(c.padding);
  const std::int64_t of_b = c.padding_b < 0 ? c.padding : c.padding_b, of_c = c.padding_c < 0 ? c.padding : c.padding_c;
  if (of_b != c.padding || of_c != c.padding)
    text += ", rows of the three " + padding + ", " + std::to_string(of_b) + " and " + std::to_string(of_c) +
            " elements longer than what they hold";
  else if (c.padding)
    text += ", rows " + padding + " elements longer than what they hold";
  if (c.c_offset) text += ", C begins " + std::to_string(c.c_offset) + " elements behind an aligned address";
  if (c.b_offset) text += ", B begins " + std::to_string(c.b_offset) + " elements behind an aligned address";
  if (!c.what.empty()) text += ", " + c.what;
  if (c.drawn) text += ", drawn at random: --seed " + std::to_string(c.drawn) + " draws it again";
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

// The first race that the interpreter only notes, for CUDA's programming guide allows it. It is told when there is nothing else.
std::string noted_race;

void look_for_races([[maybe_unused]] const std::vector<interpreter::KernelProfile>& launches,
                    [[maybe_unused]] const std::string& problem) {
#ifdef COURSE_ON_INTERPRETER
  for (const auto& launch : launches)
    for (const std::string& note : launch.notes)
      if (noted_race.empty() && note.find("several threads store the same value") != std::string::npos)
        noted_race = "The result is right, but there is a race: " + note +
                     ".\nWhich single thread should store it, or does nobody need it?\n\nProblem: " + problem + ".";
#endif
}

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
  return seen([] { return interpreter::profiles(); });
#else
  call_in_sight(subject, body);
  device::synchronize();
  return {};
#endif
}

#ifdef COURSE_ON_INTERPRETER
// What was most since this was called last.
UnderWay most_since() {
  return seen([] {
    interpreter::MostUnderWay& most = interpreter::most_under_way();
    interpreter::EachUnderWay& each = interpreter::each_under_way();
    const UnderWay now{most.copies,          most.ahead,          most.groups,          most.mbarriers,  each.fewest_copies,
                       each.lonely_products, each.bytes_at_loads, each.straight_stores, each.late_loads, each.fewest_registers};
    most.forget(), each.forget();
    return now;
  });
}

// What was counted since this was called last.
Teamwork teamwork_since() {
  return seen([] {
    interpreter::Teamwork& all = interpreter::teamwork();
    const Teamwork now{all.block_meetings, all.cluster_meetings, all.named,          all.named_of_all,        all.named_of_roles,
                       all.stored_again,   all.loaded_by_block,  all.loaded_by_warp, all.shared_bytes_of_warp};
    all.forget();
    return now;
  });
}
#endif

// Calls `once` for each order; a failure says which order it was. What is `drawn` has one order.
Counts in_all_orders(const Subject& subject, [[maybe_unused]] bool drawn,
                     const std::function<std::vector<interpreter::KernelProfile>()>& once) {
  const std::string& what = subject.words;
#ifdef COURSE_ON_INTERPRETER
  std::optional<Counts> first;
  UnderWay most;
  most_since();
  teamwork_since();
  interpreter::count_each_access = true;
  interpreter::options().workers = 1;  // blocks that run side by side come in any order: a verdict would change with it
  for (const OrderOfThreads& each : kOrders) {
    if (drawn && each.order != interpreter::Order::kRandom) continue;
    interpreter::options().order = each.order, interpreter::options().seed = each.seed;
    try {
      auto launches = once();
      const UnderWay now = most_since();
      for (auto what : {&UnderWay::copies, &UnderWay::ahead, &UnderWay::groups, &UnderWay::mbarriers})
        most.*what = std::max(most.*what, now.*what);
      if (first) continue;
      for (auto what : {&UnderWay::fewest_copies, &UnderWay::lonely_products, &UnderWay::bytes_at_loads, &UnderWay::straight_stores,
                        &UnderWay::late_loads, &UnderWay::fewest_registers})
        most.*what = now.*what;
      if (!drawn) add_to_profile(subject, launches);
      first.emplace(what, std::move(launches));
      first->set(teamwork_since());
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
  first->set(most);
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

// An atomic loads and stores.
double sectors_loaded(const Counters& c) {
  return static_cast<double>(c.global_load.sectors + c.copy_read.sectors + c.global_atomic.sectors);
}
double loaded_bytes(const Counters& c) { return 32 * (sectors_loaded(c) + static_cast<double>(c.bulk_read.sectors)); }
double load_requests(const Counters& c) {
  return static_cast<double>(c.global_load.requests + c.copy_read.requests + c.global_atomic.requests);
}
double sectors_stored(const Counters& c) {
  return static_cast<double>(c.global_store.sectors + c.global_atomic.sectors + c.bulk_write.sectors);
}

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
  if (loaded_bytes(sum) < input_bytes)
    throw NotYet{"C is right, but kernels have read " + number(loaded_bytes(sum)) + " of " + number(input_bytes) +
                 " bytes of A and B: C has to be computed from them."};
#endif
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ figures

Figure sectors_per_load() { return {"sectors per request of global loads", sectors_loaded, load_requests, "load_sectors"}; }
Figure sectors_per_store() {
  return {"sectors per request of global stores", sectors_stored,
          [](const Counters& c) {
            return static_cast<double>(c.global_store.requests + c.global_atomic.requests + c.bulk_write.requests);
          },
          "store_sectors"};
}
Figure wavefronts_of_ideal() {
  return {"wavefronts of shared memory, where 1 is the fewest possible",
          [](const Counters& c) {
            return static_cast<double>(c.shared_load.wavefronts + c.shared_store.wavefronts + c.shared_atomic.wavefronts +
                                       c.matrix_load.wavefronts + c.matrix_store.wavefronts + c.copy_write.wavefronts);
          },
          [](const Counters& c) {
            return static_cast<double>(c.shared_load.ideal_wavefronts + c.shared_store.ideal_wavefronts +
                                       c.shared_atomic.ideal_wavefronts + c.matrix_load.ideal_wavefronts +
                                       c.matrix_store.ideal_wavefronts + c.copy_write.ideal_wavefronts);
          }};
}
Figure wavefronts_of_ldmatrix() {
  return {"wavefronts of ldmatrix, where 1 is the fewest possible",
          [](const Counters& c) { return static_cast<double>(c.matrix_load.wavefronts); },
          [](const Counters& c) { return static_cast<double>(c.matrix_load.ideal_wavefronts); }};
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
  return {"bytes that are stored, as a multiple of what is needed", [](const Counters& c) { return 32 * sectors_stored(c); },
          constant(bytes)};
}
Figure stores_asked(double bytes) {
  return {"bytes that threads store in global memory, as a multiple of what is needed",
          [](const Counters& c) { return static_cast<double>(c.global_store.bytes + c.global_atomic.bytes); }, constant(bytes)};
}
Figure mma(double count) {
  return {"mma instructions, as a multiple of what is needed", [](const Counters& c) { return static_cast<double>(c.mma); },
          constant(count), "mma"};
}
Figure shared_loads(double of) {
  return {"loads from shared memory, as a multiple of what is needed",
          [](const Counters& c) {
            return static_cast<double>(c.shared_load.requests + c.matrix_load.requests + c.shared_atomic.requests);
          },
          constant(of)};
}
Figure shared_stores(double of) {
  return {"stores to shared memory, as a multiple of what is enough",
          [](const Counters& c) {
            return static_cast<double>(c.shared_store.requests + c.matrix_store.requests + c.shared_atomic.requests);
          },
          constant(of)};
}
Figure shared_asked(double bytes) {
  return {"bytes that threads load from shared memory, as a multiple of what is needed",
          [](const Counters& c) { return static_cast<double>(c.shared_load.bytes + c.matrix_load.bytes + c.shared_atomic.bytes); },
          constant(bytes)};
}
Figure global_loads(double of) {
  return {"loads from global memory, as a multiple of what is needed", load_requests, constant(of)};
}
Figure asked(double bytes) {
  return {"bytes that threads load from global memory, as a multiple of what is needed",
          [](const Counters& c) { return static_cast<double>(c.global_load.bytes + c.copy_read.bytes + c.global_atomic.bytes); },
          constant(bytes)};
}
Figure load_sectors(double of) {
  return {"sectors that loads touch, as a multiple of what is needed", sectors_loaded, constant(of)};
}
Figure barriers(double of) {
  return {"barriers of blocks, as a multiple of what is enough", [](const Counters& c) { return static_cast<double>(c.barriers); },
          constant(of)};
}
Figure atomics(double of) {
  return {"atomic additions of a warp, as a multiple of what is needed",
          [](const Counters& c) { return static_cast<double>(c.global_atomic.requests + c.shared_atomic.requests); }, constant(of)};
}
Figure boxes(double of) {
  return {"loads by the copy engine, as a multiple of what is needed",
          [](const Counters& c) { return static_cast<double>(c.bulk_read.requests); }, constant(of)};
}
Figure wgmma(double of) {
  return {"wgmma of a warpgroup, as a multiple of what is needed",
          [](const Counters& c) { return static_cast<double>(c.wgmma.requests) / 4; }, constant(of)};
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
  throw NotYet{text + (from_above ? lines_of(figure, bound) : "") + std::string(why) + "\n\nProblem: " + what_ + "."};
#else
  return *this;
#endif
}

const Counts& Counts::of_teamwork([[maybe_unused]] std::uint64_t Teamwork::*number, [[maybe_unused]] double bound,
                                  [[maybe_unused]] bool from_above, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  constexpr std::pair<std::uint64_t Teamwork::*, const char*> kNames[] = {
      {&Teamwork::block_meetings, "barriers of blocks, __syncthreads() and what is like it"},
      {&Teamwork::cluster_meetings, "meetings of a block with its cluster"},
      {&Teamwork::named, "named barriers, each time that one is complete"},
      {&Teamwork::named_of_all, "named barriers at which a whole block waits"},
      {&Teamwork::named_of_roles, "named barriers at which a warp that copies meets those that use what comes"},
      {&Teamwork::stored_again, "stores of the copy engine from the place of the one before"},
      {&Teamwork::loaded_by_block, "bytes that the busiest block loads from global memory"},
      {&Teamwork::loaded_by_warp, "bytes that the busiest warp loads from global memory"},
      {&Teamwork::shared_bytes_of_warp, "bytes that the busiest warp loads from shared memory"}};
  const double value = static_cast<double>(teamwork_.*number);
  if (from_above ? value <= bound * (1 + 1e-9) : value >= bound * (1 - 1e-9)) return *this;
  const auto* const name =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& each) { return each.first == number; });
  throw NotYet{"The result is right, the way to it is not yet: " + std::string(name->second) + ": " + exercise::number(value) +
               ", where at " + (from_above ? "most " : "least ") + exercise::number(bound) + " are wanted.\n" + std::string(why) +
               "\n\nProblem: " + what_ + "."};
#else
  return *this;
#endif
}

// Of a ratio the line that is farthest above the bound. An amount that is too large may be one line's or that of several together,
// and only the reader knows which of them has to be there: all that matter are shown.
std::string Counts::lines_of([[maybe_unused]] const Figure& figure, [[maybe_unused]] double bound) const {
  std::string text;
#ifdef COURSE_ON_INTERPRETER
  constexpr std::size_t kMost = 4;
  const double fixed = figure.unit(Counters());
  std::map<std::pair<std::string, int>, Counters> lines;  // launches may share a line
  for (const auto& launch : launches_)
    for (const auto& line : launch.lines) lines[{line.file, line.line}] += line.counters;
  std::vector<std::pair<double, const decltype(lines)::value_type*>> found;  // by what they have too much, or at all
  for (const auto& line : lines) {
    const double amount = figure.amount(line.second), excess = amount - (fixed > 0 ? 0 : bound * figure.unit(line.second));
    if (excess > 0) found.push_back({excess, &line});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  found.resize(std::min(found.size(), fixed > 0 ? kMost : 1));
  for (const auto& [excess, line] : found) {
    const auto& [file, row] = line->first;
    const double share = figure.amount(line->second) / (fixed > 0 ? fixed : figure.unit(line->second));
    text += (text.empty() ? found.size() > 1 ? "It is the sum of " : "Most of it is " : "and ") + file + ":" + std::to_string(row) +
            ", with " + number(share) + ":\n" + interpreter::quoted_line(file, row) + "\n";
  }
#endif
  return text;
}

const Counts& Counts::at_most_mma_of([[maybe_unused]] std::string_view of, [[maybe_unused]] std::uint64_t count,
                                     [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  for (const auto& launch : launches_)
    if (const std::uint64_t most = of == "warp" ? launch.most_mma_of_warp : launch.most_mma_of_block; most > count)
      throw NotYet{"The result is right, the way to it is not yet: one " + std::string(of) + " executes " + std::to_string(most) +
                   " mma instructions, where at most " + std::to_string(count) + " are wanted.\n" + std::string(why) +
                   "\n\nProblem: " + what_ + "."};
#endif
  return *this;
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

const Counts& Counts::at_a_time([[maybe_unused]] std::string_view of, [[maybe_unused]] std::uint64_t most,
                                [[maybe_unused]] std::uint64_t count, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (most < count)
    throw NotYet{"The result is right, the way to it is not yet: at most " + std::to_string(most) + " " + std::string(of) +
                 " are under way at the same time, where " + std::to_string(count) + " are wanted.\n" + std::string(why) +
                 "\n\nProblem: " + what_ + "."};
#endif
  return *this;
}

const Counts& Counts::at_least_copies_ahead([[maybe_unused]] std::uint64_t count, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (under_way_.ahead < count)
    throw NotYet{"The result is right, the way to it is not yet: when a thread has waited for a tile, at most " +
                 std::to_string(under_way_.ahead) + " of its later cp.async are still under way, where " + std::to_string(count) +
                 " are wanted.\n" + std::string(why) + "\n\nProblem: " + what_ + "."};
#endif
  return *this;
}

const Counts& Counts::at_least_registers([[maybe_unused]] std::uint64_t count, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (under_way_.fewest_registers < count)
    throw NotYet{"The result is right, the way to it is not yet: " +
                 (under_way_.fewest_registers
                      ? "setmaxnreg gives a thread that multiplies " + std::to_string(under_way_.fewest_registers) + " registers"
                      : std::string("a thread multiplies that gets no registers by setmaxnreg")) +
                 ", where " + std::to_string(count) + " are wanted.\n" + std::string(why) + "\n\nProblem: " + what_ + "."};
#endif
  return *this;
}

const Counts& Counts::at_most_late_loads([[maybe_unused]] double of, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (static_cast<double>(under_way_.late_loads) > of)
    throw not_yet(std::to_string(under_way_.late_loads) +
                      " loads of a warp from global memory come when more than half of a tile has been read from shared memory, "
                      "where " +
                      number(of) + " may",
                  why);
#endif
  return *this;
}

const Counts& Counts::at_most_mbarriers([[maybe_unused]] std::uint64_t count, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (under_way_.mbarriers > count)
    throw not_yet(
        "a block has " + std::to_string(under_way_.mbarriers) + " mbarriers, where " + std::to_string(count) + " are enough", why);
#endif
  return *this;
}

const Counts& Counts::at_least_copies_each_time([[maybe_unused]] std::uint64_t count, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (under_way_.fewest_copies < count)
    throw not_yet("at the start of a load by the copy engine only " + std::to_string(under_way_.fewest_copies) +
                      (under_way_.fewest_copies == 1 ? " load (this one) can be" : " loads (this one included) can be") +
                      " under way, where " + std::to_string(count) + " can each time",
                  why);
#endif
  return *this;
}

const Counts& Counts::at_most_lonely_products([[maybe_unused]] std::uint64_t count, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (under_way_.lonely_products > 4 * count)
    throw not_yet(number(static_cast<double>(under_way_.lonely_products) / 4) +
                      " times a warpgroup starts a wgmma when no other one of it is under way, where " + std::to_string(count) +
                      (count == 1 ? " is" : " are") + " enough",
                  why);
#endif
  return *this;
}

const Counts& Counts::at_least_bytes_at_loads([[maybe_unused]] double bytes, [[maybe_unused]] double of,
                                              [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  const Counters sum = total();
  double warps = 0;  // of a block
  for (const auto& launch : launches_) warps = std::max(warps, std::ceil(launch.block.x * launch.block.y * launch.block.z / 32.));
  const auto loads = static_cast<double>(sum.shared_load.requests + sum.matrix_load.requests);
  const double mean = loads > 0 ? static_cast<double>(under_way_.bytes_at_loads) * warps / loads / of : 0;
  if (mean < bytes / of * (1 - 1e-9))
    throw not_yet("while a tile is read from shared memory, copies of " + number(mean) +
                      " later tiles are under way by cp.async, on average, where " + number(bytes / of) + " are wanted",
                  why);
#endif
  return *this;
}

const Counts& Counts::at_most_straight_stores([[maybe_unused]] double of, [[maybe_unused]] std::string_view why) const {
#ifdef COURSE_ON_INTERPRETER
  if (static_cast<double>(under_way_.straight_stores) > of)
    throw not_yet(std::to_string(under_way_.straight_stores) +
                      " times a warp stores to shared memory right after it has loaded, with no products between, where " +
                      number(of) + (of == 1 ? " is" : " are") + " wanted",
                  why);
#endif
  return *this;
}

NotYet Counts::not_yet(const std::string& what, std::string_view why) const {
  return {"The result is right, the way to it is not yet: " + what + ".\n" + std::string(why) + "\n\nProblem: " + what_ + "."};
}

// ------------------------------------------------------------------------------------------------------------- the coach

namespace {
constexpr std::int64_t kSector = 32;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return gemm::ceil_div<std::int64_t>(a, b); }
}  // namespace

std::string are_pieces(const Case& c) {
  const auto words = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  };
  return words(c.m, c.n, c.k) + " are " + words(ceil_div(c.m, 16), ceil_div(c.n, 8), ceil_div(c.k, 16)) +
         " pieces of 16 x 8 x 16. ";
}

std::array<Case, 2> with_zeros(const Case& c) {
  const auto holes = [](std::int64_t row, std::int64_t col) { return row / 16 % 2 == col / 16 % 2 ? 0 : row % 7 - col % 5; };
  std::array<Case, 2> both{c, c};
  both[0].a = holes, both[0].what = "half of the pieces of A are zeros";
  both[1].b = holes, both[1].what = "half of the pieces of B are zeros";
  return both;
}

double pieces(const Case& c) { return tiles(c, 16, 8, 16); }

double tiles(const Case& c, std::int64_t m, std::int64_t n, std::int64_t k) {
  return static_cast<double>(ceil_div(c.m, m) * ceil_div(c.n, n) * ceil_div(c.k, k));
}

double sector_bytes(std::int64_t rows, std::int64_t length, harness::DType type) {
  return static_cast<double>(rows * ceil_div(length * static_cast<std::int64_t>(harness::bytes(type)), kSector) * kSector);
}

double tile_bytes(const Case& c, std::int64_t m, std::int64_t n, harness::DType in) {
  const double of_a = c.layout.at(0) == 't' ? sector_bytes(c.k, c.m, in) : sector_bytes(c.m, c.k, in);
  const double of_b = c.layout.at(1) == 't' ? sector_bytes(c.n, c.k, in) : sector_bytes(c.k, c.n, in);
  return static_cast<double>(ceil_div(c.n, n)) * of_a + static_cast<double>(ceil_div(c.m, m)) * of_b;
}

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
  return in_all_orders(subject, c.drawn != 0, [&] {
    const std::unique_ptr<Posed> problem = pose();
    const auto call = [&] { asked([&] { function(problem->operands()); }); };
    auto launches = launches_of(subject, [&] { explained(c.meant, call); });
    require_kernels(launches);
    look_for_races(launches, subject.words);
    if (std::string wrong = problem->verify(); !wrong.empty()) throw about_c(c, "The result is wrong: " + wrong + ".");
    if (c.again) {
      problem->renew();
      launches_of(subject, [&] { explained(c.meant, call); });
      if (std::string wrong = problem->verify(); !wrong.empty())
        throw about_c(c, "The result of a second call is wrong, with other values at the same addresses: " + wrong +
                             ".\nWhat is kept from one call to the next?");
    }
    if (std::string other = c.same_bits ? differs(problem->C, before) : ""; !other.empty())
      throw about_c(c, "Each order of threads has its own C: " + other +
                           ".\nBoth are near enough, but who looks for a mistake wants the same bits from the same input.");
    require_work(launches, problem->input_bytes(), problem->output_bytes());
    return launches;
  });
}

Counts Coach::multiply(const Case& c, harness::DType in, harness::DType out, const Function& function) const {
  const Subject subject = subject_of(c, in, out);
  if (!c.drawn) subjects_.push_back(subject);
  return judge(
      subject, c, [=] { return posed(c, in, out); }, function);
}

Counts Coach::multiply_heads(const Heads& h, harness::DType in, harness::DType out, const Function& function) const {
  const Subject subject = subject_of(h, in, out);
  if (!h.each.drawn) subjects_.push_back(subject);
  return judge(
      subject, h.each, [=] { return posed(h, in, out); }, function);
}

#ifdef COURSE_ON_INTERPRETER
// The same once more, where each mma adds 1 to its sums: who only looks at whether they change has other numbers in C.
static void require_sums(const Subject& subject, const Case& c, harness::DType in, const Function& function) {
  const std::unique_ptr<Posed> problem = posed(c, in, harness::DType::kF32);
  interpreter::Options& options = interpreter::options();
  options.mma = options.racecheck = options.count = false;
  interpreter::added_without_product() = 1;
  launches_of(subject, [&] { asked([&] { function(problem->operands()); }); });
  interpreter::added_without_product() = 0;
  options.mma = options.racecheck = options.count = true;
  if (std::string wrong = problem->fetch(); !wrong.empty()) throw NotYet{wrong + "\n\nProblem: " + subject.words + "."};
  const double of_first = problem->C.at(0, 0);
  for (std::int64_t row = 0; row < problem->C.rows(); ++row)
    for (std::int64_t col = 0; col < problem->C.cols(); ++col)
      if (const double got = problem->C.at(row, col); got != of_first)
        throw NotYet{"C is right, but element (" + std::to_string(row) + ", " + std::to_string(col) +
                     ") is not the sum that the tensor core has: if each mma adds 1\nto its sums, and nothing else, it is " +
                     number(got) + ". What else is added up?\n\nProblem: " + subject.words + "."};
}
#endif

template <class Problem>
void Coach::require_tensor_core([[maybe_unused]] const Problem& p, [[maybe_unused]] harness::DType in,
                                [[maybe_unused]] harness::DType out, [[maybe_unused]] const Function& function) const {
#ifdef COURSE_ON_INTERPRETER
  if (only_asks_) return;
  const Subject subject = subject_of(p, in, out);
  const std::unique_ptr<Posed> problem = posed(p, in, out);
  // The rest was checked when it was multiplied.
  interpreter::Options& options = interpreter::options();
  options.mma = options.racecheck = options.count = false;
  launches_of(subject, [&] { asked([&] { function(problem->operands()); }); });
  options.mma = options.racecheck = options.count = true;
  if (std::string wrong = problem->fetch(); !wrong.empty()) throw NotYet{wrong + "\n\nProblem: " + subject.words + "."};
  for (std::int64_t row = 0; row < problem->C.rows(); ++row)
    for (std::int64_t col = 0; col < problem->C.cols(); ++col)
      if (const double got = problem->C.at(row, col); got != 0)
        throw NotYet{"C is right, but element (" + std::to_string(row) + ", " + std::to_string(col) +
                     ") does not come from the tensor core: if mma instructions\nadd nothing, it is " + number(got) +
                     " instead of 0.\n\nProblem: " + subject.words + "."};
  if constexpr (std::is_same_v<Problem, Case>)
    if (out == harness::DType::kF32 && p.epilogue.is_identity()) require_sums(subject, p, in, function);
#endif
}

template void Coach::require_tensor_core(const Case&, harness::DType, harness::DType, const Function&) const;
template void Coach::require_tensor_core(const Heads&, harness::DType, harness::DType, const Function&) const;

#ifdef COURSE_ON_INTERPRETER
namespace {

// A matrix once more, in rows (or columns) that lie so far apart that an int counts no offset to the last one; and, where there are
// few, not even a stride.
class FarCopy {
 public:
  FarCopy(const harness::TestMatrix& matrix, const std::string& name)
      : near_(matrix.view()), size_(static_cast<std::int64_t>(harness::bytes(matrix.type()))), far_(near_) {
    constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 64, kMostBytes = 24'000'000'000;
    const bool by_rows = near_.col_stride == 1;
    count_ = by_rows ? near_.rows : near_.cols, length_ = by_rows ? near_.cols : near_.rows;
    // What the task says of strides' remainders holds for both.
    stride_ = std::min(kFar, kMostBytes / size_ / std::max<std::int64_t>(1, count_ - 1) / 64 * 64) +
              (by_rows ? near_.row_stride : near_.col_stride) % 64;
    (by_rows ? far_.row_stride : far_.col_stride) = stride_;
    far_.data = interpreter::allocate(static_cast<std::size_t>((stride_ * (count_ - 1) + length_) * size_), name);
    copy(near_, far_);
  }
  FarCopy(const FarCopy&) = delete;
  FarCopy& operator=(const FarCopy&) = delete;
  ~FarCopy() { interpreter::release(far_.data); }
  const harness::AnyMatrix& view() const { return far_; }
  std::int64_t stride() const { return stride_; }
  void copy_back() const { copy(far_, near_); }

 private:
  void copy(const harness::AnyMatrix& from, const harness::AnyMatrix& to) const {
    std::vector<unsigned char> line(static_cast<std::size_t>(length_ * size_));
    const auto at = [&](const harness::AnyMatrix& m, std::int64_t i) {
      return static_cast<unsigned char*>(m.data) + i * (m.col_stride == 1 ? m.row_stride : m.col_stride) * size_;
    };
    for (std::int64_t i = 0; i < count_; ++i) {
      interpreter::copy_out(line.data(), at(from, i), line.size());
      interpreter::copy_in(at(to, i), line.data(), line.size());
    }
  }
  harness::AnyMatrix near_;
  std::int64_t size_;
  harness::AnyMatrix far_;
  std::int64_t count_ = 0, length_ = 0, stride_ = 0;
};

}  // namespace
#endif

template <class Problem>
void Coach::multiply_far_rows([[maybe_unused]] const Problem& p, [[maybe_unused]] harness::DType in,
                              [[maybe_unused]] harness::DType out, [[maybe_unused]] const Function& function) const {
#ifdef COURSE_ON_INTERPRETER
  if (only_asks_) return;
  const Subject subject = subject_of(p, in, out);
  const std::unique_ptr<Posed> problem = posed(p, in, out);
  const FarCopy A(problem->A, "A"), B(problem->B, "B"), C(problem->C, "C");
  const std::string text = "\n\nProblem: " + subject.words + "; rows of A are " + std::to_string(A.stride()) +
                           " elements apart, of B " + std::to_string(B.stride()) + ", of C " + std::to_string(C.stride()) +
                           ": an int cannot count so far.";
  std::string wrong;
  try {
    asked([&] {
      function(problem->operands(A.view(), B.view(), C.view(), problem->bias.view().data));
      C.copy_back();
    });
    wrong = problem->verify();
  } catch (const NotYet& failure) {
    throw NotYet{failure.text + text};
  } catch (const std::exception& error) {
    const std::string report = error.what();
    const bool strayed =
        report.find("out of bounds") != std::string::npos || report.find("uninitialised bytes") != std::string::npos;
    throw NotYet{report +
                 (strayed ? "\nAn offset that is kept in an int leads anywhere: what the report names is only what lies nearest "
                            "there. Offsets are as\n"
                            "large as int64_t."
                          : "") +
                 text};
  }
  if (!wrong.empty())
    throw NotYet{"The result is wrong: " + wrong + ".\nOffsets are as large as int64_t: which of them is kept in an int?" + text};
#endif
}

template void Coach::multiply_far_rows(const Case&, harness::DType, harness::DType, const Function&) const;
template void Coach::multiply_far_rows(const Heads&, harness::DType, harness::DType, const Function&) const;

// ------------------------------------------------------------------------------------------------------ drawn at random

// Steele, Lea and Flood's SplitMix64: the same on all machines.
std::uint64_t Draw::next() {
  std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

std::int64_t Draw::between(std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most - least + 1));
}

std::int64_t Draw::length(std::int64_t most) {
  if (between(0, 7) == 0) return 1;
  const std::int64_t odd[] = {0, 4, 2, 6, 1, 3, 5, 7};
  return std::max<std::int64_t>(1, std::min(most, between(0, most / 8) * 8 + odd[between(0, 7)]));
}

std::int64_t Draw::padding(std::int64_t length, std::int64_t aligned) {
  return (aligned - length % aligned) % aligned + aligned * between(0, aligned > 1 ? 3 : 9);
}

Case Draw::tiles(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t most, const std::string& layout) {
  constexpr std::int64_t kDeep = 8;
  const std::int64_t down = between(1, most), across = between(1, most);
  Case c = {m * down, n * across, k * between(most == 1 ? kDeep - 2 : 1, kDeep * most * most / (down * across)), layout};
  c.drawn = seed_;
  return c;
}

std::vector<Case> Draw::ragged(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& layout,
                               std::vector<Case> before) {
  constexpr std::int64_t kLong = 1000, kAligned = kSector / 2;  // a sector of the smallest elements
  std::vector<Case> cases = std::move(before);
  for (int which = 0; which < 4; ++which) {
    const auto length = [&](std::int64_t tile, bool is_long) {
      const std::int64_t whole = is_long ? ceil_div(kLong, tile) : which == 0 ? between(1, 2) : 0;
      return whole * tile + between(tile / 2 + 1, tile - 1);
    };
    Case c = {length(m, which == 1), length(n, which == 2), length(k, which == 3), layout};
    const auto rest = [](std::int64_t row) { return ceil_div(row, kAligned) * kAligned - row; };
    c.padding = rest(layout.at(0) == 't' ? c.m : c.k), c.padding_b = rest(layout.at(1) == 't' ? c.k : c.n);
    c.padding_c = rest(c.n);
    c.drawn = seed_;
    cases.push_back(c);
  }
  return cases;
}

std::vector<Case> Coach::drawn(const Space& space) const {
  constexpr std::int64_t kSmall = 50, kThin = 12;
  struct Lengths {
    std::int64_t m, n, k;
  };
  std::vector<Case> cases;
  for (const Lengths& most : {Lengths{kSmall, kSmall, kSmall},
                              {kSmall, kSmall, kSmall},
                              {400, kThin, kThin},
                              {kThin, 400, kThin},
                              {kThin, kThin, 1200},
                              {kThin, kThin, 0}}) {
    if (most.k == 0 && !space.empty_k) continue;
    const auto length = [&](std::int64_t limit) { return limit > 100 ? limit / 2 + draw_.length(limit / 2) : draw_.length(limit); };
    Case c;
    c.m = length(most.m), c.n = length(most.n);
    c.k = most.k ? (length(most.k) + space.k - 1) / space.k * space.k : 0;
    c.layout = space.layout;
    c.padding = draw_.padding(space.layout.at(0) == 't' ? c.m : c.k, space.aligned_a);
    c.padding_b = draw_.padding(space.layout.at(1) == 't' ? c.k : c.n, space.aligned_b);
    c.padding_c = draw_.padding(c.n);
    c.b_offset = draw_.between(0, space.b_offsets ? space.b_offsets : space.aligned_b == 1 ? 3 : 0);
    c.c_offset = draw_.between(0, 1) * draw_.between(0, space.c_offsets);
    // Whether C has vectors depends on its address and its stride, and not on its width: one of the three alone is not enough.
    constexpr std::int64_t kVector = 8;
    if (cases.size() == 1) {
      c.n = ceil_div(c.n, kVector) * kVector;
      c.padding_b = draw_.padding(space.layout.at(1) == 't' ? c.k : c.n, space.aligned_b);
      c.padding_c = 2 * draw_.between(0, 3) + 1, c.c_offset = 0;
    } else if (cases.size() == 3) {
      c.padding_c = draw_.padding(c.n, kVector), c.c_offset = std::min<std::int64_t>(1, space.c_offsets);
    }
    c.hint = space.hint;
    c.again = cases.empty();
    c.drawn = draw_.seed();
    cases.push_back(c);
  }
  return cases;
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
  return in_all_orders(subject, false, [&] {
    auto launches = launches_of(subject, body);
    require_own_kernels(launches);
    look_for_races(launches, what);
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
  exercise::Coach solution(true, coach.draw().seed());
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

// Runs the test where another process judges: what it throws is known there.
[[noreturn]] void testify(exercise::Coach& coach) {
  exercise::become_witness();
  try {
    exercise::check(coach);
  } catch (...) {
  }
  exercise::end_testimony();
}

void profile_to(const std::string& profile) {
#ifdef COURSE_ON_GPU
  if (profile == "largest") return exercise::profile_to(largest());
#endif
  exercise::profile_to(profile);
}

}  // namespace

// Judges the file that it is linked with: judge FILE [WORD [PROFILE [RESULTS [SEED [PROGRAM]]]]]. The last line of what it prints
// is "passed WORD" if that is right, and "right WORD" if C alone is; so a file that ends the program, or prints the like, has not
// passed. WORD is "-" for the line that stdin has. Who calls a witness reads it before that begins: other processes have the same
// stdin, bubblewrap's first one for example, and the witness may look for it there. Who runs FILE itself reads it when nothing of
// FILE runs any more, so FILE cannot find it in memory. PROFILE is what exercise::profile_to() takes, on a GPU also "largest", for
// the problem with most to do; nothing is timed then. RESULTS is what exercise::race() takes. SEED, a number from 1 on, says what
// is drawn at random. PROGRAM is what judges FILE in the same way and is linked with it, while this one is not: it is called as the
// witness, whose own PROGRAM is "-". An empty word is as none.
int main(int argc, char** argv) {
  if (argc < 2 || argc > 7) {
    std::fprintf(stderr, "usage: %s FILE [WORD [PROFILE [RESULTS [SEED [PROGRAM]]]]]\n", argv[0]);
    return 2;
  }
  const auto argument = [&](int i) { return std::string(i < argc ? argv[i] : ""); };
  const std::string file = argument(1), profile = argument(3), seed = argument(5), program = argument(6);
  exercise::folder = file.substr(0, file.rfind('/') + 1);
#ifdef COURSE_ON_INTERPRETER
  // A FILE that calls the CUDA runtime is linked with what 'interpret' tells its programs, which are not counted.
  interpreter::options() = {};
  // The problems are small: what takes longer than this does not end.
  interpreter::options().hang_seconds = 5;
  interpreter::options().step_budget = 200'000'000;
#endif
  exercise::Coach coach(false, seed.empty() ? 1 : std::strtoull(seed.c_str(), nullptr, 10));
  std::string word = argument(2);
  const auto read_word = [&] {
    if (word == "-") std::getline(std::cin, word);
  };
  const auto end = [&](const char* verdict, int code) {
    read_word();
    std::printf("%s %s\n", verdict, word.c_str());
    std::fflush(stdout);
    std::_Exit(code);  // what FILE has left for the end of the program does not run
  };
  std::string text;
  bool is_right = false;
  try {
    if (program == "-") testify(coach);
    if (!program.empty()) read_word(), exercise::call_witness(program, file, seed);
    if (!profile.empty()) profile_to(profile);
    exercise::check(coach);
    exercise::dismiss_witness();
    if (!exercise::noted_race.empty()) throw exercise::NotYet{exercise::noted_race};
    exercise::write_profile();
    if (profile.empty()) std::printf("%s", timed(coach, argument(4)).c_str());
    end("passed", 0);
  } catch (const exercise::Seen&) {
    return 0;
  } catch (const exercise::NotYet& failure) {
    text = failure.text, is_right = text.starts_with("The result is right");
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "The function throws something that is no std::exception.";
  }
  exercise::dismiss_witness();
  while (text.ends_with('\n')) text.pop_back();
  exercise::write_profile();  // of what came before it, too
  std::printf("%s\n", text.c_str());
  if (!coach.lesson().empty()) std::printf("Reread: %s\n", coach.lesson().c_str());
  if (is_right) end("right", 1);
  return 1;
}
