#include "common/harness/measure/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace harness {
namespace {

// The functions, types and numbers of nvml.h that are used here: the header is a package of its own, which not every CUDA toolkit
// comes with. NVML API Reference Guide, "System Queries" and "Device Queries". Each function returns 0 when it succeeded.
using Device = void*;
using Init = int();
using DeviceByBusId = int(const char* bus_id, Device*);
using DriverVersion = int(char* text, unsigned length);
using ClockInfo = int(Device, int clock, unsigned* megahertz);
using Power = int(Device, unsigned* milliwatts);
using Temperature = int(Device, int sensor, unsigned* celsius);
using TotalEnergy = int(Device, unsigned long long* millijoules);
using ThrottleReasons = int(Device, unsigned long long*);
constexpr int kClockSm = 1, kClockMemory = 2, kSensorGpu = 0;
constexpr std::pair<unsigned long long, const char*> kReasons[] = {
    {0x1, "idle"},
    {0x2, "application clocks"},
    {0x4, "software power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "software thermal slowdown"},
    {0x40, "hardware thermal slowdown"},
    {0x80, "hardware power brake"},
    {0x100, "display clocks"},
};

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

Nvml::Nvml(const std::string& pci_bus_id) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) return;
  const auto init = symbol<Init>(library_, "nvmlInit_v2");
  const auto find = symbol<DeviceByBusId>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (!init || !find || init() != 0 || find(pci_bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

Nvml::~Nvml() {
  if (!library_) return;
  if (const auto shutdown = symbol<Init>(library_, "nvmlShutdown")) shutdown();
  dlclose(library_);
}

std::optional<std::string> Nvml::driver_version() const {
  if (!device_) return std::nullopt;
  char text[80] = {};
  const auto get = symbol<DriverVersion>(library_, "nvmlSystemGetDriverVersion");
  if (!get || get(text, sizeof text) != 0) return std::nullopt;
  return text;
}

Conditions Nvml::conditions() const {
  Conditions c;
  if (!device_) return c;
  unsigned value = 0;
  if (const auto get = symbol<ClockInfo>(library_, "nvmlDeviceGetClockInfo")) {
    if (get(device_, kClockSm, &value) == 0) c.sm_hz = 1e6 * value;
    if (get(device_, kClockMemory, &value) == 0) c.memory_hz = 1e6 * value;
  }
  if (const auto get = symbol<Power>(library_, "nvmlDeviceGetPowerUsage"); get && get(device_, &value) == 0) c.power = 1e-3 * value;
  if (const auto get = symbol<Power>(library_, "nvmlDeviceGetEnforcedPowerLimit"); get && get(device_, &value) == 0)
    c.power_limit = 1e-3 * value;
  if (const auto get = symbol<Temperature>(library_, "nvmlDeviceGetTemperature"); get && get(device_, kSensorGpu, &value) == 0)
    c.temperature = value;
  unsigned long long bits = 0;
  if (const auto get = symbol<ThrottleReasons>(library_, "nvmlDeviceGetCurrentClocksThrottleReasons");
      get && get(device_, &bits) == 0)
    for (const auto& [bit, name] : kReasons)
      if (bits & bit) c.throttle.push_back(name);
  return c;
}

std::optional<double> Nvml::joules() const {
  if (!device_) return std::nullopt;
  unsigned long long millijoules = 0;
  const auto get = symbol<TotalEnergy>(library_, "nvmlDeviceGetTotalEnergyConsumption");
  if (!get || get(device_, &millijoules) != 0) return std::nullopt;
  return 1e-3 * static_cast<double>(millijoules);
}

}  // namespace harness
