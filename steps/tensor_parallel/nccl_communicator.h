/// @file
/// Communicator between GPUs: NCCL.
#pragma once

#include <memory>
#include <string>

#include "steps/tensor_parallel/tcp_group.h"

namespace tensor_parallel {

/// Who moves the bytes.
enum class Movers {
  kAny,          ///< as NCCL chooses: for what runs alone
  kCopyEngines,  ///< no SM at all, so products run meanwhile: all_gather and all_to_all of memory that allocate() gave; NCCL 2.28
                 ///< or newer
};
/// "nccl", "copy engines".
std::string name(Movers movers);

/// A call of all ranks, with the current device of each. The NVLink switch's multicast stays off.
/// @throws Fault when a rank ends meanwhile, device::Error for what NCCL says
std::unique_ptr<Communicator> nccl_communicator(TcpGroup& group, Movers movers);

/// "2.28.9", of the library that is loaded.
std::string nccl_version();

}  // namespace tensor_parallel
