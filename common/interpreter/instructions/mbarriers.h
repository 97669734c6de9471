/// @file
/// mbarriers, for common/device/mbarrier.cuh. Not inline, so that the return address names the place in the kernel.
#pragma once

#include <cstdint>

namespace interpreter {

void mbarrier_init(std::uint64_t* barrier, unsigned arrivals);
void mbarrier_inval(std::uint64_t* barrier);
void mbarrier_arrive(std::uint64_t* barrier, unsigned count);
void mbarrier_expect_tx(std::uint64_t* barrier, unsigned bytes);
void mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes);
bool mbarrier_test_wait_parity(std::uint64_t* barrier, unsigned parity);
bool mbarrier_try_wait_parity(std::uint64_t* barrier, unsigned parity);
bool mbarrier_try_wait_parity_acquire_cluster(std::uint64_t* barrier, unsigned parity);
/// At the counterpart of `barrier` in the block `rank` of the cluster.
void mbarrier_arrive_cluster(std::uint64_t* barrier, unsigned rank, bool release_cluster);
/// The phase that is under way ends after the copies that the thread's cp.async have begun so far.
/// @param noinc then the thread arrives, as one of those of which init has said the number
void cp_async_mbarrier_arrive(std::uint64_t* barrier, bool noinc);
/// The phase that is under way ends after the copies that the thread has begun by cp_async_for_barrier().
void barrier_copies_complete_at(std::uint64_t* barrier);
void fence_mbarrier_init();
/// @param shared, global which memory it is for: without a name of one in the instruction, both
void fence_proxy_async(bool shared = true, bool global = false);

/// What cuda::barrier of a block does: in shared memory it is an mbarrier.
/// @{
void block_barrier_init(std::uint64_t* barrier, unsigned expected);  ///< where another one may have been, if nobody uses it
/// @return the parity of the phase that is under way
unsigned block_barrier_arrive(std::uint64_t* barrier, unsigned count);
void block_barrier_arrive_and_drop(std::uint64_t* barrier);
bool block_barrier_wait(std::uint64_t* barrier, unsigned parity, bool blocking);
/// @}

}  // namespace interpreter
