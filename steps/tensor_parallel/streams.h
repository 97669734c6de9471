/// @file
/// The second stream of an overlapped block, and its events. On the interpreter a launch is over when it returns: there is nothing
/// to order, but a listener may want to know.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "common/device/device.cuh"
#include "steps/tensor_parallel/communicator.h"

namespace tensor_parallel {

#ifdef COURSE_ON_INTERPRETER

/// Who is told what a rank's streams wait for: record.h.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  virtual cudaStream_t communication() = 0;                     ///< as of Streams
  virtual void communication_after(const OnStream&) = 0;        ///< as of Streams
  virtual void record(int which) = 0;                           ///< as of Streams
  virtual void wait_for(int which, const OnStream& there) = 0;  ///< as of Streams
};
inline thread_local StreamListener* stream_listener = nullptr;  ///< of this thread's rank; null: nobody

class Streams {
 public:
  explicit Streams(int) {}
  cudaStream_t communication() const { return stream_listener ? stream_listener->communication() : nullptr; }
  void communication_after(const OnStream& stream) {
    if (stream_listener) stream_listener->communication_after(stream);
  }
  void record(int which) {
    if (stream_listener) stream_listener->record(which);
  }
  void wait_for(int which, const OnStream& stream) {
    if (stream_listener) stream_listener->wait_for(which, stream);
  }
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
