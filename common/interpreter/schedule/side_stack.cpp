#include "common/interpreter/schedule/side_stack.h"

#include <cstddef>

namespace interpreter {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

// As in Scheduler::resume(), whoever is resumed stores where the one who resumed it stands.
void go_to(fcontext_t to, fcontext_t& save) {
  const boost::context::detail::transfer_t back = jump_fcontext(to, &save);
  *static_cast<fcontext_t*>(back.data) = back.fctx;
}

}  // namespace

void SideStack::call(void (*work)(void*), void* of) {
  if (!stack_) stack_ = std::make_unique<char[]>(kStackBytes);
  if (!context_) {
    const Transfer ready = jump_fcontext(make_fcontext(stack_.get() + kStackBytes, kStackBytes, &SideStack::run), this);
    context_ = ready.fctx;
  }
  work_ = work, of_ = of;
  go_to(context_, caller_);
}

void SideStack::run(Transfer from) {
  SideStack& self = *static_cast<SideStack*>(from.data);
  self.caller_ = from.fctx;
  for (;;) {
    go_to(self.caller_, self.context_);
    self.work_(self.of_);
  }
}

void SideStack::visit(Context thread) { go_to(thread, context_); }

void SideStack::come_back(Context& here) { go_to(context_, here); }

void SideStack::come_back_for_good() {
  Context dead;
  jump_fcontext(context_, &dead);
  __builtin_unreachable();
}

}  // namespace interpreter
