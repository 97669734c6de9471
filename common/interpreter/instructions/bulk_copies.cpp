// cp.async.bulk and cp.async.bulk.tensor: copies by the copy engine (PTX ISA, "cp.async.bulk", "cp.async.bulk.tensor", "Tensors").
//
// A load lands when its mbarrier's phase needs its bytes, see Mbarriers; a store reads and writes at its thread's wait. Both are
// the latest moments that PTX allows, as with cp.async.
#include "common/interpreter/instructions/bulk_copies.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "common/interpreter/checks/visits.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/l2_trace.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/instructions/mbarrier_family.h"
#include "common/interpreter/instructions/roles.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/memory/stacks.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {
namespace {

// A parameter is aligned as its type is on x86-64, and to 16 bytes on aarch64.
#if defined(__x86_64__)
constexpr std::uintptr_t kMapAlignment = 64;
#else
constexpr std::uintptr_t kMapAlignment = 16;
#endif
constexpr std::uint32_t kOfLocalCopy = TensorMap::kMagic + 1;  // in place of the magic number

// Bytes that lie side by side in global memory, and where the first of them lies in the box.
struct Run {
  std::uintptr_t global;
  unsigned offset, bytes;
  std::uint64_t version = 0;
};

// A box of a tensor, or a plain range of bytes.
struct Box {
  std::uintptr_t shared = 0;
  unsigned bytes = 0, swizzle_bytes = 0;
  unsigned row_bytes = 0, pitch = 0;   // rows narrower than the swizzle have gaps between them, which are nobody's
  std::vector<Run> runs;               // what of it exists; the rest is outside of the tensor
  Counters::Global whole{1, 0, 0, 0};  // what it costs to move all of it, the outside included

  unsigned extent() const { return row_bytes == pitch ? bytes : bytes / row_bytes * pitch; }
  char* at(unsigned offset) const { return reinterpret_cast<char*>(swizzled(shared + offset, swizzle_bytes)); }
  // Calls `visit(address, bytes)` for the pieces of shared memory that the box has.
  template <class Visit>
  void for_each_part(Visit&& visit) const {
    if (row_bytes == pitch) return visit(shared, bytes);
    for (unsigned row = 0; row < bytes / row_bytes; ++row)
      for (unsigned i = 0; i < row_bytes; i += 16) visit(swizzled(shared + row * pitch + i, swizzle_bytes), 16u);
  }
  // The same for what a store reads: what lies outside of the tensor, it leaves out.
  template <class Visit>
  void for_each_stored_part(Visit&& visit) const {
    unsigned existing = 0;
    for (const Run& run : runs) existing += run.bytes;
    if (existing == bytes) return for_each_part(visit);
    for_each_piece([&](const char*, const char* from, unsigned size) { visit(reinterpret_cast<std::uintptr_t>(from), size); });
  }
  // Calls `visit(global, shared, bytes)` for pieces that lie side by side on both sides.
  template <class Visit>
  void for_each_piece(Visit&& visit) const {
    for (const Run& run : runs)
      for (unsigned done = 0, size = 0; done < run.bytes; done += size) {
        const unsigned offset = run.offset + done;
        size = swizzle_bytes ? std::min(run.bytes - done, 16 - offset % 16) : run.bytes;
        visit(reinterpret_cast<char*>(run.global + done), at(offset), size);
      }
  }
};

class BulkCopies final : public Family {
 public:
  explicit BulkCopies(BlockContext& block) : block_(block) {}
  void begin(unsigned threads) override { threads_.assign(threads, {}); }
  void on_exit(Fiber& fiber) override;

  /// @param home whose shared memory is written
  void load(const AsyncProxy::Instruction& by, Box box, std::uintptr_t barrier);
  void multicast(const AsyncProxy::Instruction& by, const Box& box, std::uintptr_t barrier, unsigned mask);
  void store(const AsyncProxy::Instruction& by, Box box);
  /// @param shared where it comes to lie; 0: nowhere
  Box box_of(const AsyncProxy::Instruction& by, std::uintptr_t shared, const TensorMap& map, const int* coordinates, bool write);
  void require_place(const AsyncProxy::Instruction& by, const TensorMap& map);
  void require_begin(const AsyncProxy::Instruction& by, const TensorMap& map, const int* coordinates, bool write);
  void count(const AsyncProxy::Instruction& by, const Box& box, bool write, unsigned destinations);
  void trace(const Box& box, bool write);
  Box range_of(const AsyncProxy::Instruction& by, std::uintptr_t shared, std::uintptr_t global, unsigned bytes);
  void commit_group(const Fiber& fiber) { ++threads_[fiber.linear].groups; }
  void wait(Fiber& fiber, unsigned groups_under_way, bool read);

 private:
  struct Store {
    Box box;
    const char* name;
    Pc pc;
    std::uint64_t group;
    std::vector<std::uint64_t> versions;  // of the box's parts
    std::vector<char> data;               // once it has been read
    bool was_read = false;
  };
  struct Thread {
    std::deque<Store> stores;  // under way
    std::uint64_t groups = 0;  // committed so far
  };
  void load(const AsyncProxy::Instruction& by, BlockContext& home, Box box, std::uintptr_t barrier);
  void note_load(const AsyncProxy::Instruction& by, std::uintptr_t destination, unsigned bytes, std::uintptr_t barrier,
                 unsigned mask);
  void read(Fiber& fiber, Store& store);
  static void write(const Store& store);

  BlockContext& block_;
  std::vector<Thread> threads_;
};

// ------------------------------------------------------------------------------------------------------------ what is meant
// PTX does not say where a box may begin. An H200 ends with an illegal instruction where this is not kept.
void BulkCopies::require_begin(const AsyncProxy::Instruction& by, const TensorMap& map, const int* coordinates, bool write) {
  std::string begin = std::to_string(coordinates[0]);
  for (unsigned d = 1; d < map.dimensions; ++d) begin += ", " + std::to_string(coordinates[d]);
  const std::string what = std::string(by.name) + (write ? " to" : " from") + " a box that begins at (" + begin + ") of " +
                           block_.reporter.describe(map.tensor);
  if (std::int64_t(coordinates[0]) * map.element_bytes % 16)
    block_.async_proxy.fail(by, Check::kMemcheck, map.tensor, what + ", misaligned",
                            "in its row, a box begins at a multiple of 16 bytes, here of " +
                                std::to_string(16 / map.element_bytes) + " elements, outside of the tensor too");
  if (write && std::any_of(coordinates, coordinates + map.dimensions, [](int at) { return at < 0; }))
    block_.async_proxy.fail(by, Check::kMemcheck, map.tensor, what,
                            "a box that is stored begins at coordinates of at least 0; only loads may begin before the tensor");
}

// A parameter lies on the stack here.
void BulkCopies::require_place(const AsyncProxy::Instruction& by, const TensorMap& map) {
  if (block_.stacks.contains(by.fiber.linear, &map)) return;
  const Space space = space_of(&map);
  if (space == Space::kGlobal || space == Space::kConstant) return;
  block_.reporter.fail(
      Check::kMemcheck,
      std::string(by.name) + " with a tensor map in " + (space == Space::kShared ? "shared memory" : "the host's memory"),
      "the map is a `const __grid_constant__` parameter, which is named by its address, or lies in constant or global memory",
      &by.fiber, user_location(by.pc));
}

Box BulkCopies::box_of(const AsyncProxy::Instruction& by, std::uintptr_t shared, const TensorMap& map, const int* coordinates,
                       bool write) {
  if (map.magic == kOfLocalCopy)
    block_.reporter.fail(Check::kMemcheck,
                         std::string(by.name) +
                             " with a tensor map that is a parameter without __grid_constant__: nvcc copies it to local "
                             "memory, where the copy engine cannot read it",
                         "the parameter is `const __grid_constant__ CUtensorMap`", &by.fiber, user_location(by.pc));
  if (reinterpret_cast<std::uintptr_t>(&map) % kMapAlignment || map.magic != TensorMap::kMagic)
    block_.reporter.fail(
        Check::kMemcheck, std::string(by.name) + " with something that is no tensor map",
        "the map comes from the host as a `const __grid_constant__ TensorMap` parameter, by its address, and is one that "
        "could be encoded",
        &by.fiber, user_location(by.pc));
  require_place(by, map);
  require_begin(by, map, coordinates, write);
  const unsigned row_bytes = map.box[0] * map.element_bytes;
  Box box{shared, map.box_bytes(), map.swizzle_bytes, row_bytes, map.swizzle_bytes ? map.swizzle_bytes : row_bytes, {}};
  const std::int64_t begin = std::max(0, coordinates[0]);
  const std::int64_t end = std::min<std::int64_t>(std::int64_t(coordinates[0]) + map.box[0], map.size[0]);
  const unsigned rows = box.bytes / row_bytes;
  if (shared) block_.async_proxy.require_shared(by, shared, box.extent(), 128);
  for (unsigned row = 0; row < rows; ++row) {
    const std::int64_t from = std::int64_t(coordinates[0]) * map.element_bytes;
    std::uintptr_t global = reinterpret_cast<std::uintptr_t>(map.tensor) + static_cast<std::uint64_t>(from);
    bool exists = begin < end;
    for (unsigned d = 1, rest = row; d < map.dimensions; rest /= map.box[d], ++d) {
      const std::int64_t at = coordinates[d] + std::int64_t(rest % map.box[d]);
      exists &= at >= 0 && at < map.size[d];
      global += static_cast<std::uint64_t>(at) * map.stride[d];
    }
    add_bulk_cost(box.whole, global, shared + row * box.pitch, row_bytes);
    if (!exists) continue;
    const auto first = static_cast<unsigned>(begin - coordinates[0]) * map.element_bytes;
    unsigned size = static_cast<unsigned>(end - begin) * map.element_bytes;
    if (write) size = (size + 15) / 16 * 16;  // 16 bytes are written or not: those behind the end of a row with its last ones
    box.runs.push_back({global + first, row * box.pitch + first, size});
  }
  return box;
}

Box BulkCopies::range_of(const AsyncProxy::Instruction& by, std::uintptr_t shared, std::uintptr_t global, unsigned bytes) {
  const void* const p = reinterpret_cast<const void*>(global);
  if (bytes % 16 || global % 16)
    block_.async_proxy.fail(by, Check::kMemcheck, p,
                            std::string(by.name) + " of " + std::to_string(bytes) + " bytes, global side " +
                                block_.reporter.describe(p) + ", misaligned",
                            "the number of bytes and both addresses are multiples of 16");
  block_.async_proxy.require_shared(by, shared, bytes, 16);
  Box range{shared, bytes, 0, bytes, bytes, {{global, 0, bytes}}};
  add_bulk_cost(range.whole, global, shared, bytes);
  return range;
}

// What exists of the box passes L2.
void BulkCopies::trace(const Box& box, bool write) {
  const Options& options = block_.work.options();
  if (!options.count || !options.l2_model) return;
  for (const Run& run : box.runs) block_.l2_trace.add(run.global, run.bytes, write);
}

// A load gets zeros for what is outside of the tensor from where everything else comes from, a store leaves it out.
void BulkCopies::count(const AsyncProxy::Instruction& by, const Box& box, bool write, unsigned destinations) {
  const Options& options = block_.work.options();
  if (!options.count) return;
  Counters::Global cost = box.whole;
  if (write) {
    cost = {1, 0, 0, 0};
    for (const Run& run : box.runs) add_bulk_cost(cost, run.global, box.shared + run.offset, run.bytes);
  }
  cost.sectors *= destinations, cost.lines *= destinations, cost.bytes *= destinations;
  block_.counters.count_bulk(by.pc, cost, write);
  Roles& roles = block_.family<Roles>();
  write ? roles.store(box.shared, box.extent()) : roles.copies(by.fiber.warp);
  if (!write && box.runs.empty()) block_.counters.count_bulk_zeros(by.pc);
  trace(box, write);
}

// ----------------------------------------------------------------------------------------------------------------- loads
void BulkCopies::load(const AsyncProxy::Instruction& by, BlockContext& home, Box box, std::uintptr_t barrier) {
  box.for_each_part([&](std::uintptr_t address, unsigned size) { block_.async_proxy.begin_write(by, address, size, barrier); });
  for (Run& run : box.runs) run.version = block_.async_proxy.begin_global_read(by, run.global, run.bytes);
  const unsigned bytes = box.bytes;
  const auto land = [this, &home, box = std::move(box), &fiber = by.fiber, name = by.name, pc = by.pc](const Stamp& stamp) {
    const AsyncProxy::Instruction again{fiber, name, pc};
    for (const Run& run : box.runs) block_.async_proxy.end_global_read(again, stamp, run.global, run.bytes, run.version);
    box.for_each_part([](std::uintptr_t address, unsigned size) { std::memset(reinterpret_cast<void*>(address), 0, size); });
    box.for_each_piece([](const char* global, char* shared, unsigned size) { std::memcpy(shared, global, size); });
    box.for_each_part(
        [&](std::uintptr_t address, unsigned size) { home.async_proxy.end_write(stamp, address, size, box.swizzle_bytes); });
  };
  home.family<Mbarriers>().add_copy(by, barrier, bytes, land);
}

void BulkCopies::load(const AsyncProxy::Instruction& by, Box box, std::uintptr_t barrier) {
  const unsigned bytes = box.bytes;
  const std::uintptr_t destination = box.shared;
  load(by, block_, std::move(box), barrier);
  note_load(by, destination, bytes, barrier, 1u << block_.work.rank);
}

// @param mask of the blocks that get it, each at the same place
void BulkCopies::note_load(const AsyncProxy::Instruction& by, std::uintptr_t destination, unsigned bytes, std::uintptr_t barrier,
                           unsigned mask) {
  block_.note(by.fiber, EventKind::kBulkLoad, by.pc, bytes, block_.shared.instruction_address(barrier),
              block_.shared.instruction_address(destination), mask);
}

// Each block of the mask gets the box, and its bytes at its mbarrier, where the issuing block would have them.
void BulkCopies::multicast(const AsyncProxy::Instruction& by, const Box& box, std::uintptr_t barrier, unsigned mask) {
  block_.async_proxy.require_shared(by, barrier, 8, 8);
  const Cluster& cluster = block_.cluster();
  const void* const p = reinterpret_cast<const void*>(box.shared);
  if (mask == 0 || mask >> cluster.size())
    block_.async_proxy.fail(by, Check::kMemcheck, p,
                            std::string(by.name) + " with mask " + hex(mask) + " in a cluster of " + std::to_string(cluster.size()),
                            "a bit of the mask for each destination, and none for blocks that the cluster does not have");
  count(by, box, false, static_cast<unsigned>(std::popcount(mask)));
  for (unsigned rank = 0; rank < cluster.size(); ++rank) {
    if (!(mask >> rank & 1)) continue;
    BlockContext& home = cluster.block(rank);
    Box there = box;
    there.shared = cluster.counterpart(block_, box.shared, rank);
    block_.visits.require_resident(by.fiber, home, reinterpret_cast<const void*>(there.shared), "written by a copy", by.pc);
    block_.visits.begin_variables(home, there.shared, there.extent());
    load(by, home, std::move(there), cluster.counterpart(block_, barrier, rank));
  }
  note_load(by, box.shared, box.bytes, barrier, mask);
}

// ---------------------------------------------------------------------------------------------------------------- stores
void BulkCopies::store(const AsyncProxy::Instruction& by, Box box) {
  count(by, box, true, 1);
  std::vector<std::uint64_t> versions;
  box.for_each_stored_part(
      [&](std::uintptr_t address, unsigned size) { versions.push_back(block_.async_proxy.begin_read(by, address, size)); });
  for (const Run& run : box.runs) block_.async_proxy.begin_global_write(by, run.global, run.bytes);
  Thread& thread = threads_[by.fiber.linear];
  const std::uint64_t bytes = box.bytes, source = block_.shared.instruction_address(box.shared);
  thread.stores.push_back({std::move(box), by.name, by.pc, thread.groups, std::move(versions), {}, false});
  block_.note(by.fiber, EventKind::kBulkStore, by.pc, bytes, 0, source);
}

void BulkCopies::read(Fiber& fiber, Store& store) {
  if (store.was_read) return;
  store.was_read = true;
  std::size_t part = 0;
  store.box.for_each_stored_part([&](std::uintptr_t address, unsigned size) {
    block_.async_proxy.end_read({fiber, store.name, store.pc}, address, size, store.versions[part++]);
  });
  store.box.for_each_piece(
      [&](const char*, const char* shared, unsigned size) { store.data.insert(store.data.end(), shared, shared + size); });
}

void BulkCopies::write(const Store& store) {
  const char* from = store.data.data();
  store.box.for_each_piece([&](char* global, const char*, unsigned size) {
    std::memcpy(global, from, size);
    from += size;
  });
}

void BulkCopies::wait(Fiber& fiber, unsigned groups_under_way, bool reading) {
  block_.activity.note_progress();
  Thread& thread = threads_[fiber.linear];
  const auto is_over = [&](const Store& store) { return store.group + groups_under_way < thread.groups; };
  if (thread.stores.empty() || !is_over(thread.stores.front())) return;
  block_.scheduler.rendezvous(fiber);  // what the thread did before belongs to the time before
  for (Store& store : thread.stores)
    if (is_over(store)) read(fiber, store);
  while (!reading && !thread.stores.empty() && is_over(thread.stores.front())) {
    const Store& store = thread.stores.front();
    write(store);
    for (const Run& run : store.box.runs) block_.async_proxy.end_global_write({fiber, store.name, store.pc}, run.global, run.bytes);
    thread.stores.pop_front();
  }
  block_.activity.note_change();
}

// The end of a kernel waits for what is written, but not for what is read: by then shared memory may be another block's. Other
// threads do not learn when it is written.
void BulkCopies::on_exit(Fiber& fiber) {
  for (Store& store : threads_[fiber.linear].stores) {
    if (!store.was_read)
      block_.reporter.fail(Check::kRacecheck,
                           std::string("the thread ends while its ") + store.name + " from " +
                               block_.reporter.describe(reinterpret_cast<const void*>(store.box.shared)) + " is under way" +
                               (store.group == threads_[fiber.linear].groups ? ": no commit_group has come after it" : ""),
                           "cp.async.bulk.commit_group, then cp.async.bulk.wait_group.read 0, before the thread ends", &fiber,
                           user_location(store.pc), block_.reporter.variable_at(reinterpret_cast<const void*>(store.box.shared)));
    write(store);
    for (const Run& run : store.box.runs) block_.async_proxy.end_global_write_unseen(run.global, run.bytes);
  }
  threads_[fiber.linear].stores.clear();
}

std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

// ------------------------------------------------------------------------------------------------------ what a kernel calls
const TensorMap* require_dimensions(const TensorMap* map, unsigned dimensions) {
  if (reinterpret_cast<std::uintptr_t>(map) % kMapAlignment || map->magic != TensorMap::kMagic || map->dimensions == dimensions)
    return map;
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "cp.async.bulk.tensor", to_pc(__builtin_return_address(0))};
  in.block.async_proxy.fail(by, Check::kMemcheck, map->tensor,
                            "cp.async.bulk.tensor." + std::to_string(dimensions) + "d with the map of a tensor of " +
                                std::to_string(map->dimensions) + (map->dimensions == 1 ? " dimension" : " dimensions"),
                            "the instruction names as many dimensions as cuTensorMapEncodeTiled was given");
}
void cp_async_bulk_tensor_load(void* shared, const TensorMap* map, const int* coordinates, std::uint64_t* barrier) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "cp.async.bulk.tensor", to_pc(__builtin_return_address(0))};
  in.block.scheduler.rendezvous(in.fiber);
  auto& copies = in.block.family<BulkCopies>();
  Box box = copies.box_of(by, number(shared), *map, coordinates, false);
  copies.count(by, box, false, 1);
  copies.load(by, std::move(box), number(barrier));
}
void cp_async_bulk_tensor_load_multicast(void* shared, const TensorMap* map, const int* coordinates, std::uint64_t* barrier,
                                         unsigned mask) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "cp.async.bulk.tensor.multicast", to_pc(__builtin_return_address(0))};
  in.block.scheduler.rendezvous(in.fiber);
  auto& copies = in.block.family<BulkCopies>();
  copies.multicast(by, copies.box_of(by, number(shared), *map, coordinates, false), number(barrier), mask);
}
void cp_async_bulk_prefetch_tensor(const TensorMap* map, const int* coordinates) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "cp.async.bulk.prefetch.tensor", to_pc(__builtin_return_address(0))};
  in.block.scheduler.rendezvous(in.fiber);
  auto& copies = in.block.family<BulkCopies>();
  copies.trace(copies.box_of(by, 0, *map, coordinates, false), false);
}
void cp_async_bulk_tensor_store(const TensorMap* map, const int* coordinates, const void* shared) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "cp.async.bulk.tensor", to_pc(__builtin_return_address(0))};
  in.block.scheduler.rendezvous(in.fiber);
  auto& copies = in.block.family<BulkCopies>();
  copies.store(by, copies.box_of(by, number(shared), *map, coordinates, true));
}
void cp_async_bulk_load(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "cp.async.bulk", to_pc(__builtin_return_address(0))};
  in.block.scheduler.rendezvous(in.fiber);
  auto& copies = in.block.family<BulkCopies>();
  Box range = copies.range_of(by, number(shared), number(global), bytes);
  copies.count(by, range, false, 1);
  copies.load(by, std::move(range), number(barrier));
}
void cp_async_bulk_load_multicast(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier, unsigned mask) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "cp.async.bulk.multicast", to_pc(__builtin_return_address(0))};
  in.block.scheduler.rendezvous(in.fiber);
  auto& copies = in.block.family<BulkCopies>();
  copies.multicast(by, copies.range_of(by, number(shared), number(global), bytes), number(barrier), mask);
}
void cp_async_bulk_store(void* global, const void* shared, unsigned bytes) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "cp.async.bulk", to_pc(__builtin_return_address(0))};
  in.block.scheduler.rendezvous(in.fiber);
  auto& copies = in.block.family<BulkCopies>();
  copies.store(by, copies.range_of(by, number(shared), number(global), bytes));
}
void cp_async_bulk_commit_group() {
  const Entered in;
  in.block.family<BulkCopies>().commit_group(in.fiber);
  in.block.note(in.fiber, EventKind::kBulkCommit, to_pc(__builtin_return_address(0)));
}
void cp_async_bulk_wait_group(unsigned groups, bool read) {
  const Entered in;
  in.block.family<BulkCopies>().wait(in.fiber, groups, read);
  in.block.note(in.fiber, EventKind::kBulkWait, to_pc(__builtin_return_address(0)), groups, read);
}

}  // namespace interpreter

namespace interpreter::cuda_runtime {

void without_grid_constant(const void* map) {
  std::uint32_t& magic = static_cast<TensorMap*>(const_cast<void*>(map))->magic;  // a copy of the thread's own
  if (magic == TensorMap::kMagic) magic = kOfLocalCopy;
}

}  // namespace interpreter::cuda_runtime
