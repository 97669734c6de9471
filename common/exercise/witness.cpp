#include "common/exercise/witness.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace exercise {
namespace {

constexpr int kChannel = 3;     // of the witness
constexpr int kEndedEarly = 3;  // an exit code that no verdict has
constexpr std::size_t kMostOfFrame = 1 << 16;
constexpr std::uint64_t kMostOfText = 1 << 24;
enum class End : unsigned char { kReturned, kNoMemory, kError, kOther };

enum class Role { kAlone, kWitness, kJudge };
Role role = Role::kAlone;
bool looks = false;
int channel = -1;
pid_t other = 0;  // the judge's witness, while there is one

// What was said and not sent yet, or heard and not used yet. It goes in frames: the length, then so many bytes. After each the
// witness waits for a byte, which the judge sends when it has used all of it and wants more: one of the two runs at a time.
std::vector<unsigned char> frame;
std::size_t used = 0;

struct SomethingElse {};

// The witness has ended, and the test has not. A signal that has ended it ends this process, too, so that who looks at it sees the
// same; but no exit code of the answer's becomes that of a verdict.
[[noreturn]] void end_as_witness() {
  int status = 0;
  for (int i = 0; i < 1000 && waitpid(other, &status, WNOHANG) == 0; ++i) usleep(1000);
  if (kill(other, SIGKILL) == 0) waitpid(other, &status, 0);  // it has closed the channel alone
  std::fflush(stdout);
  if (WIFSIGNALED(status)) {
    std::signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  std::_Exit(kEndedEarly);
}

[[noreturn]] void refuse() {
  throw std::runtime_error(
      "What the answer's process says of itself makes no sense: something in this file writes to memory that is not its own.");
}

bool receive(void* data, std::size_t bytes) {
  auto* at = static_cast<unsigned char*>(data);
  while (bytes > 0) {
    const ssize_t got = read(channel, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool transmit(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(channel, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent, bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

void next_frame() {
  const char more = 1;
  std::uint32_t bytes = 0;
  if (!frame.empty() && !transmit(&more, 1)) end_as_witness();
  if (!receive(&bytes, sizeof bytes)) end_as_witness();
  if (bytes == 0 || bytes > kMostOfFrame) refuse();
  frame.resize(bytes), used = 0;
  if (!receive(frame.data(), bytes)) end_as_witness();
}

void send_frame() {
  std::fflush(stdout);  // what the answer has printed comes before what the judge says of it
  char more = 0;
  const auto bytes = static_cast<std::uint32_t>(frame.size());
  if (!transmit(&bytes, sizeof bytes) || !transmit(frame.data(), bytes) || !receive(&more, 1)) std::_Exit(0);  // it is judged
  frame.clear();
}

}  // namespace

bool is_witness() { return role == Role::kWitness; }
bool is_judge() { return role == Role::kJudge; }

void call_witness(const std::string& program, const std::string& file, const std::string& seed) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
    throw std::runtime_error("there is no socket to hear the answer's process");
  prctl(PR_SET_DUMPABLE, 0);  // the answer's process may not look into this one
  std::fflush(stdout);
  const pid_t judge = getpid();
  other = fork();
  if (other < 0) throw std::runtime_error(std::string("no process can be started for the answer: ") + std::strerror(errno));
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nothing = open("/dev/null", O_RDONLY);  // the word is the judge's
    if (getppid() == judge && nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO && dup2(ends[1], kChannel) == kChannel &&
        fcntl(kChannel, F_SETFD, 0) == 0)
      execl(program.c_str(), program.c_str(), file.c_str(), "", "", "", seed.c_str(), "-", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  channel = ends[0], role = Role::kJudge;
}

void dismiss_witness() {
  if (other == 0) return;
  kill(other, SIGKILL);
  while (waitpid(other, nullptr, 0) < 0 && errno == EINTR) {
  }
  other = 0;
}

void become_witness() { channel = kChannel, role = Role::kWitness; }

void end_testimony() {
  looks = false;
  witness::meet();
  std::fflush(stdout);
  std::_Exit(0);
}

namespace witness {

Looking::Looking() { looks = true; }
Looking::~Looking() { looks = false; }
bool is_looking() { return looks; }

void meet() {
  if (role == Role::kWitness && !looks && !frame.empty()) send_frame();
}

void say_bytes(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const std::size_t some = std::min(bytes, kMostOfFrame - frame.size());
    frame.insert(frame.end(), at, at + some);
    at += some, bytes -= some;
    if (frame.size() == kMostOfFrame) send_frame();
  }
}

void hear_bytes(void* data, std::size_t bytes) {
  auto* at = static_cast<unsigned char*>(data);
  while (bytes > 0) {
    if (used == frame.size()) next_frame();
    const std::size_t some = std::min(bytes, frame.size() - used);
    std::memcpy(at, frame.data() + used, some);
    at += some, bytes -= some, used += some;
  }
}

void hear(bool& x) {
  unsigned char byte = 0;
  hear_bytes(&byte, 1);
  x = byte & 1;
}

void say(const std::string& text) {
  say(std::uint64_t{text.size()});
  say_bytes(text.data(), text.size());
}
void hear(std::string& text) {
  std::uint64_t length = 0;
  hear(length);
  if (length > kMostOfText) refuse();
  text.resize(static_cast<std::size_t>(length));
  hear_bytes(text.data(), text.size());
}

void say(const interpreter::LineProfile& x) { say(x.file), say(x.line), say(x.counters); }
void hear(interpreter::LineProfile& x) { hear(x.file), hear(x.line), hear(x.counters); }

namespace {
template <class Launch, class Use>
void each_field(Launch& x, const Use& use) {
  use(x.kernel), use(x.grid), use(x.block), use(x.dynamic_shared_bytes), use(x.static_shared_bytes), use(x.dependent), use(x.total);
  use(x.most_mma_of_block), use(x.most_mma_of_warp), use(x.lines), use(x.notes);
}
}  // namespace

void say(const interpreter::KernelProfile& launch) {
  each_field(launch, [](const auto& field) { say(field); });
}
void hear(interpreter::KernelProfile& launch) {
  each_field(launch, [](auto& field) { hear(field); });
}

void say_returned() { say(End::kReturned); }
void say_thrown(std::exception_ptr what) {
  try {
    std::rethrow_exception(std::move(what));
  } catch (const std::bad_alloc&) {
    say(End::kNoMemory);
  } catch (const std::exception& error) {
    say(End::kError), say(std::string(error.what()));
  } catch (...) {
    say(End::kOther);
  }
}

void hear_end() {
  End end{};
  hear(end);
  if (end == End::kReturned) return;
  if (end == End::kNoMemory) throw std::bad_alloc();
  if (end == End::kOther) throw SomethingElse();
  if (end != End::kError) refuse();
  std::string text;
  hear(text);
  throw std::runtime_error(text);
}

}  // namespace witness
}  // namespace exercise
