// Functions of the C library in a program that is linked with --wrap=malloc and so on: the host's, and in kernels CUDA's, or what
// does for the interpreter what they are for. CUDA's library for C++ waits with nanosleep and sched_yield where it does not know of
// a GPU.
#include <sched.h>
#include <time.h>

#include <cstddef>

#include "common/interpreter/language/memory.h"

extern "C" {
void* __real_malloc(std::size_t);
void __real_free(void*);
void* __wrap_malloc(std::size_t bytes) {
  return interpreter::in_kernel() ? interpreter::allocate_in_kernel(bytes) : __real_malloc(bytes);
}
void __wrap_free(void* p) {
  if (interpreter::in_kernel())
    interpreter::release_in_kernel(p, __builtin_return_address(0));
  else
    __real_free(p);
}
int __real_nanosleep(const timespec*, timespec*);
int __wrap_nanosleep(const timespec* time, timespec* rest) {
  if (!interpreter::in_kernel()) return __real_nanosleep(time, rest);
  interpreter::sleep_hint();
  return 0;
}
// The host's counts microseconds of computing: a kernel that waits for a million clocks would wait for a second.
clock_t __real_clock();
clock_t __wrap_clock() { return interpreter::in_kernel() ? static_cast<clock_t>(interpreter::clock_ticks()) : __real_clock(); }
int __real_sched_yield();
int __wrap_sched_yield() {
  if (!interpreter::in_kernel()) return __real_sched_yield();
  interpreter::sleep_hint();
  return 0;
}
}
