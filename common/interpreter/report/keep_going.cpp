#include "common/interpreter/report/keep_going.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "common/interpreter/report/diagnosis.h"

namespace interpreter {
namespace {

struct Told {
  std::mutex mutex;
  std::set<std::tuple<Check, std::string, std::string, std::string>> problems;  // check, variable, two places
};
Told& told() {
  static Told& the_told = *new Told;
  return the_told;
}

// The last of what runs when a program ends: whatever it has returned, a check has failed.
void end_in_failure(int, void*) {
  if (!KeepGoing::instance().end()) return;
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace

KeepGoing& KeepGoing::instance() {
  static KeepGoing the_one;
  return the_one;
}

void KeepGoing::begin() {
  if (std::exchange(is_on_, true)) return;
  on_exit(end_in_failure, nullptr);
}

bool KeepGoing::tell(const Diagnosis& d, const std::string& other_place) {
  if (!is_on_) return false;
  const std::string place = at(Location{d.file, d.line, 0, d.called_at, d.called_in});
  std::lock_guard lock(told().mutex);
  const auto problem = std::tuple(d.check, d.variable, std::min(place, other_place), std::max(place, other_place));
  const auto explains = [&](const auto& earlier) {  // a race: who reads there comes too early
    const auto& [check, variable, first, second] = earlier;
    return check == Check::kRacecheck && variable == d.variable && (first == place || second == place);
  };
  if (told().problems.contains(problem)) return true;
  if (d.check == Check::kInitcheck && std::any_of(told().problems.begin(), told().problems.end(), explains)) return true;
  if (told().problems.size() + 1 >= kMost) return false;
  told().problems.insert(problem);
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n\n", d.text().c_str());
  return true;
}

bool KeepGoing::end() const {
  std::lock_guard lock(told().mutex);
  const std::size_t count = told().problems.size();
  if (count == 0) return false;
  std::fflush(stdout);
  std::fprintf(stderr,
               "interpreter: %zu %s reported, and the program went on after %s. What came later, results and further reports, may "
               "be a consequence: mend the first one first.\n",
               count, count == 1 ? "problem was" : "problems were", count == 1 ? "it" : "each");
  return true;
}

}  // namespace interpreter
