/// @file
/// Communicator between GPUs: NCCL.
#pragma once

#include <memory>
#include <string>

#include "steps/tensor_parallel/tcp_group.h"

namespace tensor_parallel {

/// Who moves the bytes while products run.
struct Movers {
  enum class Kind {
    kAny,          ///< as NCCL chooses: for what runs alone
    kBlocks,       ///< at most `blocks` blocks of a kernel, each on an SM that products leave free
    kCopyEngines,  ///< no SM at all: all_gather and all_to_all of memory that allocate() gave; NCCL 2.28 or newer
  };
  Kind kind = Kind::kAny;
  int blocks = 0;
};
/// "nccl", "8 blocks", "copy engines".
std::string name(const Movers& movers);

/// A call of all ranks, with the current device of each. The NVLink switch's multicast stays off.
/// @throws Fault when a rank ends meanwhile, device::Error for what NCCL says
std::unique_ptr<Communicator> nccl_communicator(TcpGroup& group, const Movers& movers);

/// "2.28.9", of the library that is loaded.
std::string nccl_version();

}  // namespace tensor_parallel
