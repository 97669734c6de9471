// griddepcontrol: launches that begin before those before them have ended (PTX ISA, "griddepcontrol").
//
// Here each launch begins when the one before it has ended, so there is nothing to wait for. What is checked is that a kernel asks:
// DependenceCheck.
#include "common/interpreter/instructions/griddepcontrol.h"

#include "common/interpreter/checks/dependence.h"
#include "common/interpreter/instructions/entered.h"

namespace interpreter {

void griddepcontrol_wait() {
  const Entered in;
  in.block.note(in.fiber, EventKind::kLaunchWait, to_pc(__builtin_return_address(0)));
  in.block.dependence.wait(in.fiber);
}
void griddepcontrol_launch_dependents() {
  const Entered in;
  in.block.note(in.fiber, EventKind::kLaunchHint, to_pc(__builtin_return_address(0)));
}

}  // namespace interpreter
