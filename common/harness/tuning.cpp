#include "common/harness/tuning.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "common/harness/text.h"

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
Candidate considered(const Variant& v, const TuningKey& key, const Tuner& tuner, TuningCache& cache) {
  Candidate c{&v, Fate::kModelled, why_pruned(v.numbers, {}, key.spec, tuner.gpu), {}, 0};
  if (!c.reason.empty()) {
    c.fate = Fate::kPruned;
    return c;
  }
  c.prediction = predict(v.numbers, key.spec, tuner.gpu);
  if (!tuner.time) return c;
  if (const std::optional<TuningEntry> entry = cache.find(key, v.tile)) {
    c.fate = entry->pruned.empty() ? Fate::kKept : Fate::kPruned;
    c.reason = entry->pruned, c.seconds = entry->seconds;
  }
  return c;
}

std::vector<Candidate> considered(const std::vector<const Variant*>& variants, const TuningKey& key, const Tuner& tuner,
                                  TuningCache& cache) {
  std::vector<Candidate> candidates;
  for (const Variant* v : variants) candidates.push_back(considered(*v, key, tuner, cache));
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
  for (Candidate& c : candidates) {
    if (c.fate != Fate::kModelled) continue;
    try {
      c.reason = why_pruned(c.variant->numbers, tuner.resources(*c.variant), key.spec, tuner.gpu);
    } catch (const gemm::Refused& refused) {
      c.reason = refused.what();
    }
    if (c.reason.empty()) continue;
    c.fate = Fate::kPruned;
    cache.store(key, c.variant->tile, {0, c.reason});
  }
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
    for (const Candidate* c : group) cache.store(key, c->variant->tile, {c->seconds, ""});
    if (tuner.progress) tuner.progress(done, all);
  }
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g ms", 1e3 * seconds);
  return text;
}

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

std::string to_text(const std::vector<TuningCache::Row>& rows) {
  struct Problem {
    std::size_t tiles = 0, pruned = 0;
    const TuningCache::Row* best = nullptr;
  };
  const auto title = [](const TuningKey& k) {
    return k.step + " " + k.spec.shape() + " " + std::string(name(k.spec.in)) + " -> " + std::string(name(k.spec.out)) + " " +
           k.spec.layout() + " " + name(k.spec.epilogue) + ", " + k.gpu + ", driver " + k.driver + ", kernel " + k.kernel_version;
  };
  std::map<std::string, Problem> problems;
  for (const TuningCache::Row& row : rows) {
    Problem& p = problems[title(row.key)];
    ++p.tiles;
    if (!row.entry.pruned.empty())
      ++p.pruned;
    else if (!p.best || row.entry.seconds < p.best->entry.seconds)
      p.best = &row;
  }
  std::string text = rows.empty() ? "  nothing so far\n" : "";
  for (const auto& [title, p] : problems) {
    text += title + "\n  ";
    text += p.best ? p.best->tile + ": " + milliseconds(p.best->entry.seconds) + ", " +
                         with_prefix(p.best->key.spec.flops() / p.best->entry.seconds) + "FLOP/s"
                   : std::string("no tile was timed");
    text += "; of " + std::to_string(p.tiles) + " tiles, " + std::to_string(p.pruned) + " pruned\n";
  }
  return text;
}

}  // namespace harness
