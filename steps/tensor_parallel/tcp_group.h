/// @file
/// Ranks that are processes, on one host or several: they find each other as PyTorch's and MPI's do, through environment variables.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "steps/tensor_parallel/communicator.h"

namespace tensor_parallel {

/// Which rank this process is, and where the first one listens.
struct Place {
  int rank = 0, size = 1;
  int local_rank = 0;  ///< among those of this host: the number of its GPU
  std::string address = "127.0.0.1";
  int port = 0;
};
/// Of RANK, WORLD_SIZE, LOCAL_RANK (torchrun, or run_ranks() below) or the variables of Open MPI, of others' mpiruns, of Slurm;
/// with MASTER_ADDR and MASTER_PORT, which default to this host and to a port that follows from the job. Nothing where there is
/// none.
/// @throws harness::BadInput for numbers that are none
std::optional<Place> place_from_environment();

/// Connected through the first rank, with two connections each: one for exchange(), and one on which every rank gives a sign of
/// life twice a second, and says how it ended.
class TcpGroup final : public Group {
 public:
  /// Waits for all ranks, not longer than `patience` seconds and 30. @throws Fault when some do not come
  TcpGroup(const Place& place, double patience);
  ~TcpGroup() override;
  TcpGroup(const TcpGroup&) = delete;

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }  ///< how many ranks
  std::vector<std::string> exchange(const std::string& mine) override;
  void fail(const std::string& why) override;
  void check() override;
  double patience() const override { return patience_; }

  /// Why the group has ended; empty while it lives.
  std::string failure() const;
  /// Called once, from another thread, when the group has ended: then this process should end too.
  void on_failure(std::function<void(const std::string&)> call);

 private:
  struct Peer {
    int data = -1, life = -1;
    double last_sign = 0;
    std::string unread;  // what came of an incomplete line
    bool said_goodbye = false;
  };
  void connect_to_first(double until);
  void accept_all(double until);
  void watch();
  void hear(int rank);
  void set_failure(const std::string& why, int but_not_to);
  void send_all(int socket, const std::string& message, int to);
  std::string receive_message(int socket, int from);
  void read_all(int socket, char* to, std::size_t bytes, int from);

  const Place place_;
  const double patience_;
  std::vector<Peer> peers_;  // by rank; the first has all others, the others the first
  mutable std::mutex mutex_;
  std::string failure_;
  std::function<void(const std::string&)> on_failure_;
  std::atomic<bool> ends_{false};
  std::thread watcher_;
};

/// Starts this program once for each rank, on this host, with `arguments` and the variables above, and waits for all of them. When
/// one fails, the others have `grace` seconds to end by themselves. None outlives this process.
/// @return 0 if all did, otherwise the exit code of the rank that failed first
int run_ranks(int ranks, char** arguments, double grace);

}  // namespace tensor_parallel
