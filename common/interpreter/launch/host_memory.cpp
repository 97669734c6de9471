// Device memory as host code sees it: allocations, copies, and what is worth a note there.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/interpreter/count/gpus.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/launch/signals.h"
#include "common/interpreter/memory/global_memory.h"
#include "common/interpreter/report/diagnosis.h"

namespace interpreter {
namespace {

struct HostNotes {
  std::mutex mutex;
  std::vector<std::string> all;
  std::set<std::string> places;  // line and memory: a copy of many rows is told once
};
HostNotes& notes_on_the_host() {
  static HostNotes& the_notes = *new HostNotes;
  return the_notes;
}

void note_unwritten(const GlobalMemory::Allocation& a, std::size_t bytes, const GlobalMemory::Unwritten& u) {
  const auto& memory = GlobalMemory::instance();
  const Location where = host_line();
  const std::string note =
      (where.line ? at(where) + ": " : "") + "of the " + std::to_string(bytes) + " bytes that are copied from " + a.label +
      " to the host, " + std::to_string(u.count) + " were written by no kernel and no copy, the first of them at byte " +
      std::to_string(u.first - static_cast<std::size_t>(a.begin - memory.base())) + " of " + std::to_string(a.bytes);
  HostNotes& notes = notes_on_the_host();
  std::lock_guard lock(notes.mutex);
  if (std::find(notes.all.begin(), notes.all.end(), note) != notes.all.end()) return;
  if (where.line && !notes.places.insert(at(where) + a.label).second) return;
  notes.all.push_back(note);
  std::fprintf(stderr, "interpreter: note: %s\n", note.c_str());
}

}  // namespace

std::vector<std::string> host_notes() {
  HostNotes& notes = notes_on_the_host();
  std::lock_guard lock(notes.mutex);
  return notes.all;
}

static void* allocate(std::size_t bytes, const std::string& label, GlobalMemory::Kind kind) {
  install_handlers();
  const std::size_t limit = std::min(find_gpu(options().gpu).dram_bytes, GlobalMemory::kDeviceBytes);
  return GlobalMemory::instance().allocate(bytes, label, kind, limit);
}
void* allocate(std::size_t bytes, const std::string& label) { return allocate(bytes, label, GlobalMemory::Kind::kDevice); }
void* allocate_managed(std::size_t bytes, const std::string& label) { return allocate(bytes, label, GlobalMemory::Kind::kManaged); }
void release(void* p) {
  synchronize();  // as cudaFree does
  GlobalMemory::instance().release(p, return_addresses());
}

void copy_in(void* device, const void* host, std::size_t bytes) {
  synchronize();
  auto& memory = GlobalMemory::instance();
  memory.require_allocated(device, bytes, "copy_in");
  if (bytes == 0) return;
  memory.with_rights(device, bytes, [&] { std::memcpy(device, host, bytes); });
  memory.mark_initialised(static_cast<std::size_t>(static_cast<char*>(device) - memory.base()), bytes);
}

void copy_out(void* host, const void* device, std::size_t bytes) {
  synchronize();
  auto& memory = GlobalMemory::instance();
  memory.require_allocated(device, bytes, "copy_out");
  if (bytes == 0) return;
  const char* const from = static_cast<const char*>(device);
  GlobalMemory::Unwritten unwritten;
  memory.with_rights(device, bytes, [&] {
    std::memcpy(host, device, bytes);
    unwritten = memory.unwritten(static_cast<std::size_t>(from - memory.base()), bytes);
  });
  if (unwritten.count) note_unwritten(memory.nearest(device), bytes, unwritten);
}

void copy_on_device(void* to, const void* from, std::size_t bytes) {
  synchronize();
  auto& memory = GlobalMemory::instance();
  memory.require_allocated(to, bytes, "copy_on_device");
  memory.require_allocated(from, bytes, "copy_on_device");
  if (bytes == 0) return;
  const GlobalMemory::Unlocked unlocked;
  std::memmove(to, from, bytes);
  memory.mark_initialised(static_cast<std::size_t>(static_cast<char*>(to) - memory.base()), bytes);
}

void fill(void* device, int byte, std::size_t bytes) {
  synchronize();
  auto& memory = GlobalMemory::instance();
  memory.require_allocated(device, bytes, "fill");
  if (bytes == 0) return;
  memory.with_rights(device, bytes, [&] { std::memset(device, byte, bytes); });
  memory.mark_initialised(static_cast<std::size_t>(static_cast<char*>(device) - memory.base()), bytes);
}

}  // namespace interpreter
