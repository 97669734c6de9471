/// @file
/// See extension.h.
#pragma once

#include "extension.h"
