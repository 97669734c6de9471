// operator new and delete of a program: the host's, and in kernels those of device memory.
#include <cstdlib>
#include <new>

#include "common/interpreter/language/memory.h"

void* operator new(std::size_t bytes) {
  void* const p = interpreter::in_kernel() ? interpreter::allocate_in_kernel(bytes) : std::malloc(bytes ? bytes : 1);
  if (!p && !interpreter::in_kernel()) throw std::bad_alloc();  // CUDA's gives null
  return p;
}
namespace {
// An exception that leaves a kernel takes what it has allocated there to the host.
void release(void* p, const void* return_address) {
  if (interpreter::in_kernel() || interpreter::is_device_memory(p))
    interpreter::release_in_kernel(p, return_address);
  else
    std::free(p);
}
}  // namespace
void operator delete(void* p) noexcept { release(p, __builtin_return_address(0)); }
void operator delete(void* p, std::size_t) noexcept { release(p, __builtin_return_address(0)); }
