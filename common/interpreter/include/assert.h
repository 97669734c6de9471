/// @file
/// assert() for kernels, in the place of the C library's header of this name, which defines it anew each time it is included.
#include_next <assert.h>

#ifdef __cplusplus
namespace interpreter {
void assertion_failed(const char* condition, const char* file, int line);
}
#endif

// CUDA's assert stops the grid, not the process: a failed one is a report like any other.
#undef assert
#ifdef NDEBUG
#define assert(condition) (static_cast<void>(0))
#else
#define assert(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::interpreter::assertion_failed(#condition, __FILE__, __LINE__))
#endif
