/// @file
/// mbarriers as PTX has them, with order and scope, for inline PTX. Not inline, so that the return address names the place in the
/// kernel.
#pragma once

#include <cstdint>

namespace interpreter {

struct Arrival {
  unsigned count = 1;
  unsigned expected_bytes = 0;
  bool expects = false;          ///< whether it is an arrive.expect_tx
  bool relaxed = false;          ///< what the thread has done is not made known, but for what a fence covers
  bool release_cluster = false;  ///< the threads of other blocks see what the thread has written
  unsigned block = 0;            ///< rank in the cluster of the one that has the mbarrier, plus 1; 0: the own one
};
/// @return the parity of the phase that was under way
unsigned mbarrier_arrive_as(std::uint64_t* barrier, const Arrival& how);
/// expect_tx at the counterpart of `barrier` in the block `rank` of the cluster.
void mbarrier_expect_tx_cluster(std::uint64_t* barrier, unsigned rank, unsigned bytes);
/// Makes nothing known before the thread's next fence. @param blocking try_wait, else test_wait
bool mbarrier_wait_relaxed(std::uint64_t* barrier, unsigned parity, bool blocking);

}  // namespace interpreter
