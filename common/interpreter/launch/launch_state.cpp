#include "common/interpreter/launch/launch_state.h"

namespace interpreter {

std::string kernel_name_of(const Launch& launch) { return launch.name ? launch.name : function_name(launch.kernel); }

void LaunchState::fail(Diagnosis d) {
  std::lock_guard lock(mutex);
  if (failed) return;
  diagnosis = std::move(d);
  failed = true;
}

bool LaunchState::is_one_value(Pc pc, std::uint32_t content) {
  std::lock_guard lock(mutex);
  return one_values.try_emplace(pc, content).first->second == content;
}

std::string LaunchState::pointer_at(Pc pc, bool store) {
  {
    std::lock_guard lock(mutex);
    if (const auto found = pointers.find(pc); found != pointers.end()) return found->second;
  }
  const std::string name = accessed_name_in_kernel(pc, store);
  std::lock_guard lock(mutex);
  return pointers[pc] = name;
}

void LaunchState::note(const std::string& text) {
  std::lock_guard lock(mutex);
  notes.insert(text);
}

}  // namespace interpreter
