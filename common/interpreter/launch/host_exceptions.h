/// @file
/// Exceptions for what host code does with memory that is not its own.
#pragma once

#include "common/interpreter/interpreter.h"

namespace interpreter {

/// Throws KernelError(diagnosis) at the instruction that a signal has interrupted; to be called from the signal's handler, whose
/// `context` it is. Where the compiler lets no exception out of that instruction (it takes it that a variable's memory is there),
/// the functions in which that is so are left without their destructors, and their caller gets the exception: better than an end of
/// the program, and a report is no situation to go on from. May return; the handler then returns too.
void throw_where_interrupted(Diagnosis diagnosis, void* context);

}  // namespace interpreter
