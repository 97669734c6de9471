#include "common/interpreter/launch/profiles.h"

#include <utility>

namespace interpreter {
namespace {

struct RawProfile {
  KernelProfile profile;
  std::map<Pc, Counters> counters;
};

struct History {
  std::vector<RawProfile> raw;
  std::vector<KernelProfile> resolved;
};
History& history() {
  static History the_history;
  return the_history;
}

}  // namespace

void add_profile(KernelProfile profile, std::map<Pc, Counters> counters) {
  for (const auto& [pc, c] : counters) profile.total += c;
  history().raw.push_back({std::move(profile), std::move(counters)});
}

const std::vector<KernelProfile>& profiles() {
  History& h = history();
  for (std::size_t i = h.resolved.size(); i < h.raw.size(); ++i) {
    KernelProfile profile = h.raw[i].profile;
    std::map<std::pair<std::string, int>, Counters> lines;
    for (const auto& [pc, c] : h.raw[i].counters) {
      const Location where = user_location(pc);
      lines[{where.file, where.line}] += c;
    }
    for (auto& [where, c] : lines) profile.lines.push_back({where.first, where.second, c});
    h.resolved.push_back(std::move(profile));
  }
  return h.resolved;
}

void clear_profiles() { history() = {}; }

}  // namespace interpreter
