// Output of a program that is linked with --wrap=printf and so on: the host's. A thread that runs in two worlds
// (checks/two_worlds.cpp) writes in the first one only.
#include <cstdarg>
#include <cstdio>

#include "common/interpreter/language/memory.h"

extern "C" {
int __wrap_vprintf(const char* format, va_list arguments) {
  return interpreter::is_tried_out() ? 0 : std::vfprintf(stdout, format, arguments);
}
int __wrap_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = __wrap_vprintf(format, arguments);
  va_end(arguments);
  return written;
}
// What compilers make of a printf.
int __wrap_puts(const char* line) { return interpreter::is_tried_out() ? 0 : std::fprintf(stdout, "%s\n", line); }
int __wrap_putchar(int character) { return interpreter::is_tried_out() ? character : std::fputc(character, stdout); }
}
