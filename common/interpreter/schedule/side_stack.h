/// @file
/// A stack beside those of a block's threads.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <memory>

namespace interpreter {

/// Who works on it may exchange what lies on the threads' stacks, and may let a thread go on meanwhile.
class SideStack {
 public:
  using Context = boost::context::detail::fcontext_t;

  /// A block begins: what was under way on the stack is dropped.
  void begin() { context_ = nullptr; }
  /// Calls `work(of)` there. To be called on a thread's stack, where neither of the two may lie.
  void call(void (*work)(void* of), void* of);

  // ---- called by what works there
  /// Where the thread stands that called it.
  Context caller() const { return caller_; }
  /// Lets a thread go on at `thread`, until it calls come_back().
  void visit(Context thread);

  // ---- called on a thread that is visited
  /// Ends the visit. The thread goes on from here when what is left in `here` is visited.
  void come_back(Context& here);
  /// Ends the visit of a thread that never goes on.
  [[noreturn]] void come_back_for_good();

 private:
  using Transfer = boost::context::detail::transfer_t;
  static void run(Transfer from);

  std::unique_ptr<char[]> stack_;
  Context context_ = nullptr, caller_ = nullptr;
  void (*work_)(void*) = nullptr;
  void* of_ = nullptr;
};

}  // namespace interpreter
