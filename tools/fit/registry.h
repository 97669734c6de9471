/// @file
/// The model's constants, by name: fit.py makes variables of them that enter themselves here.
#pragma once

#include <map>
#include <string>

namespace fit {

inline std::map<std::string, double*>& registry() {
  static std::map<std::string, double*> all;
  return all;
}
struct Constant {
  Constant(const char* name, double& value) { registry()[name] = &value; }
};

}  // namespace fit
