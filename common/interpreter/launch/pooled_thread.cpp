#include "common/interpreter/launch/pooled_thread.h"

#include <time.h>

#include <thread>
#include <vector>

#include "common/interpreter/block/block.h"
#include "common/interpreter/launch/signals.h"

namespace interpreter {
namespace {

struct Pool {
  std::mutex mutex;
  std::vector<PooledThread*> idle;
};
Pool& pool() {
  static Pool& the_pool = *new Pool;
  return the_pool;
}

}  // namespace

PooledThread& PooledThread::take() {
  std::lock_guard lock(pool().mutex);
  if (pool().idle.empty()) return *new PooledThread;  // never destroyed: it may outlive main()
  PooledThread& thread = *pool().idle.back();
  pool().idle.pop_back();
  return thread;
}

PooledThread::PooledThread() {
  std::unique_lock lock(mutex_);
  std::thread([this] { loop(); }).detach();
  wake_.wait(lock, [&] { return block_ != nullptr; });
}

void PooledThread::loop() {
  const AlternateStack alternate_stack;
  Block block;  // here, for its __shared__ variables are this thread's
  std::unique_lock lock(mutex_);
  handle_ = pthread_self();
  block_ = &block;
  wake_.notify_all();
  for (;;) {
    wake_.wait(lock, [&] { return task_ != nullptr; });
    const auto task = task_;
    lock.unlock();
    task(block);
    lock.lock();
    task_ = nullptr;
    wake_.notify_all();
  }
}

void PooledThread::start(std::function<void(Block&)> task) {
  std::lock_guard lock(mutex_);
  task_ = std::move(task);
  wake_.notify_all();
}

void PooledThread::wait() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return !task_; });
}

void PooledThread::wait_and_give_back() {
  wait();
  std::lock_guard lock(pool().mutex);
  pool().idle.push_back(this);
}

double PooledThread::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  pthread_getcpuclockid(handle_, &clock);
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace interpreter
