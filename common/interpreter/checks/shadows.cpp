#include "common/interpreter/checks/shadows.h"

#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/cluster.h"

namespace interpreter {

GlobalShadow& global_shadow() {
  static GlobalShadow& shadow = *[] {
    GlobalMemory::instance().when_released([](const char* begin, std::size_t bytes) {
      global_shadow().memory.forget(reinterpret_cast<std::uintptr_t>(begin), bytes);
    });
    return new GlobalShadow;
  }();
  return shadow;
}

void forget_all_accesses() {
  global_shadow().memory.forget_all();
  global_shadow().variables.forget_all();
}

Shadows::Shadows(const Assignment& work, const SharedMemory& shared)
    : work_(work), arena_(shared.dynamic(), SharedMemory::kArenaBytes), statics_begin_(shared.statics.begin) {
  if (shared.statics.bytes)
    statics_ = std::make_unique<ShadowedRange>(reinterpret_cast<const void*>(statics_begin_), shared.statics.bytes);
}

ShadowedRange& Shadows::of_peer(std::uintptr_t address) { return work_.cluster->home_of(address)->shadows.of_shared(address); }

void Shadows::forget_static(std::size_t offset, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 4) statics_->word(statics_begin_ + offset + i) = {};
}

ShadowedRange* Shadows::find(std::uintptr_t address) {
  if (arena_.contains(address)) return &arena_;
  if (statics_ && statics_->contains(address)) return statics_.get();
  if (work_.cluster->peer_at(address)) return &of_peer(address);
  GlobalShadow& global = global_shadow();
  if (global.memory.contains(address)) return &global.memory;
  return global.variables.contains(address) ? &global.variables : nullptr;
}

}  // namespace interpreter
