/// @file
/// What tools/interpret includes in place of a library's header that the interpreter does not have: as long as a program uses
/// nothing of the library, what such headers include themselves is all that it may need.
#pragma once

#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>
