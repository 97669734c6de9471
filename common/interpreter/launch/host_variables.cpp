#include "common/interpreter/launch/host_variables.h"

#include <sys/mman.h>

#include <utility>

#include "common/interpreter/debug_info/declarations.h"
#include "common/interpreter/launch/signals.h"
#include "common/interpreter/memory/global_memory.h"
#include "common/interpreter/report/diagnosis.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

constinit Range watched_variables;

namespace {

// Dynamic initialisers of host variables run before this one, or find nothing that is a kernel's: CUDA allows those no initialiser
// that is code.
[[maybe_unused]] const bool watching = (watched_variables = variables(), true);

// In the thread's own storage: the page that is taken away may hold any variable of the program.
thread_local constinit const char* taken_page = nullptr;
thread_local constinit const void* awaited = nullptr;
thread_local constinit const Variable* harmless = nullptr;  // the last that was found so

bool within(const void* p, const Variable* v) { return v && p >= v->begin && p < v->begin + v->bytes; }

const Variable* kernels_variable(const void* p) {
  if (within(p, harmless)) return nullptr;
  const Variable* const v = variable_near(p);
  if (!within(p, v)) return nullptr;
  if (is_for_kernels_alone(*v)) return v;
  harmless = v;
  return nullptr;
}

}  // namespace

void before_host_access(const void* p) {
  if (current_block || taken_page || !kernels_variable(p)) return;
  install_handlers();
  taken_page = reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(p) / page_bytes() * page_bytes());
  awaited = p;
  mprotect(const_cast<char*>(taken_page), page_bytes(), PROT_NONE);
}

void before_host_copy(const void* p, const void* return_address) {
  if (current_block || !inside(p, watched_variables) || !kernels_variable(p)) return;
  if (!inside(return_address, image())) return;
  const Location where = user_location(to_pc(return_address));
  if (!where.line || is_plumbing(where.file)) return;  // the interpreter's own copies
  throw KernelError(host_use_of_variable(p));
}

const void* arranged_fault() {
  if (!taken_page) return nullptr;
  mprotect(const_cast<char*>(std::exchange(taken_page, nullptr)), page_bytes(), PROT_READ | PROT_WRITE);
  return std::exchange(awaited, nullptr);
}

Diagnosis host_use_of_variable(const void* p) {
  const Variable& v = *variable_near(p);
  const bool constant = inside(p, constant_memory());
  return of_host(
      Check::kMemcheck,
      "host code uses the " + std::string(constant ? "__constant__" : "__device__") + " variable " + v.name + " (byte " +
          std::to_string(static_cast<const char*>(p) - v.begin) + " of " + std::to_string(v.bytes) + ")",
      std::string("in nvcc's host code this is another variable, which no kernel sees: copy_to_symbol and copy_from_symbol ") +
          "copy the kernel's (cudaMemcpyToSymbol, cudaMemcpyFromSymbol)" +
          (constant ? "" : "; __managed__ variables belong to both"),
      v.name);
}

}  // namespace interpreter
