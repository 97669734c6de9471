/// @file
/// In the place of CUDA's header of this name, which would take the file of primitives beside itself. Its classes, of
/// nvcuda::experimental, are refused.
#pragma once

#include "common/interpreter/include/cuda_pipeline_primitives.h"
