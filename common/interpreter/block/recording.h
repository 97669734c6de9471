/// @file
/// How what lanes say of their instructions becomes events of a warp.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "common/interpreter/observe/events.h"
#include "common/interpreter/running/family.h"

namespace interpreter {

class BlockContext;

/// Logs what lanes say of instructions that are no accesses, so that they come back at their place as a warp's.
class Marks final : public Family {
 public:
  explicit Marks(BlockContext& block) : block_(block) {}
  void begin(unsigned) override;
  void on_request(unsigned warp, const Request& request) override;
  /// `event` is that of a lane: of a warp's lanes that say the same, it becomes one.
  void note(Fiber& fiber, const Event& event);
  /// ldmatrix puts what it loads next there.
  std::uint64_t take_registers(unsigned warp);

 private:
  struct Mark : Record {
    Event event;
  };
  BlockContext& block_;
  std::deque<Mark> marks_;
  std::vector<Mark*> free_;
  std::vector<std::uint64_t> registers_;  // by warp
};

}  // namespace interpreter
