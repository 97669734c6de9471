// st.async: stores into the shared memory of a block of the cluster, in the background (PTX ISA, "st.async").
//
// What is stored lands as a bulk copy does, when its mbarrier's phase needs the bytes: see Mbarriers. But it goes the threads' own
// way into memory, so no fence between the proxies is asked for.
#include <array>
#include <cstring>
#include <string>

#include "common/interpreter/checks/bounds.h"
#include "common/interpreter/checks/visits.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/instructions/mbarrier_family.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {
namespace {

void start(const AsyncProxy::Instruction& by, BlockContext& block, void* p, const void* value, unsigned bytes,
           std::uintptr_t barrier) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  BlockContext* const home = block.cluster().home_of(address);
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    block.async_proxy.fail(by, Check::kMemcheck, p, std::string(by.name) + " to " + block.reporter.describe(p) + what, expected);
  };
  if (!home) refuse(", which is no shared memory of the cluster", "the address is one of the cluster's shared memory, by mapa()");
  if (address % bytes) refuse(", misaligned", "the address is a multiple of the " + std::to_string(bytes) + " bytes");
  if (!home->bounds.is_storage(p, bytes)) refuse(": out of bounds", "it stays inside of the block's shared memory");
  if (block.cluster().home_of(barrier) != home)
    refuse(", whose mbarrier " + block.reporter.describe(reinterpret_cast<const void*>(barrier)) + " is not of the same block",
           "the mbarrier lies in the block that the value goes to: mapa() with the same rank for both");
  block.visits.require_resident(by.fiber, *home, p, "written", by.pc);
  block.visits.begin_variables(*home, address, bytes);
  block.async_proxy.begin_write(by, address, bytes, barrier);
  std::array<char, 16> data;
  std::memcpy(data.data(), value, bytes);
  home->family<Mbarriers>().add_copy(by, barrier, bytes, [=](const Stamp& stamp) {
    std::memcpy(reinterpret_cast<void*>(address), data.data(), bytes);
    home->async_proxy.end_write(stamp, address, bytes, 0);
  });
  block.note(by.fiber, EventKind::kStoreAsync, by.pc, bytes, home->shared.instruction_address(barrier),
             home->shared.instruction_address(address), home->work.rank);
}

}  // namespace

void st_async(void* shared, const void* value, unsigned bytes, std::uint64_t* barrier) {
  const Entered in;
  in.block.scheduler.rendezvous(in.fiber);
  start({in.fiber, "st.async", to_pc(__builtin_return_address(0)), true}, in.block, shared, value, bytes,
        reinterpret_cast<std::uintptr_t>(barrier));
}

}  // namespace interpreter
