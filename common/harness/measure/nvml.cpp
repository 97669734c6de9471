#include "common/harness/measure/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace harness {
namespace {

// The functions, types and numbers of nvml.h that are used here: the header is a package of its own, which not every CUDA toolkit
// comes with. NVML API Reference Guide, "System Queries" and "Device Queries". Each function returns 0 when it succeeded. What it
// says of a device in its last argument is unsigned (megahertz, milliwatts, degrees Celsius) or unsigned long long (millijoules).
using Device = void*;
using Init = int();
using DeviceByBusId = int(const char* bus_id, Device*);
using DriverVersion = int(char* text, unsigned length);
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

template <class Value>
std::optional<double> times(double unit, std::optional<Value> value) {
  return value ? std::optional(unit * static_cast<double>(*value)) : std::nullopt;
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

template <class Value, class... Which>
std::optional<Value> Nvml::ask(const char* function, Which... which) const {
  if (!device_) return std::nullopt;
  Value value{};
  const auto get = symbol<int(Device, Which..., Value*)>(library_, function);
  if (!get || get(device_, which..., &value) != 0) return std::nullopt;
  return value;
}

Conditions Nvml::conditions() const {
  Conditions c;
  c.sm_hz = times(1e6, ask<unsigned>("nvmlDeviceGetClockInfo", kClockSm));
  c.memory_hz = times(1e6, ask<unsigned>("nvmlDeviceGetClockInfo", kClockMemory));
  c.power = times(1e-3, ask<unsigned>("nvmlDeviceGetPowerUsage"));
  c.power_limit = times(1e-3, ask<unsigned>("nvmlDeviceGetEnforcedPowerLimit"));
  c.temperature = ask<unsigned>("nvmlDeviceGetTemperature", kSensorGpu);
  const auto reasons = ask<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons");
  for (const auto& [bit, name] : kReasons)
    if (reasons.value_or(0) & bit) c.throttle.push_back(name);
  return c;
}

std::optional<double> Nvml::joules() const { return times(1e-3, ask<unsigned long long>("nvmlDeviceGetTotalEnergyConsumption")); }

}  // namespace harness
