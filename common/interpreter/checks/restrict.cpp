#include "common/interpreter/checks/restrict.h"

#include <bit>

#include "common/interpreter/checks/shadows.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

std::set<std::string> shared_restrict_parameters(const Launch& launch) {
  std::set<std::string> names;
  std::vector<GlobalMemory::Allocation> memory(launch.pointers.size());
  const GlobalMemory& global = GlobalMemory::instance();
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (global.contains(reinterpret_cast<std::uintptr_t>(launch.pointers[i]))) memory[i] = global.nearest(launch.pointers[i]);
  std::vector<Parameter> known;
  for (std::size_t i = 0; i < memory.size(); ++i)
    for (std::size_t j = 0; j < memory.size(); ++j) {
      if (i == j || !memory[i].begin || memory[i].begin != memory[j].begin) continue;
      if (known.empty()) known = parameters(launch.kernel);
      if (known.size() == memory.size() && known[i].is_restrict) names.insert(known[i].name);
    }
  names.erase("");
  return names;
}

void RestrictCheck::check_load(unsigned w, const Request& request) {
  const std::string name = work_.launch->pointer_at(request.pc, false);
  if (!work_.launch->restricted.contains(name)) return;
  GlobalShadow& global = global_shadow();
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uintptr_t address = request.addresses[i];
    if (!global.memory.contains(address)) continue;
    Stamp write;
    {
      const std::lock_guard lock(global.lock_of(address));
      write = last_write(global.memory, clock_, address, request.size);
    }
    if (!write.thread) continue;
    const std::string other = work_.launch->pointer_at(write.pc & ~kPcFlags, true);
    if (other.empty() || other == name) continue;
    const void* const p = reinterpret_cast<const void*>(address);
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    const bool own = write.thread == clock_.id(w * 32 + lane);
    const std::string writer = own ? "this thread" : reporter_.name_of(write.thread, clock_);
    reporter_.tell(
        Check::kRacecheck,
        reporter_.describe(p) + " is read through " + name + ", which is __restrict__: written in this launch through " + other +
            " by " + writer + " at " + at(user_location(write.pc & ~kPcFlags)) + ", before this read",
        "what is read through a __restrict__ pointer is written through no other: the compiler may have read it before, and nvcc "
        "reads it through a cache that does not see the kernel's own stores",
        &scheduler_.fiber(w, lane), user_location(request.pc), reporter_.variable_at(p));
  }
}

}  // namespace interpreter
