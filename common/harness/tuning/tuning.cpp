#include "common/harness/tuning/tuning.h"

#include <algorithm>
#include <map>
#include <optional>

#include "common/harness/program/text.h"

namespace harness {
namespace {

using Fate = Candidate::Fate;

constexpr std::size_t kGroup = 8;  // tiles that are timed in the same rounds

bool has_time(const Candidate& c) { return c.fate == Fate::kTimed || c.fate == Fate::kKept; }

Candidate* fastest(std::vector<Candidate>& candidates) {
  Candidate* best = nullptr;
  for (Candidate& c : candidates)
    if (has_time(c) && (!best || c.seconds < best->seconds)) best = &c;
  return best;
}

// What is known without running anything: the limits of the GPU, and what was found out before.
Candidate considered(const Variant& v, const TuningKey& key, const Tuner& tuner, const std::map<std::string, TuningEntry>& known) {
  Candidate c{&v, Fate::kModelled, why_pruned(v.numbers, {}, key.spec, tuner.gpu), {}, 0};
  if (!c.reason.empty()) {
    c.fate = Fate::kPruned;
    return c;
  }
  c.prediction = predict(v.numbers, key.spec, tuner.gpu);
  if (const auto entry = known.find(v.tile); entry != known.end()) {
    c.fate = entry->second.pruned.empty() ? Fate::kKept : Fate::kPruned;
    c.reason = entry->second.pruned, c.seconds = entry->second.seconds;
  }
  return c;
}

std::vector<Candidate> considered(const std::vector<const Variant*>& variants, const TuningKey& key, const Tuner& tuner,
                                  TuningCache& cache) {
  std::map<std::string, TuningEntry> known;
  if (tuner.time) known = cache.find(key);
  std::vector<Candidate> candidates;
  for (const Variant* v : variants) candidates.push_back(considered(*v, key, tuner, known));
  // Where the earlier times are known, so is who need not be timed.
  if (const Candidate* const best = fastest(candidates))
    for (Candidate& c : candidates)
      if (c.fate == Fate::kModelled && c.prediction.bound > best->seconds) c.fate = Fate::kSkipped;
  return candidates;
}

bool all_known(const std::vector<Candidate>& candidates) {
  return std::none_of(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.fate == Fate::kModelled; });
}

// By what the compiler made of the tiles; asking for it takes longer than all of the above.
void prune(std::vector<Candidate>& candidates, const TuningKey& key, const Tuner& tuner, TuningCache& cache) {
  if (!tuner.resources) return;
  std::map<std::string, TuningEntry> pruned;
  for (Candidate& c : candidates) {
    if (c.fate != Fate::kModelled) continue;
    try {
      c.reason = why_pruned(c.variant->numbers, tuner.resources(*c.variant), key.spec, tuner.gpu);
    } catch (const gemm::Refused& refused) {
      c.reason = refused.what();
    }
    if (c.reason.empty()) continue;
    c.fate = Fate::kPruned;
    pruned[c.variant->tile] = {0, c.reason};
  }
  cache.store(key, pruned);
}

// Times `group` beside `anchor`, the best so far, in units of the anchor's time: so times of different groups, and of today and of
// the day when the anchor was timed, can be compared.
void time_group(const std::vector<Candidate*>& group, const Candidate* anchor, const Tuner& tuner) {
  std::vector<const Variant*> variants;
  for (const Candidate* c : group) variants.push_back(c->variant);
  if (anchor) variants.push_back(anchor->variant);
  const std::vector<double> seconds = tuner.time(variants);
  const double scale = anchor && seconds.back() > 0 ? anchor->seconds / seconds.back() : 1;
  for (std::size_t i = 0; i < group.size(); ++i) group[i]->fate = Fate::kTimed, group[i]->seconds = scale * seconds[i];
}

void time_candidates(std::vector<Candidate>& candidates, const TuningKey& key, const Tuner& tuner, TuningCache& cache) {
  std::vector<Candidate*> waiting;
  for (Candidate& c : candidates)
    if (c.fate == Fate::kModelled) waiting.push_back(&c);
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const Candidate* a, const Candidate* b) { return a->prediction.seconds < b->prediction.seconds; });
  const std::size_t all = waiting.size();
  for (std::size_t done = 0; done < all;) {
    const Candidate* const best = fastest(candidates);
    std::vector<Candidate*> group;
    for (; done < all && group.size() < kGroup; ++done) {
      Candidate& c = *waiting[done];
      if (best && c.prediction.bound > best->seconds) {
        c.fate = Fate::kSkipped;
      } else if (c.reason = tuner.verify ? tuner.verify(*c.variant) : ""; !c.reason.empty()) {
        c.fate = Fate::kWrong;
      } else {
        group.push_back(&c);
      }
    }
    if (!group.empty()) time_group(group, best, tuner);
    std::map<std::string, TuningEntry> timed;
    for (const Candidate* c : group) timed[c->variant->tile] = {c->seconds, ""};
    cache.store(key, timed);
    if (tuner.progress) tuner.progress(done, all);
  }
}

std::string milliseconds(double seconds) { return formatted("%.4g ms", 1e3 * seconds); }

std::string fate_of(const Candidate& c, const Spec& spec) {
  switch (c.fate) {
    case Fate::kPruned: return "pruned: " + c.reason;
    case Fate::kSkipped: return "not timed: it takes at least " + milliseconds(c.prediction.bound);
    case Fate::kWrong: return "WRONG: " + c.reason;
    case Fate::kModelled: return "not timed";
    case Fate::kTimed:
    case Fate::kKept: break;
  }
  return milliseconds(c.seconds) + ", " + with_prefix(spec.flops() / c.seconds) + "FLOP/s" +
         (c.fate == Fate::kKept ? ", timed earlier" : "");
}

}  // namespace

const Variant* Tuning::best() const {
  if (candidates.empty()) return nullptr;
  const Candidate& first = candidates.front();
  return has_time(first) || first.fate == Fate::kModelled ? first.variant : nullptr;
}

std::vector<TunedTile> Tuning::tiles() const {
  std::vector<TunedTile> tiles;
  for (const Candidate& c : candidates)
    tiles.push_back({c.variant->tile, has_time(c) ? std::optional(c.seconds) : std::nullopt, c.prediction.bound,
                     c.prediction.seconds, c.fate == Fate::kPruned ? c.reason : ""});
  return tiles;
}

Tuning tune(const std::vector<const Variant*>& variants, const TuningKey& key, const Tuner& tuner, TuningCache& cache) {
  Tuning tuning;
  tuning.candidates = considered(variants, key, tuner, cache);
  tuning.by_model = !tuner.time;
  if (tuner.time && !all_known(tuning.candidates)) {
    const TuningCache::Lock lock = cache.lock();
    tuning.candidates = considered(variants, key, tuner, cache);  // again: who held the lock may have timed them
    prune(tuning.candidates, key, tuner, cache);
    time_candidates(tuning.candidates, key, tuner, cache);
  }
  const auto place = [](const Candidate& c) {
    const int group = has_time(c) ? 0 : c.fate == Fate::kModelled ? 1 : c.fate == Fate::kSkipped ? 2 : 3;
    return std::pair(group, has_time(c) ? c.seconds : c.prediction.seconds);
  };
  std::stable_sort(tuning.candidates.begin(), tuning.candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return place(a) < place(b); });
  return tuning;
}

std::string to_text(const Tuning& tuning, const Spec& spec) {
  std::size_t width = 0;
  for (const Candidate& c : tuning.candidates) width = std::max(width, c.variant->tile.size());
  std::string text;
  for (const Candidate& c : tuning.candidates) {
    text += "  " + c.variant->tile + std::string(width - c.variant->tile.size(), ' ') + "  " + fate_of(c, spec);
    if (c.fate != Fate::kPruned && c.prediction.seconds > 0)
      text += "; the model: " + milliseconds(c.prediction.seconds) + ", " + digits(c.prediction.waves) + " waves";
    text += "\n";
  }
  return text;
}

std::string to_text(const std::vector<TunedProblem>& problems) {
  std::string text = problems.empty() ? "  nothing so far\n" : "";
  for (const auto& [key, tiles] : problems) {
    const std::pair<const std::string, TuningEntry>* best = nullptr;
    std::size_t pruned = 0;
    for (const auto& tile : tiles) {
      if (!tile.second.pruned.empty())
        ++pruned;
      else if (!best || tile.second.seconds < best->second.seconds)
        best = &tile;
    }
    const Spec& spec = key.spec;
    text += key.step + " " + spec.shape() + " " + std::string(name(spec.in)) + " -> " + std::string(name(spec.out)) + " " +
            spec.layout() + " " + name(spec.epilogue) + ", " + key.gpu + ", driver " + key.driver + ", kernel " +
            key.kernel_version + "\n  ";
    text += best ? best->first + ": " + milliseconds(best->second.seconds) + ", " +
                       with_prefix(spec.flops() / best->second.seconds) + "FLOP/s"
                 : std::string("no tile was timed");
    text += "; of " + std::to_string(tiles.size()) + " tiles, " + std::to_string(pruned) + " pruned\n";
  }
  return text;
}

}  // namespace harness
