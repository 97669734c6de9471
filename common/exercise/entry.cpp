// The file that is judged, compiled as kernels are. Whoever compiles this says which file: -DCOURSE_EXERCISE="\"/path/gemm.cuh\"".
#ifdef COURSE_ON_INTERPRETER  // whose counters and checks need a hook at each access
#pragma GCC poison no_sanitize __no_sanitize__ no_sanitize_thread __no_sanitize_thread__ no_sanitize_address
#pragma GCC poison disable_sanitizer_instrumentation no_instrument_function __no_instrument_function__ asm __asm __asm__
#endif
#include COURSE_EXERCISE
