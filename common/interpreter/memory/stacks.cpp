#include "common/interpreter/memory/stacks.h"

#include <sys/mman.h>

#include <atomic>
#include <utility>

#include "common/interpreter/memory/global_memory.h"

namespace interpreter {
namespace {

// Guard pages split the stacks' mapping in two each, and a process may have 65,530 mappings.
constexpr std::size_t kMaxGuardPages = 24'000;
std::atomic<std::size_t> guard_pages{0};

}  // namespace

void Stacks::prepare(unsigned threads, std::size_t stack_bytes) {
  const std::size_t page = page_bytes(), bytes = (stack_bytes + kReserve + kPage + page - 1) / page * page + page;
  if (count_ >= threads && bytes_ == bytes) return;
  drop();
  bytes_ = bytes, count_ = threads;
  begin_ = static_cast<char*>(reserve(threads * bytes));
  guarded_ = threads;
  if ((guard_pages += threads) <= kMaxGuardPages)
    for (unsigned i = 0; i < threads; ++i) mprotect(begin_ + i * bytes, page, PROT_NONE);
}

void Stacks::drop() {
  if (begin_) munmap(begin_, count_ * bytes_);
  begin_ = nullptr;
  guard_pages -= std::exchange(guarded_, 0);
}

// If all stacks began at the same offset in a page, their tops would compete for the same few lines of the L1 cache.
char* Stacks::top(unsigned thread) const { return begin_ + (thread + 1) * bytes_ - 192 * thread % kPage; }
const char* Stacks::limit(unsigned thread) const { return begin_ + thread * bytes_ + page_bytes() + kReserve; }
std::size_t Stacks::usable_bytes() const { return bytes_ - page_bytes() - kPage; }

bool Stacks::in_guard_page(const void* p) const { return contains(p) && offset_of(p) % bytes_ < page_bytes(); }

}  // namespace interpreter
