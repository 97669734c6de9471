/// @file
/// The second stream of an overlapped block, and its events. On the interpreter a launch is over when it returns: there is nothing
/// to order.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "common/device/device.cuh"

namespace tensor_parallel {

#ifdef COURSE_ON_INTERPRETER

class Streams {
 public:
  explicit Streams(int) {}
  cudaStream_t communication() const { return nullptr; }
  void communication_after(cudaStream_t) {}
  void record(int) {}
  void wait_for(int, cudaStream_t) {}
};

#else

/// The stream for communication has priority: its few blocks start before those of a product that are not on an SM yet.
class Streams {
 public:
  /// @param events that are kept at the same time
  explicit Streams(int events) : arrived_(static_cast<std::size_t>(events)) {
    int least = 0, greatest = 0;
    DEVICE_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    DEVICE_CHECK(cudaStreamCreateWithPriority(&communication_, cudaStreamNonBlocking, greatest));
    DEVICE_CHECK(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming));
    for (cudaEvent_t& event : arrived_) DEVICE_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  ~Streams() {
    for (const cudaEvent_t event : arrived_) cudaEventDestroy(event);
    cudaEventDestroy(ready_);
    cudaStreamDestroy(communication_);
  }
  Streams(const Streams&) = delete;

  /// The stream for communication.
  cudaStream_t communication() const { return communication_; }
  /// What comes on the stream for communication waits for all that is on `stream` now.
  void communication_after(cudaStream_t stream) {
    DEVICE_CHECK(cudaEventRecord(ready_, stream));
    DEVICE_CHECK(cudaStreamWaitEvent(communication_, ready_, 0));
  }
  /// Event number `which` is all that is on the stream for communication now.
  void record(int which) { DEVICE_CHECK(cudaEventRecord(arrived_[static_cast<std::size_t>(which)], communication_)); }
  /// What comes on `stream` waits for that event.
  void wait_for(int which, cudaStream_t stream) {
    DEVICE_CHECK(cudaStreamWaitEvent(stream, arrived_[static_cast<std::size_t>(which)], 0));
  }

 private:
  cudaStream_t communication_ = nullptr;
  cudaEvent_t ready_ = nullptr;
  std::vector<cudaEvent_t> arrived_;
};

#endif

}  // namespace tensor_parallel
