/// @file
/// What ranks say to each other: Group on the host, Communicator for their GPUs' memory.
///
/// A rank is a process with a GPU of its own (tcp_group.h, nccl_communicator.h), or a thread that shares the interpreter with
/// others (loopback.h). All ranks make the same calls in the same order.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/harness/problem/dtype.h"

namespace tensor_parallel {

/// A rank died, hangs or wants something else than this one. The message says which, and what is known of the reason.
class Fault : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The ranks, on their hosts.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;  ///< from 0 to size() - 1
  virtual int size() const = 0;  ///< how many ranks

  /// What each rank says, by rank; waits for all of them. @throws Fault when one of them is gone, or silent for too long
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
  /// Tells the others that this rank ends, and why: they end too.
  virtual void fail(const std::string& why) = 0;
  /// @throws Fault when a rank has ended
  virtual void check() = 0;
  /// Seconds that a rank may be silent.
  virtual double patience() const = 0;

  /// @throws Fault on all ranks, unless all say the same
  void agree(const std::string& mine) {
    const std::vector<std::string> all = exchange(mine);
    for (std::size_t other = 1; other < all.size(); ++other)
      if (all[other] != all[0])
        throw Fault("the ranks disagree: rank 0 has " + all[0] + ", rank " + std::to_string(other) + " has " + all[other]);
  }
};

/// A stream, and the line that gave it something to do: for who records a plan (record.h). Calls take it as a stream.
struct OnStream {
  /// The line is that of whoever names the stream.
  OnStream(cudaStream_t its, int by = __builtin_LINE()) : stream(its), line(by) {}
  operator cudaStream_t() const { return stream; }  ///< the stream alone
  cudaStream_t stream;                              ///< where it goes
  int line;                                         ///< of the call
};

/// Moves what lies in the ranks' GPUs. Calls return when the work is on `stream`, and the ranks make them in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual Group& group() = 0;            ///< whose ranks it connects
  int rank() { return group().rank(); }  ///< this one, from 0 on
  int size() { return group().size(); }  ///< how many ranks

  /// Memory that all_gather() and all_to_all() may use, with zeros in it. A call of all ranks, with the same size; it ends with the
  /// communicator. @throws std::bad_alloc, Fault
  virtual void* allocate(std::size_t bytes) = 0;

  /// Rank q's piece, of `bytes`, lies at all + q * bytes, on all ranks; before, each has its own there.
  virtual void all_gather(void* all, std::size_t bytes, OnStream stream) = 0;
  /// At received + q * bytes lies what rank q has at sent + rank() * bytes; a rank's own piece may be there or not.
  virtual void all_to_all(const void* sent, void* received, std::size_t bytes, OnStream stream) = 0;
  /// `mine` is the sum of what all ranks have at all + rank() * count.
  virtual void reduce_scatter(const void* all, void* mine, std::size_t count, harness::DType type, OnStream stream) = 0;
  /// `data` becomes the sum of all ranks' `data`.
  virtual void all_reduce(void* data, std::size_t count, harness::DType type, OnStream stream) = 0;

  /// Bytes that the others have sent to this rank so far; 0 where nobody counts.
  virtual std::size_t received() const { return 0; }

  /// Waits until `stream` has done all its work. @throws Fault when a rank has ended, or nothing has happened for too long
  virtual void wait(cudaStream_t stream) = 0;
};

}  // namespace tensor_parallel
