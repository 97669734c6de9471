#include "common/interpreter/checks/other_world.h"

#include <algorithm>
#include <cstring>

#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/report/reporter.h"

namespace interpreter {
namespace {

// Basic blocks that a thread may go through from one event to the next in its second world: longer loops are not tried out.
constexpr unsigned kPatience = 1 << 22;
// Stores that are looked at again. The hooks of a store come before it, and the copy of a struct has several.
constexpr std::size_t kRecentStores = 16;
constexpr std::size_t kMostLooks = 1024;

}  // namespace

void OtherWorld::begin_run() {
  for (Store& s : stores_) std::memcpy(s.first, s.address, s.size);
  // The hooks of a struct's copy all come before the copy: its load is still to happen.
  if (step.event != WorldEvent::kStore) garbage_.clear();
  std::erase_if(garbage_, [&](const Garbage& g) { return *g.address != g.first || has_stored_lately(g.address, 1); });
  for (const Garbage& g : garbage_) *g.address = g.other;
  std::memcpy(context, stack.data(), stack.size());
  blocks_ = 0;
  looks_.clear();
  // The first world's volatile load comes after this one's, and others may store in between.
  if (step.event == WorldEvent::kLook) note_look(step.address, step.size);
}

void OtherWorld::end_run(const char* stack_top) {
  // One after the other, for stores may overlap.
  for (Store& s : stores_) std::memcpy(s.other, s.address, s.size);
  for (const Garbage& g : garbage_) *g.address = g.first;
  for (const Store& s : stores_) std::memcpy(s.address, s.first, s.size);
  if (!ended) stack.assign(static_cast<const char*>(context), stack_top);
}

bool OtherWorld::is_lost() { return ++blocks_ > kPatience; }

// The first world has NaN there, or -1. A maximum ignores a NaN and a minimum too, so the other value is now far above, now far
// below what a kernel computes with; of a byte, which may be a bool, it is 0.
void OtherWorld::put_garbage(void* p, unsigned size, std::uint32_t unwritten, char poison, unsigned number) {
  if (has_stored_lately(p, size)) return;
  auto* const bytes = static_cast<unsigned char*>(p);
  const bool negative = (reinterpret_cast<std::uintptr_t>(p) / 4 + number) % 2 != 0;
  for (unsigned i = 0; i < size; ++i) {
    if (!(unwritten >> i & 1) || bytes[i] != static_cast<unsigned char>(poison)) continue;
    const bool is_last = (i + 1) % std::min(size, 4u) == 0;
    const unsigned char other = size == 1 ? 0 : is_last && negative ? 0xfb : 0x7b;
    garbage_.push_back({bytes + i, bytes[i], other});
    bytes[i] = other;
  }
}

bool OtherWorld::has_stored_lately(const void* p, unsigned size) const {
  return std::any_of(stores_.begin(), stores_.end(), [&](const Store& s) {
    return s.address < static_cast<const char*>(p) + size && p < static_cast<const char*>(s.address) + s.size;
  });
}

void OtherWorld::note_look(const void* p, unsigned size) {
  if (looks_.size() < kMostLooks && !has_stored_lately(p, size)) looks_.push_back({p, size, content(p, size)});
}

// The thread may have seen such memory in one world before the change and in the other after. That is no race where the load is
// volatile, or an atomic tells it (a plain look before atomicCAS).
bool OtherWorld::has_seen_others() const {
  return std::any_of(looks_.begin(), looks_.end(),
                     [](const Look& look) { return content(look.address, look.size) != look.content; });
}

void OtherWorld::note_store(const void* p, unsigned size) {
  if (stores_.size() == kRecentStores) stores_.erase(stores_.begin());
  stores_.push_back({const_cast<void*>(p), size, {}, {}});
}

const void* OtherWorld::different_store() const {
  const auto differs = [](const Store& s) { return std::memcmp(s.other, s.address, s.size) != 0; };
  const auto store = std::find_if(stores_.begin(), stores_.end(), differs);
  return store == stores_.end() ? nullptr : store->address;
}

void OtherWorld::note_atomic(const void* old, unsigned size, bool (*update)(void*, const void*), const void* update_context) {
  std::memcpy(atomic_old_, old, size);
  std::memcpy(atomic_new_, old, size);
  update(atomic_new_, update_context);
}

bool OtherWorld::repeat_atomic(void* old, unsigned size, bool (*update)(void*, const void*), const void* update_context) const {
  alignas(16) unsigned char changed[16];
  std::memcpy(changed, atomic_old_, size);
  std::memcpy(old, atomic_old_, size);
  update(changed, update_context);
  return std::memcmp(changed, atomic_new_, size) == 0;
}

std::string describe(const WorldStep& step, const Reporter& reporter) {
  switch (step.event) {
    case WorldEvent::kStore: return "writes to " + reporter.describe(step.address);
    case WorldEvent::kLook: return "reads " + reporter.describe(step.address);
    case WorldEvent::kAtomic: return "changes " + reporter.describe(step.address) + " by an atomic";
    case WorldEvent::kCopy: return "copies to " + reporter.describe(step.address);
    case WorldEvent::kWait: return "waits for its copies";
    case WorldEvent::kCollective: return std::string("calls ") + step.name;
    case WorldEvent::kBarrier: return "calls __syncthreads";
    case WorldEvent::kFence: return "passes a fence";
    case WorldEvent::kSleep: return "sleeps";
    case WorldEvent::kExit: return "ends";
  }
  return "";
}

}  // namespace interpreter
