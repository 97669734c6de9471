// The file that is judged, compiled as kernels are. Whoever compiles this says which file: -DCOURSE_EXERCISE="\"/path/gemm.cuh\"".
#ifdef COURSE_ON_INTERPRETER  // whose counters and checks need a hook at each access
#pragma GCC poison no_sanitize __no_sanitize__ no_sanitize_thread __no_sanitize_thread__ no_sanitize_address
#pragma GCC poison disable_sanitizer_instrumentation no_instrument_function __no_instrument_function__ asm __asm __asm__
// The compiler's own calls of these hooks are no words; who calls them in a kernel reads and writes for show. The last two lead to
// what other files define.
#pragma GCC poison __tsan_read1 __tsan_read2 __tsan_read4 __tsan_read8 __tsan_read16 __tsan_read_range
#pragma GCC poison __tsan_write1 __tsan_write2 __tsan_write4 __tsan_write8 __tsan_write16 __tsan_write_range
#pragma GCC poison __tsan_volatile_read1 __tsan_volatile_read2 __tsan_volatile_read4 __tsan_volatile_read8 __tsan_volatile_read16
#pragma GCC poison __tsan_volatile_write1 __tsan_volatile_write2 __tsan_volatile_write4 __tsan_volatile_write8 \
    __tsan_volatile_write16
#pragma GCC poison __sanitizer_cov_trace_pc __sanitizer_cov_trace_cmp4 __sanitizer_cov_trace_cmp8 __sanitizer_cov_trace_switch
#pragma GCC poison _GLOBAL_OFFSET_TABLE_ __dso_handle
#include "host_builtins.h"
// Their strings go to the assembler as they are, whatever lines these have.
#pragma GCC poison section __section__ weakref __weakref__ symver __symver__ ident sccs
#endif
#include COURSE_EXERCISE
