/// @file
/// The log of a block's accesses, kernel by kernel.
#pragma once

#include <cstdint>
#include <map>

#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/observe/control_flow.h"

namespace interpreter {

/// What is to be done with the instructions that are rebuilt.
class RequestSink {
 public:
  /// The warp has executed the instruction `request`.
  virtual void on_request(unsigned warp, const Request& request) = 0;

 protected:
  ~RequestSink() = default;
};

/// Logs what the lanes of the running warp do, and hands it on as the instructions of a warp.
class Recorder {
 public:
  explicit Recorder(RequestSink& sink) : sink_(sink) {}

  /// A block of `kernel` begins. @return the way on which each lane starts
  ControlFlow::Path* begin(const void* kernel) {
    log.clear();
    flow_ = &flows_[kernel];
    return flow_->entry();
  }
  /// The kernel's, as far as its threads have shown it.
  const ControlFlow& flow() const { return *flow_; }
  /// The way on into the basic block at `pc`.
  ControlFlow::Path* extend(ControlFlow::Path* path, Pc pc) { return flow_->extend(path, pc); }
  /// Hands on every instruction of the warp that is known completely; see AccessLog::drain().
  void drain(unsigned warp, std::uint32_t open, std::uint32_t held = 0);

  AccessLog log;  ///< of the warp that runs

 private:
  RequestSink& sink_;
  std::map<const void*, ControlFlow> flows_;  // by kernel
  ControlFlow* flow_ = nullptr;
};

}  // namespace interpreter
