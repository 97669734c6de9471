/// @file
/// memset, memcpy and their like as functions that may throw. g++ includes it before a kernel's file (-include).
///
/// Host code that gives them device memory gets a KernelError, as from any other access. g++ knows the C library's functions by
/// their names and lets no exception leave them, so here they have other names in C++ and their own in machine code.
#pragma once

// All of the standard library that knows them by its own macros, or says __builtin_memmove (std::copy), comes first or sees them.
#include <cstring>

extern "C" {
void* course_memset(void* to, int byte, std::size_t bytes) asm("memset");
void* course_memcpy(void* to, const void* from, std::size_t bytes) asm("memcpy");
void* course_memmove(void* to, const void* from, std::size_t bytes) asm("memmove");
int course_memcmp(const void* a, const void* b, std::size_t bytes) asm("memcmp");
}
namespace std {
using ::course_memcmp, ::course_memcpy, ::course_memmove, ::course_memset;
}

#define memset course_memset
#define memcpy course_memcpy
#define memmove course_memmove
#define memcmp course_memcmp
// std::copy, std::fill and std::equal.
#define __builtin_memmove course_memmove
#define __builtin_memset course_memset
#define __builtin_memcmp course_memcmp
