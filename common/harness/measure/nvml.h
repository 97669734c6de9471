/// @file
/// What the driver says of the GPU's state (NVML).
#pragma once

#include <optional>
#include <string>

#include "common/harness/results/results.h"

namespace harness {

/// The NVIDIA driver's management library, loaded when it is there: containers without the "utility" capability have none, and then
/// everything is unknown.
class Nvml {
 public:
  /// @param pci_bus_id of the GPU, as cudaDeviceGetPCIBusId gives it
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;

  /// "580.65.06"; nothing where NVML does not say.
  std::optional<std::string> driver_version() const;
  /// Clocks, power, temperature and reasons for throttling, as they are now.
  Conditions conditions() const;
  /// Joules that the GPU has taken since its driver was loaded; nothing where NVML does not say.
  std::optional<double> joules() const;

 private:
  // What a function of NVML says of the GPU. @param which its arguments between the GPU and the result
  template <class Value, class... Which>
  std::optional<Value> ask(const char* function, Which... which) const;

  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace harness
