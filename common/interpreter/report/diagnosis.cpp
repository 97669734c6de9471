#include "common/interpreter/report/diagnosis.h"

#include <unwind.h>

#include <cstdio>
#include <vector>

#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/memory/global_memory.h"

namespace interpreter {

std::string at(const Location& l) { return l.file.empty() ? "an unknown line" : l.file + ":" + std::to_string(l.line); }

std::string to_text(uint3 i) { return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")"; }

std::string hex(unsigned x) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", x);
  return text;
}

std::vector<const void*> return_addresses() {
  std::vector<const void*> addresses;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* addresses) {
        int interrupted = 0;  // by a signal: the address is that of the instruction itself
        const auto address = static_cast<std::uintptr_t>(_Unwind_GetIPInfo(context, &interrupted)) + (interrupted ? 1 : 0);
        static_cast<std::vector<const void*>*>(addresses)->push_back(reinterpret_cast<const void*>(address));
        return _URC_NO_REASON;
      },
      &addresses);
  return addresses;
}

Location first_line_of_user(const std::vector<const void*>& addresses) {
  Location plumbing;
  for (const void* address : addresses) {
    if (!inside(address, image())) continue;
    const Location where = user_location(to_pc(address));
    if (where.line && !is_plumbing(where.file)) return where;
    if (!plumbing.line) plumbing = where;
  }
  return plumbing;
}

Location host_line() { return first_line_of_user(return_addresses()); }

void fail_outside_of_launches() {
  const std::vector<const void*> stack = return_addresses();
  Diagnosis d;
  d.check = Check::kLaunch;
  d.what = "host code calls what only kernels may call";
  d.expected = "built-in variables, barriers and their like are for kernels, and kernels are started by a launch";
  Location where = first_line_of_user(stack);
  for (std::size_t i = 0; i + 1 < stack.size(); ++i) {
    if (!kernel_bound(function_begin(stack[i]))) continue;
    d.kernel = function_name(stack[i]);
    d.what = "the kernel " + d.kernel + " is called as a function";
    d.expected = "a kernel is started by a launch";
    where = user_location(to_pc(stack[i + 1]));
    break;
  }
  d.file = where.file, d.line = where.line;
  throw KernelError(d);
}

Diagnosis of_host(Check check, std::string what, std::string expected, std::string variable) {
  const Location where = host_line();
  Diagnosis d;
  d.check = check, d.what = std::move(what), d.expected = std::move(expected), d.variable = std::move(variable);
  d.file = where.file, d.line = where.line;
  return d;
}

Diagnosis host_access(const void* p) {
  const GlobalMemory::Allocation a = GlobalMemory::instance().nearest(p);
  std::string what = "host code accesses device memory";
  if (a.begin)
    what += ": " + a.label + " (byte " + std::to_string(static_cast<const char*>(p) - a.begin) + " of " + std::to_string(a.bytes) +
            (a.released ? "), which has been released" : ")");
  return of_host(Check::kMemcheck, what,
                 "the host copies device memory, by device::Buffer or cudaMemcpy; on a GPU this is a segmentation fault", a.label);
}

}  // namespace interpreter
