#include "steps/tensor_parallel/loopback.h"

#include <cstring>
#include <deque>
#include <exception>
#include <thread>

#include "common/device/device.cuh"

namespace tensor_parallel {

void Hub::fail_locked(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  all_came_.notify_all();
}

void Hub::throw_if_failed() const {
  if (!failure_.empty()) throw Fault(failure_);
}

void Hub::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  fail_locked(why);
}

void Hub::check() {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
}

std::vector<std::string> Hub::exchange(int rank, const std::string& mine) {
  std::unique_lock lock(mutex_);
  throw_if_failed();
  said_[static_cast<std::size_t>(rank)] = mine;
  came_[static_cast<std::size_t>(rank)] = true;
  if (++number_came_ == size_) {
    before_ = said_;
    came_.assign(came_.size(), false);
    number_came_ = 0;
    ++round_;
    all_came_.notify_all();
    return before_;  // the next round cannot be complete without this thread
  }
  const unsigned long round = round_;
  const auto is_over = [&] { return round_ != round || !failure_.empty(); };
  if (!all_came_.wait_for(lock, std::chrono::duration<double>(patience_), is_over)) {
    for (int other = 0; other < size_; ++other)
      if (!came_[static_cast<std::size_t>(other)])
        fail_locked("rank " + std::to_string(other) + " has not come for " + std::to_string(patience_) + " s");
  }
  if (round_ == round) throw_if_failed();
  return before_;
}

namespace {

class HubGroup final : public Group {
 public:
  HubGroup(Hub& hub, int rank) : hub_(hub), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return hub_.size(); }
  std::vector<std::string> exchange(const std::string& mine) override { return hub_.exchange(rank_, mine); }
  void fail(const std::string& why) override { hub_.fail("rank " + std::to_string(rank_) + " has ended: " + why); }
  void check() override { hub_.check(); }
  double patience() const override { return hub_.patience(); }

 private:
  Hub& hub_;
  const int rank_;
};

// Copies through the host: only there one rank's memory is another one's, and checked on both sides.
class Loopback final : public Communicator {
 public:
  Loopback(Hub& hub, int rank) : group_(hub, rank) {}
  Group& group() override { return group_; }

  void* allocate(std::size_t bytes) override {
    group_.agree("allocate of " + std::to_string(bytes) + " bytes");
    memory_.emplace_back(bytes, "rank " + std::to_string(rank()) + ", shared with others").fill(0);
    return memory_.back().data();
  }

  void all_gather(void* all, std::size_t bytes, OnStream stream) override {
    each_other("all_gather of " + std::to_string(bytes) + " bytes", all, stream, [&](int other, const unsigned char* theirs) {
      const std::size_t at = static_cast<std::size_t>(other) * bytes;
      device::detail::copy_in(static_cast<unsigned char*>(all) + at, fetch(theirs + at, bytes), bytes);
      received_ += bytes;
    });
  }

  void all_to_all(const void* sent, void* received, std::size_t bytes, OnStream stream) override {
    each_other("all_to_all of " + std::to_string(bytes) + " bytes", sent, stream, [&](int other, const unsigned char* theirs) {
      const void* const mine = fetch(theirs + static_cast<std::size_t>(rank()) * bytes, bytes);
      device::detail::copy_in(static_cast<unsigned char*>(received) + static_cast<std::size_t>(other) * bytes, mine, bytes);
      received_ += bytes;
    });
  }

  void reduce_scatter(const void* all, void* mine, std::size_t count, harness::DType type, OnStream stream) override {
    const std::size_t bytes = count * harness::bytes(type);
    sum("reduce_scatter of " + std::to_string(count) + " " + std::string(name(type)), all, static_cast<std::size_t>(rank()) * bytes,
        mine, count, type, stream);
  }

  void all_reduce(void* data, std::size_t count, harness::DType type, OnStream stream) override {
    sum("all_reduce of " + std::to_string(count) + " " + std::string(name(type)), data, 0, data, count, type, stream);
  }

  std::size_t received() const override { return received_; }

  void wait(cudaStream_t) override { device::synchronize(); }

 private:
  const void* fetch(const unsigned char* from, std::size_t bytes) {
    host_.resize(bytes);
    device::detail::copy_out(host_.data(), from, bytes);
    return host_.data();
  }

  // Meets the others, who say the same and show their memory; `visit` sees it; and nobody goes on before all have seen it.
  template <class Visit>
  void each_other(const std::string& what, const void* mine, cudaStream_t stream, const Visit& visit) {
    wait(stream);
    group_.agree(what);
    std::string address(sizeof mine, 0);
    std::memcpy(address.data(), &mine, sizeof mine);
    const std::vector<std::string> addresses = group_.exchange(address);
    for (int other = 0; other < size(); ++other) {
      const unsigned char* theirs = nullptr;
      std::memcpy(&theirs, addresses[static_cast<std::size_t>(other)].data(), sizeof theirs);
      if (other != rank()) visit(other, theirs);
    }
    group_.exchange("");
  }

  // In double, where the order of so few does not matter, and rounded once.
  void sum(const std::string& what, const void* mine, std::size_t at, void* to, std::size_t count, harness::DType type,
           cudaStream_t stream) {
    const std::size_t bytes = count * harness::bytes(type);
    std::vector<double> sums(count);
    const auto add = [&](const unsigned char* from) {
      const auto* const values = static_cast<const unsigned char*>(fetch(from + at, bytes));
      for (std::size_t i = 0; i < count; ++i) sums[i] += harness::load(type, values + i * harness::bytes(type));
    };
    add(static_cast<const unsigned char*>(mine));
    each_other(what, mine, stream, [&](int, const unsigned char* theirs) { add(theirs), received_ += bytes; });
    std::vector<unsigned char> rounded(bytes);
    for (std::size_t i = 0; i < count; ++i) harness::store(type, rounded.data() + i * harness::bytes(type), sums[i]);
    device::detail::copy_in(to, rounded.data(), bytes);
  }

  HubGroup group_;
  std::vector<device::Buffer<unsigned char>> memory_;
  std::vector<unsigned char> host_;
  std::size_t received_ = 0;
};

}  // namespace

void run_loopback(int ranks, double patience, const std::function<void(Communicator&)>& body) {
  Hub hub(ranks, patience);
  std::mutex mutex;
  std::exception_ptr first;
  std::deque<Loopback> communicators;  // until all threads have ended, for they copy from each other
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, &communicator = communicators.emplace_back(hub, rank)] {
      const auto keep = [&](const std::string& why) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        communicator.group().fail(why);
      };
      try {
        body(communicator);
        communicator.group().exchange("");  // nobody's memory ends while others may read it
      } catch (const std::exception& e) {
        keep(e.what());
      } catch (...) {
        keep("an exception");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace tensor_parallel
