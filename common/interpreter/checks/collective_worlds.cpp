// A collective takes the arguments of all lanes and leaves results with them. Here it does so twice: once with what the lanes'
// first worlds give, once with the second worlds' (see two_worlds.cpp). Lanes whose stacks are the same in both afterwards have one
// world.
#include "common/interpreter/checks/collective_worlds.h"

#include <bit>
#include <cstring>
#include <vector>

#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/memory/stacks.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

void CollectiveWorlds::combine(unsigned w, unsigned mask, std::uint32_t arrived, void* const* arguments, Combine combine) {
  now_ = {};
  now_.warp = w, now_.mask = mask, now_.lanes = arrived;
  now_.arguments = arguments, now_.combine = combine;
  bool both = false;
  if (about_)
    for (std::uint32_t rest = arrived; rest; rest &= rest - 1)
      both |= worlds_.of(scheduler_.fiber(w, static_cast<unsigned>(std::countr_zero(rest)))) != nullptr;
  if (!both) {
    combine(arguments, arrived);
    // Only of a shuffle, which leaves what it was given as it is: it can be done again.
    both = now_.done = now_.undefined;
  }
  if (both) {
    about_ = true;
    side_stack_.call(&CollectiveWorlds::combine_in_both_worlds, this);
  }
}

void CollectiveWorlds::note_shuffle(const char* name, const std::uint8_t* sources, unsigned lanes, Site site) {
  now_.name = name, now_.site = site;
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    now_.sources[lane] = sources[lane];
    now_.undefined |= !(lanes >> sources[lane] & 1);
  }
}

void CollectiveWorlds::combine_in_both_worlds(void* collective_worlds) {
  CollectiveWorlds& self = *static_cast<CollectiveWorlds*>(collective_worlds);
  TwoWorlds& worlds = self.worlds_;
  const Combining& now = self.now_;
  std::uint32_t new_ones = 0;
  void* arguments[32];
  std::vector<char> first_stacks[32];
  const auto for_each_lane = [&](auto&& body) {
    for (std::uint32_t rest = now.lanes; rest; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      Fiber& fiber = self.scheduler_.fiber(now.warp, lane);
      body(lane, fiber, worlds.stack_of(fiber));
    }
  };
  const auto copy_of = [&](const Fiber& fiber, const char* begin) {
    return std::vector<char>(begin, static_cast<const char*>(self.stacks_.top(fiber.linear)));
  };
  for_each_lane([&](unsigned lane, Fiber& fiber, char* begin) {
    OtherWorld* other = worlds.of(fiber);
    if (!other) {
      new_ones |= 1u << lane;
      other = &worlds.add(fiber);
      other->context = begin;
      other->stack = copy_of(fiber, begin);
      other->step.argument = now.arguments[lane];
    }
    arguments[lane] = other->step.argument;
  });
  if (!now.done) now.combine(now.arguments, now.lanes);

  for_each_lane([&](unsigned lane, Fiber& fiber, char* begin) {
    const OtherWorld& other = *worlds.of(fiber);
    first_stacks[lane] = copy_of(fiber, begin);
    std::memcpy(other.context, other.stack.data(), other.stack.size());
  });
  worlds.as_other([&] { now.combine(arguments, now.lanes); });
  for_each_lane([&](unsigned lane, Fiber& fiber, char* begin) {
    OtherWorld& other = *worlds.of(fiber);
    std::memcpy(other.stack.data(), other.context, other.stack.size());
    std::memcpy(begin, first_stacks[lane].data(), first_stacks[lane].size());
  });

  // Where a difference comes from: from this shuffle, or from where that of the lane's source does.
  OtherWorld::Origin before[32];
  const OtherWorld::Origin* any = nullptr;
  for_each_lane([&](unsigned lane, Fiber& fiber, char*) {
    before[lane] = worlds.of(fiber)->origin;
    if (!any && before[lane].is_known()) any = &before[lane];
  });
  for_each_lane([&](unsigned lane, Fiber& fiber, char*) {
    OtherWorld& other = *worlds.of(fiber);
    if (new_ones >> lane & 1 && other.stack == first_stacks[lane]) {
      worlds.drop(fiber);
      return;
    }
    const unsigned source = now.sources[lane];
    if (now.name && !(now.lanes >> source & 1))
      other.origin = {now.name, now.site, lane, source, now.mask, {}};
    else if (!other.origin.is_known() && now.name && before[source].is_known())
      other.origin = before[source];
    else if (!other.origin.is_known() && any)
      other.origin = *any;
  });
}

}  // namespace interpreter
