#include "common/interpreter/instructions/griddepcontrol.h"

#include "common/interpreter/schedule/entered.h"

namespace interpreter {

void griddepcontrol_wait() { const Entered in; }
void griddepcontrol_launch_dependents() { const Entered in; }

}  // namespace interpreter
