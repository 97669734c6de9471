/// @file
/// cp.async, for common/device/ptx.cuh. Not inline, so that the return address names the place in the kernel.
#pragma once

namespace interpreter {

void cp_async(void* shared, const void* global, int size, int source_bytes);
void cp_async(void* shared, const void* global, int size);                  ///< an instruction of its own: it never fills
void cp_async_if(bool exists, void* shared, const void* global, int size);  ///< that one, with a predicate
void cp_async_for_barrier(void* shared, const void* global, int size);      ///< that one; its groups do not have it
void cp_async_commit_group();
void cp_async_wait_group(int groups);
void cp_async_wait_all();

}  // namespace interpreter
