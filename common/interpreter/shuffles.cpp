// Values that no lane gave: a shuffle from a lane that has exited, does not exist or is not in the mask gives something undefined.
//
// That is no error as long as the lane does not use it: reductions of half a warp read beyond their lanes, guards skip what has
// come. So the value is followed. A lane's later argument of a shuffle depends on it when it is the sum, the maximum and so on of
// what the lane gave and got before, and a lane that gets such an argument has an undefined value too. It is an error when one of
// them is stored. What is computed in any other way is not followed; its result is wrong, for the undefined value is a large
// number.
#include <cstring>

#include "common/interpreter/block_parts.h"

namespace interpreter {

bool undefined_values_about() { return current_block->undefined_values_about(); }

void follow_shuffle(const char* name, const ShuffleLane* lanes, unsigned mask, unsigned size, Computed computed, Site site) {
  current_block->follow_shuffle(name, lanes, mask, size, computed, site);
}

namespace {

bool equal(const void* a, const void* b, unsigned size) { return std::memcmp(a, b, size) == 0; }

}  // namespace

// Whether a value that the lane has now depends on an undefined one that it had at its last shuffle.
bool LastShuffle::decides(const void* value, unsigned of_size) const {
  static constexpr unsigned char kZero[16] = {};
  if (size != of_size || !(gave_undefined || got_undefined)) return false;
  if (equal(value, kZero, size)) return false;  // many things are zero
  if (equal(value, gave, size)) return gave_undefined;
  if (equal(value, got, size)) return got_undefined;
  return computed(value, gave, got);
}

void Block::follow_shuffle(const char* name, const ShuffleLane* lanes, unsigned mask, unsigned size, Computed computed, Site site) {
  undefined_values_about_ = true;
  Fiber* const warp = &fibers_[completing_warp_ * 32];
  std::uint32_t undefined = 0;
  LastShuffle before[32];
  for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    before[lane] = warp[lane].last_shuffle;
    if (before[lane].decides(lanes[lane].value, size)) undefined |= rest & -rest;
  }
  for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const ShuffleLane& shuffled = lanes[lane];
    const bool given = mask >> shuffled.source & 1;
    LastShuffle& last = warp[lane].last_shuffle;
    last.gave_undefined = undefined >> lane & 1;
    last.got_undefined = !given || (undefined >> shuffled.source & 1);
    last.size = size, last.computed = computed;
    std::memcpy(last.gave, shuffled.value, size);
    std::memcpy(last.got, shuffled.result, size);
    if (!given)
      last.origin = {name, site, lane, shuffled.source, completing_mask_};
    else if (last.got_undefined)
      last.origin = before[shuffled.source].origin;
    warp[lane].special |= last.gave_undefined || last.got_undefined;
  }
}

// The lane's last store has taken place: is what it wrote undefined?
void Block::check_last_store(Fiber& fiber) {
  const void* const p = std::exchange(fiber.stored, nullptr);
  const LastShuffle& last = fiber.last_shuffle;
  if (!p || !last.decides(p, last.size)) return;
  const auto& origin = last.origin;
  const Warp& warp = warps_[fiber.warp];
  const char* const why = !(warp.existing >> origin.source & 1) ? ", which does not exist"
                          : !(origin.mask >> origin.source & 1) ? ", which is not in the mask"
                                                                : ", which has exited";
  fail(Check::kSynccheck,
       std::string(origin.name) + " by lane " + std::to_string(origin.lane) + " of the warp reads lane " +
           std::to_string(origin.source) + why + ": what it gets is undefined, and this thread has stored in " + describe(p) +
           " what was computed from it",
       "lanes read values of lanes that take part in the same " + std::string(origin.name) + ", or do not use them", &fiber,
       {origin.site.file, origin.site.line}, variable_at(p));
}

}  // namespace interpreter
