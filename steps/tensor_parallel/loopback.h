/// @file
/// Ranks that are threads of one process, and share its GPU or the interpreter: for tests without a second GPU.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "steps/tensor_parallel/communicator.h"

namespace tensor_parallel {

/// Where the threads meet.
class Hub {
 public:
  /// @param patience seconds until a thread that does not come counts as hanging
  Hub(int size, double patience) : size_(size), patience_(patience), said_(static_cast<std::size_t>(size)) {}

  std::vector<std::string> exchange(int rank, const std::string& mine);  ///< as Group::exchange()
  void fail(const std::string& why);                                     ///< as Group::fail()
  void check();                                                          ///< as Group::check()
  int size() const { return size_; }                                     ///< how many ranks
  double patience() const { return patience_; }                          ///< in seconds

 private:
  void fail_locked(const std::string& why);
  void throw_if_failed() const;

  const int size_;
  const double patience_;
  std::mutex mutex_;
  std::condition_variable all_came_;
  std::vector<std::string> said_, before_;  // in this round, in the one that is complete
  std::vector<bool> came_ = std::vector<bool>(static_cast<std::size_t>(size_));
  int number_came_ = 0;
  unsigned long round_ = 0;
  std::string failure_;
};

/// Runs `body` once for each rank, in a thread of its own, and waits for all. @throws what the rank threw that failed first
void run_loopback(int ranks, double patience, const std::function<void(Communicator&)>& body);

}  // namespace tensor_parallel
