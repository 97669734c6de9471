/// @file
/// Host code that uses a kernel's variables, as if they were its own.
///
/// In nvcc's host code a __device__ or __constant__ variable is another one of the same name, which no kernel sees. Here there is
/// one, so that the mistake would go unnoticed.
#pragma once

#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/interpreter.h"

namespace interpreter {

/// Where variables lie that host code may have no business with; empty until they have been initialised.
extern constinit Range watched_variables;

/// Host code is about to access `p`, inside watched_variables. If that is a kernel's variable, the access becomes a fault, of which
/// arranged_fault() knows: compilers' hooks throw nothing, the accesses behind them may.
void before_host_access(const void* p);
/// Host code copies or sets bytes at `p` by a function. @throws KernelError
void before_host_copy(const void* p, const void* return_address);
/// For the signal's handler: the address that before_host_access() was given, if the fault is that access's; else null. What has
/// made it a fault is undone.
const void* arranged_fault();
/// What there is to say about it.
Diagnosis host_use_of_variable(const void* p);

}  // namespace interpreter
