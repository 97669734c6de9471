/// @file
/// CUDA's structs with members that are named as built-in variables, `config.gridDim`.
///
/// The built-in variables are macros, so tools/interpret/own_names.py replaces such names in a user's file. The compiler gets this
/// in front of all else, so that the members of CUDA's structs have these names there, too.
#pragma once

#define blockDim _BlockDi
#define gridDim _GridDi
#include <driver_types.h>
#undef blockDim
#undef gridDim
