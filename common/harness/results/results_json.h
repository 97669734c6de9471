/// @file
/// How measurements stand in files: for those who write files of their own.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/harness/results/results.h"

namespace harness {

/// As docs/results/README.md describes it. nlohmann's library finds these by their names.
void to_json(nlohmann::ordered_json& j, const Sample& s);
void to_json(nlohmann::ordered_json& j, const Ratio& r);  ///< likewise

}  // namespace harness
