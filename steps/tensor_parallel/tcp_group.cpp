#include "steps/tensor_parallel/tcp_group.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "common/harness/program/text.h"

namespace tensor_parallel {
namespace {

using harness::BadInput, harness::formatted;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
std::string reason() { return std::strerror(errno); }
std::string name_of(int rank) { return "rank " + std::to_string(rank); }

constexpr double kSign = 0.5, kTick = 0.1;
constexpr double kToStart = 30;  // a process that starts loads CUDA first

int number(const char* name, const char* text, int least, int most) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno || end == text || *end || value < least || value > most)
    throw BadInput(formatted("%s=%.20s: a number from %d to %d is needed", name, text, least, most));
  return static_cast<int>(value);
}

void without_delay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Whether it can be read before `until`.
bool is_readable(int socket, double until) {
  pollfd p{socket, POLLIN, 0};
  const int milliseconds = std::max(0, static_cast<int>(1e3 * (until - now())));
  return poll(&p, 1, milliseconds) > 0;
}

}  // namespace

std::optional<Place> place_from_environment() {
  struct Names {
    const char *rank, *size, *local;
  };
  for (const Names& n :
       {Names{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
        Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
        Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}, Names{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}}) {
    const char *const rank = std::getenv(n.rank), *const size = std::getenv(n.size), *const local = std::getenv(n.local);
    if (!rank || !size) continue;
    Place place;
    place.size = number(n.size, size, 1, 4096);
    place.rank = number(n.rank, rank, 0, place.size - 1);
    place.local_rank = local ? number(n.local, local, 0, 4095) : place.rank;
    if (const char* const address = std::getenv("MASTER_ADDR")) place.address = address;
    place.port = 29400;
    for (const char* const job : {"PMIX_NAMESPACE", "SLURM_JOB_ID"})
      if (const char* const id = std::getenv(job)) place.port = 20000 + static_cast<int>(std::hash<std::string>{}(id) % 9000);
    if (const char* const port = std::getenv("MASTER_PORT")) place.port = number("MASTER_PORT", port, 1, 65535);
    return place;
  }
  return std::nullopt;
}

TcpGroup::TcpGroup(const Place& place, double patience)
    : place_(place), patience_(patience), peers_(static_cast<std::size_t>(place.size)) {
  signal(SIGPIPE, SIG_IGN);  // a peer that is gone shows in send()'s result
  const double until = now() + kToStart + patience;
  place.rank == 0 ? accept_all(until) : connect_to_first(until);
  for (Peer& peer : peers_) peer.last_sign = now();
  if (size() > 1) watcher_ = std::thread([this] { watch(); });
}

TcpGroup::~TcpGroup() {
  if (failure().empty())
    for (const Peer& peer : peers_)
      if (peer.life >= 0) send(peer.life, "bye\n", 4, MSG_NOSIGNAL);
  ends_ = true;
  if (watcher_.joinable()) watcher_.join();
  for (const Peer& peer : peers_) {
    if (peer.data >= 0) close(peer.data);
    if (peer.life >= 0) close(peer.life);
  }
}

void TcpGroup::accept_all(double until) {
  if (size() == 1) return;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(static_cast<std::uint16_t>(place_.port));
  const bool is_here = place_.address == "127.0.0.1" || place_.address == "localhost";
  address.sin_addr.s_addr = htonl(is_here ? INADDR_LOOPBACK : INADDR_ANY);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) || listen(listener, 2 * size())) {
    const std::string why = reason();
    close(listener);
    throw Fault("rank 0 cannot listen on port " + std::to_string(place_.port) + ": " + why +
                "; set MASTER_PORT to one that is free");
  }
  int missing = 2 * (size() - 1);
  while (missing > 0) {
    const int connection = is_readable(listener, until) ? accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
    if (connection < 0) {
      close(listener);
      std::string absent;
      for (int r = 1; r < size(); ++r)
        if (peers_[static_cast<std::size_t>(r)].life < 0) absent += (absent.empty() ? "" : ", ") + std::to_string(r);
      throw Fault("these ranks have not come: " + absent);
    }
    without_delay(connection);
    std::int32_t who[3];  // rank, size, whether it is for signs of life
    const bool complete = is_readable(connection, now() + 2) && recv(connection, who, sizeof who, MSG_WAITALL) == sizeof who;
    if (!complete || who[0] < 1 || who[0] >= size() || who[1] != size() || (who[2] != 0 && who[2] != 1)) {
      close(connection);  // somebody else's
      continue;
    }
    Peer& peer = peers_[static_cast<std::size_t>(who[0])];
    int& socket = who[2] ? peer.life : peer.data;
    if (socket >= 0) {
      close(connection);
      continue;
    }
    socket = connection;
    --missing;
  }
  close(listener);
}

void TcpGroup::connect_to_first(double until) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET, hints.ai_socktype = SOCK_STREAM;
  const std::string port = std::to_string(place_.port);
  if (getaddrinfo(place_.address.c_str(), port.c_str(), &hints, &found))
    throw Fault("MASTER_ADDR=" + place_.address + ": there is no such host");
  Peer& first = peers_[0];
  for (int* const to : {&first.data, &first.life}) {
    while (*to < 0) {
      const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(connection, found->ai_addr, found->ai_addrlen) == 0) {
        without_delay(connection);
        const std::int32_t who[3] = {place_.rank, place_.size, to == &first.life};
        send(connection, who, sizeof who, MSG_NOSIGNAL);
        *to = connection;
      } else {
        close(connection);
        if (now() > until) {
          freeaddrinfo(found);
          throw Fault("rank 0 does not listen on " + place_.address + ":" + port);
        }
        sleep_for(kTick);
      }
    }
  }
  freeaddrinfo(found);
}

// ------------------------------------------------------------------------------------------------------------ signs of life
void TcpGroup::watch() {
  double next_sign = 0;
  while (!ends_) {
    if (now() >= next_sign) {
      for (const Peer& peer : peers_)
        if (peer.life >= 0) send(peer.life, "here\n", 5, MSG_NOSIGNAL | MSG_DONTWAIT);
      next_sign = now() + kSign;
    }
    std::vector<pollfd> sockets;
    std::vector<int> ranks;
    for (int r = 0; r < size(); ++r)
      if (const Peer& peer = peers_[static_cast<std::size_t>(r)]; peer.life >= 0 && !peer.said_goodbye)
        sockets.push_back({peer.life, POLLIN, 0}), ranks.push_back(r);
    const double before = now();
    poll(sockets.data(), sockets.size(), static_cast<int>(1e3 * kTick));
    if (now() - before > 5 * kTick)  // this process was stopped itself: what the others said meanwhile is still to be heard
      for (Peer& peer : peers_) peer.last_sign = now();
    for (std::size_t i = 0; i < sockets.size(); ++i)
      if (sockets[i].revents) hear(ranks[i]);
    for (const int r : ranks) {
      const Peer& peer = peers_[static_cast<std::size_t>(r)];
      if (!peer.said_goodbye && now() - peer.last_sign > patience_)
        set_failure(name_of(r) + formatted(" hangs: no sign of life for %.1f s", now() - peer.last_sign), r);
    }
    if (!failure().empty()) return;
  }
}

void TcpGroup::hear(int r) {
  Peer& peer = peers_[static_cast<std::size_t>(r)];
  char text[512];
  const ssize_t got = recv(peer.life, text, sizeof text, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return set_failure(name_of(r) + " has died", r);
  peer.last_sign = now();
  peer.unread.append(text, static_cast<std::size_t>(got));
  for (std::size_t end; (end = peer.unread.find('\n')) != std::string::npos; peer.unread.erase(0, end + 1)) {
    const std::string line = peer.unread.substr(0, end);
    if (line == "bye") peer.said_goodbye = true;
    if (line.starts_with("failed ")) set_failure(line.substr(7), r);
  }
}

void TcpGroup::set_failure(const std::string& why, int but_not_to) {
  std::function<void(const std::string&)> call;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = why;
    call = on_failure_;
  }
  std::string line = "failed " + why;
  for (char& c : line)
    if (c == '\n') c = ' ';
  line += '\n';
  for (int r = 0; r < size(); ++r)
    if (const Peer& peer = peers_[static_cast<std::size_t>(r)]; r != but_not_to && peer.life >= 0)
      send(peer.life, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (call) call(why);
}

void TcpGroup::fail(const std::string& why) { set_failure(name_of(rank()) + " has ended: " + why, -1); }

std::string TcpGroup::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void TcpGroup::on_failure(std::function<void(const std::string&)> call) {
  const std::lock_guard lock(mutex_);
  on_failure_ = std::move(call);
}

void TcpGroup::check() {
  if (const std::string why = failure(); !why.empty()) throw Fault(why);
}

// ------------------------------------------------------------------------------------------------------------------ exchange
void TcpGroup::read_all(int socket, char* to, std::size_t bytes, int from) {
  const double until = now() + patience_;
  while (bytes > 0) {
    check();
    if (is_readable(socket, now() + kTick)) {
      const ssize_t got = recv(socket, to, bytes, 0);
      if (got <= 0) {
        sleep_for(5 * kTick);  // whoever watches may know more
        check();
        throw Fault(name_of(from) + " has died");
      }
      to += got, bytes -= static_cast<std::size_t>(got);
    } else if (now() > until) {
      throw Fault(name_of(from) + formatted(" hangs: it has not come for %.1f s", patience_));
    }
  }
}

void TcpGroup::send_all(int socket, const std::string& message, int to) {
  const auto size = static_cast<std::uint64_t>(message.size());
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += message;
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t got = send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (got <= 0) {
      sleep_for(5 * kTick);
      check();
      throw Fault(name_of(to) + " has died");
    }
    sent += static_cast<std::size_t>(got);
  }
}

std::string TcpGroup::receive_message(int socket, int from) {
  std::uint64_t size = 0;
  read_all(socket, reinterpret_cast<char*>(&size), sizeof size, from);
  std::string message(size, 0);
  read_all(socket, message.data(), message.size(), from);
  return message;
}

std::vector<std::string> TcpGroup::exchange(const std::string& mine) {
  check();
  std::vector<std::string> all(static_cast<std::size_t>(size()));
  all[static_cast<std::size_t>(rank())] = mine;
  if (rank() == 0) {
    for (int r = 1; r < size(); ++r)
      all[static_cast<std::size_t>(r)] = receive_message(peers_[static_cast<std::size_t>(r)].data, r);
    for (int r = 1; r < size(); ++r)
      for (const std::string& said : all) send_all(peers_[static_cast<std::size_t>(r)].data, said, r);
  } else {
    send_all(peers_[0].data, mine, 0);
    for (std::string& said : all) said = receive_message(peers_[0].data, 0);
  }
  return all;
}

// ----------------------------------------------------------------------------------------------------------------- processes
int run_ranks(int ranks, char** arguments, double grace) {
  // A port that is free now; who takes it meanwhile is told of by rank 0.
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) ||
      getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length))
    throw std::runtime_error("no port of this host is free: " + reason());
  close(probe);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child < 0) {
      for (const pid_t c : children) kill(c, SIGKILL);
      throw std::runtime_error("cannot start rank " + std::to_string(r) + ": " + reason());
    }
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      setenv("RANK", std::to_string(r).c_str(), 1);
      setenv("LOCAL_RANK", std::to_string(r).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
      setenv("MASTER_ADDR", "127.0.0.1", 1);
      setenv("MASTER_PORT", std::to_string(ntohs(address.sin_port)).c_str(), 1);
      execv("/proc/self/exe", arguments);
      std::fprintf(stderr, "cannot start %s: %s\n", arguments[0], std::strerror(errno));
      _exit(1);
    }
    children.push_back(child);
  }
  int result = 0;
  double deadline = 0;
  for (std::size_t left = children.size(); left > 0;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, result ? WNOHANG : 0);
    if (ended > 0) {
      --left;
      for (pid_t& child : children)
        if (child == ended) child = 0;
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code && !result) result = code, deadline = now() + grace;
    } else if (result && now() > deadline) {
      for (const pid_t child : children)
        if (child) kill(child, SIGKILL);
      deadline = now() + grace;
    } else {
      sleep_for(kTick);
    }
  }
  return result;
}

}  // namespace tensor_parallel
