#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>

#include "common/harness/program/text.h"
#include "steps/tensor_parallel/tcp_group.h"

using namespace tensor_parallel;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Processes, each of which writes one line.
class Processes {
 public:
  Processes(int ranks, double patience, const std::function<std::string(TcpGroup&)>& body) {
    static int port = 20000 + getpid() % 20000;
    ++port;
    for (int rank = 0; rank < ranks; ++rank) {
      int ends[2];
      REQUIRE(pipe(ends) == 0);
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        std::string said;
        try {
          TcpGroup group({rank, ranks, rank, "127.0.0.1", port}, patience);
          try {
            said = body(group);
          } catch (const std::exception& e) {
            group.fail(e.what());
            said = e.what();
          }
        } catch (const std::exception& e) {
          said = e.what();
        }
        if (write(ends[1], said.data(), said.size()) < 0) _exit(1);
        _exit(0);
      }
      close(ends[1]);
      children_.push_back(child), pipes_.push_back(ends[0]);
    }
  }
  pid_t operator[](std::size_t rank) const { return children_[rank]; }
  // What a rank said before it ended.
  std::string said(std::size_t rank) const {
    std::string text;
    char bytes[256];
    for (ssize_t got; (got = read(pipes_[rank], bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(got));
    return text;
  }
  ~Processes() {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      kill(children_[i], SIGKILL);
      waitpid(children_[i], nullptr, 0);
      close(pipes_[i]);
    }
  }

 private:
  std::vector<pid_t> children_;
  std::vector<int> pipes_;
};

}  // namespace

TEST_CASE("tensor_parallel: processes find each other, and get what all have said") {
  for (const int ranks : {1, 3}) {
    const Processes p(ranks, 20, [](TcpGroup& group) {
      std::string all;
      for (int i = 0; i < 100; ++i) {
        all.clear();
        for (const std::string& text : group.exchange(std::string(1000, 'x') + std::to_string(10 * i + group.rank())))
          all += text.substr(1000) + " ";
      }
      return all;
    });
    for (int rank = 0; rank < ranks; ++rank)
      CHECK(p.said(static_cast<std::size_t>(rank)) == (ranks == 1 ? "990 " : "990 991 992 "));
  }
}

TEST_CASE("tensor_parallel: a process that is killed, that stops, or that wants something else ends the others, with the reason") {
  const auto on_and_on = [](TcpGroup& group) -> std::string {
    for (;;) group.exchange(""), usleep(1000);
  };
  for (const std::size_t who : {0, 2}) {  // the first one, and another
    const Processes p(3, 20, on_and_on);
    usleep(300000);
    const double begin = now();
    kill(p[who], SIGKILL);
    // Or "rank 1 has ended: " before it, if that one was faster.
    CHECK(p.said(1).ends_with("rank " + std::to_string(who) + " has died"));
    CHECK(p.said(2 - who).ends_with("rank " + std::to_string(who) + " has died"));
    CHECK(now() - begin < 5);
  }
  {
    const Processes p(3, 1.5, on_and_on);
    usleep(300000);
    kill(p[2], SIGSTOP);
    CHECK(p.said(0).find("rank 2 hangs: ") != std::string::npos);
    CHECK(p.said(1).find("rank 2 hangs: ") != std::string::npos);
  }
  {
    const Processes p(2, 20, [](TcpGroup& group) -> std::string {
      group.agree(group.rank() == 0 ? "8 tokens" : "9 tokens");
      return "";
    });
    for (const std::size_t rank : {0, 1})
      CHECK(p.said(rank).ends_with("the ranks disagree: rank 0 has 8 tokens, rank 1 has 9 tokens"));
  }
  {  // it ends in an orderly way, and says why
    const Processes p(2, 20, [](TcpGroup& group) -> std::string {
      if (group.rank() == 1) throw std::runtime_error("no memory");
      group.exchange("");
      return "";
    });
    CHECK(p.said(0) == "rank 1 has ended: no memory");
  }
}

TEST_CASE("tensor_parallel: who a process is, it finds in its environment") {
  for (const char* const name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "PMIX_NAMESPACE", "SLURM_JOB_ID"})
    unsetenv(name);
  CHECK(!place_from_environment());
  setenv("OMPI_COMM_WORLD_RANK", "3", 1), setenv("OMPI_COMM_WORLD_SIZE", "4", 1), setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  setenv("PMIX_NAMESPACE", "prterun-host-17@1", 1);
  const Place mpi = place_from_environment().value();
  CHECK(mpi.rank == 3);
  CHECK(mpi.size == 4);
  CHECK(mpi.local_rank == 1);
  CHECK((mpi.port >= 20000 && mpi.port < 29000));
  setenv("RANK", "1", 1), setenv("WORLD_SIZE", "2", 1), setenv("MASTER_ADDR", "first", 1), setenv("MASTER_PORT", "1234", 1);
  const Place torchrun = place_from_environment().value();
  CHECK(torchrun.rank == 1);
  CHECK(torchrun.size == 2);
  CHECK(torchrun.address == "first");
  CHECK(torchrun.port == 1234);
  setenv("RANK", "2", 1);
  CHECK_THROWS_WITH_AS(place_from_environment(), "RANK=2: a number from 0 to 1 is needed", harness::BadInput);
}
