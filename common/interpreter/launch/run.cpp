#include "common/interpreter/launch/run.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "common/interpreter/block/block.h"
#include "common/interpreter/launch/pooled_thread.h"
#include "common/interpreter/launch/signals.h"

namespace interpreter {
namespace {

using Clock = std::chrono::steady_clock;

// Bijection of [0, n) that looks random: affine steps modulo n.
std::uint64_t shuffled(std::uint64_t i, std::uint64_t n, std::uint64_t seed) {
  if (n < 2) return i;
  std::uint64_t step = (seed * 0x9e3779b97f4a7c15ull >> 20) % n | 1;
  const auto gcd = [](std::uint64_t a, std::uint64_t b) {
    while (b) a = std::exchange(b, a % b);
    return a;
  };
  while (gcd(step, n) != 1) ++step;
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(i) * step + seed) % n);
}

}  // namespace

bool Run::take_cluster(Slot& slot, std::uint64_t& number) {
  std::lock_guard lock(mutex_);
  slot.idle_rounds = 0, slot.hopeless = false;
  if (state_.failed || next_cluster_ == state_.clusters) return false;
  const std::uint64_t i = next_cluster_++;
  switch (state_.options.order) {
    case Order::kForward: number = i; break;
    case Order::kReverse: number = state_.clusters - 1 - i; break;
    case Order::kRandom: number = shuffled(i, state_.clusters, state_.options.seed); break;
  }
  return true;
}

void Run::start_slot() {
  Slot& slot = slots_.emplace_back();
  slot.run = this;
  ++running_, ++alive_;
  slot.may_run = true;
  std::vector<BlockContext*> blocks;
  for (unsigned rank = 0; rank < state_.cluster_size; ++rank) {
    PooledThread& thread = PooledThread::take();
    slot.threads.push_back({&thread, 0, thread.cpu_seconds()});
    blocks.push_back(&thread.block());
  }
  slot.cluster = std::make_unique<Cluster>(std::move(blocks));
  slot.threads[0].thread->start([this, &slot](Block&) { work(slot); });
}

void Run::work(Slot& slot) {
  Cluster& cluster = *slot.cluster;
  for (std::uint64_t number = 0; take_cluster(slot, number);) {
    cluster.begin(state_, number, [&](unsigned rank, std::uint64_t index) {
      slot.threads[rank].thread->block().begin(state_, index, cluster, rank);
    });
    for (unsigned rank = 1; rank < cluster.size(); ++rank)
      slot.threads[rank].thread->start([&slot](Block& block) { block.run(&Run::yield, &slot); });
    slot.threads[0].thread->block().run(&Run::yield, &slot);
    for (unsigned rank = 1; rank < cluster.size(); ++rank) slot.threads[rank].thread->wait();
    for (BlockContext* const block : cluster.blocks()) {
      block->waiting.stop_watching();
      if (!state_.failed) collect(*block);
    }
  }
  std::lock_guard lock(mutex_);
  for (BlockContext* const block : cluster.blocks()) block->counters.take([&](Pc pc, const Counters& c) { counters[pc] += c; });
  changes_of_ended_ += cluster.changes();
  slot.cluster.reset();
  --running_, --alive_;
  pass_turn();
  if (alive_ == 0 || state_.failed) all_done_.notify_all();
}

void Run::pass_turn() {
  if (running_ >= workers_ || waiting_.empty()) return;
  Slot* next = waiting_.front();
  waiting_.pop_front();
  ++running_;
  next->may_run = true;
  next->turn.notify_one();
}

std::uint64_t Run::changes() const {
  std::uint64_t sum = changes_of_ended_;
  for (const Slot& slot : slots_)
    if (slot.cluster) sum += slot.cluster->changes();
  return sum;
}

void Run::yield(void* slot) {
  Slot& self = *static_cast<Slot*>(slot);
  self.run->wait_for_others(self);
}

void Run::wait_for_others(Slot& slot) {
  // Rounds without any change by anybody after which the block's threads are watched.
  constexpr unsigned kSuspicious = 8;
  const std::chrono::duration<double> long_time(state_.options.hang_seconds / 4);
  std::unique_lock lock(mutex_);
  const std::vector<BlockContext*>& blocks = slot.cluster->blocks();
  const bool runs_for_long = std::any_of(blocks.begin(), blocks.end(), [](BlockContext* b) { return b->waiting.runs_for_long(); });
  const std::uint64_t now = changes();
  slot.idle_rounds = now == slot.seen_changes ? slot.idle_rounds + 1 : 0;
  slot.seen_changes = now;
  for (BlockContext* const block : blocks) {
    if (slot.idle_rounds == 0 && !runs_for_long)
      block->waiting.stop_watching();  // what a thread has seen before the change says nothing any more
    if (slot.idle_rounds >= kSuspicious || runs_for_long) block->waiting.watch();
  }
  slot.runs_for_long = runs_for_long;
  const bool was_hopeless = slot.hopeless;
  slot.hopeless = std::all_of(blocks.begin(), blocks.end(), [](BlockContext* b) { return b->waiting.nobody_moves_on(); });
  if (slot.hopeless && !was_hopeless) {
    slot.hopeless_since = Clock::now();
    slot.waits_for = who_waits_where(*slot.cluster);
  }

  // Only a block that runs shows how much static shared memory it has.
  for (BlockContext* const block : blocks) static_shared_bytes = std::max(static_shared_bytes, block->shared.static_bytes());
  const std::uint64_t held_by_gpu = std::min(
      resident_limit_, static_cast<std::uint64_t>(state_.gpu.multiprocessors) *
                           static_cast<unsigned>(resident_blocks_per_sm(state_.gpu, static_cast<int>(state_.threads),
                                                                        state_.launch.dynamic_shared_bytes + static_shared_bytes)));
  const bool more_blocks = next_cluster_ < state_.clusters && (alive_ + 1) * state_.cluster_size <= held_by_gpu;
  bool hopeless = slot.hopeless && !more_blocks;
  for (const Slot& other : slots_) {
    if (!other.cluster || !hopeless) continue;
    // Either all have gone round in circles since the last change, or for a long time, whatever changes.
    const bool since_last_change = !other.runs_for_long && other.seen_changes == now;
    hopeless = other.hopeless && (since_last_change || Clock::now() - other.hopeless_since > long_time);
  }
  if (hopeless && !state_.failed) {
    Diagnosis d;
    d.check = Check::kSynccheck;
    d.kernel = state_.kernel_name();
    const bool several = alive_ * state_.cluster_size > 1;
    const std::uint64_t not_started = (state_.clusters - next_cluster_) * state_.cluster_size;
    d.what = several ? "deadlock between blocks: " : "deadlock: ";
    int listed = 0;
    for (const Slot& other : slots_)
      if (other.cluster && listed++ < 4) d.what += (listed > 1 ? "; " : "") + other.waits_for;
    if (not_started)
      d.what += "; " + std::to_string(not_started) + " blocks have not started: the GPU holds " + std::to_string(held_by_gpu) +
                " of them at a time";
    d.expected = several || not_started
                     ? "blocks wait only for blocks that are resident together, and for something that happens"
                     : "threads wait only for what happens without them: who holds a lock does not wait for who wants it";
    for (BlockContext* const block : blocks)
      if (d.line == 0) block->waiting.name_a_poller(d);
    lock.unlock();
    state_.fail(std::move(d), slot.cluster->events);
    return;
  }
  if (state_.failed) return;
  if (more_blocks) {
    --running_, slot.may_run = false;
    waiting_.push_back(&slot);
    start_slot();
  } else if (!waiting_.empty()) {
    --running_, slot.may_run = false;
    waiting_.push_back(&slot);
    pass_turn();
  } else {  // the others run now, on other cores
    lock.unlock();
    std::this_thread::yield();
    return;
  }
  slot.turn.wait(lock, [&] { return slot.may_run; });
}

void Run::collect(BlockContext& block) {
  std::lock_guard lock(mutex_);
  static_shared_bytes = std::max(static_shared_bytes, block.shared.static_bytes());
  std::uint64_t mma_of_block = 0;
  for (const std::uint64_t of_warp : block.counters.mma_of_warp())
    mma_of_block += of_warp, most_mma_of_warp = std::max(most_mma_of_warp, of_warp);
  most_mma_of_block = std::max(most_mma_of_block, mma_of_block);
  block.overlap.end();
  if (!l2_) return;
  traces_[block.work.number] = block.l2_trace.take();
  const std::uint64_t wave = std::min(resident_limit_, state_.blocks - replayed_);
  for (std::uint64_t b = replayed_; b < replayed_ + wave; ++b)
    if (!traces_.contains(b)) return;
  std::vector<std::vector<std::uint64_t>> together;
  for (std::uint64_t b = replayed_; b < replayed_ + wave; ++b) together.push_back(std::move(traces_[b]));
  traces_.erase(traces_.begin(), traces_.lower_bound(replayed_ + wave));
  replayed_ += wave;
  l2_->replay(together);
}

void Run::tell_progress(double seconds) const {
  const std::uint64_t ended = next_cluster_ > alive_ ? next_cluster_ - alive_ : 0;
  const auto readable = [](double s) {
    const auto [divisor, unit] = s < 120 ? std::pair(1.0, "s") : s < 7200 ? std::pair(60.0, "min") : std::pair(3600.0, "h");
    char text[64];
    std::snprintf(text, sizeof text, "%.0f %s", s / divisor, unit);
    return std::string(text);
  };
  std::string more;
  if (ended > 0)
    more = "; at this rate, the rest takes " +
           readable(seconds * static_cast<double>(state_.clusters - ended) / static_cast<double>(ended));
  std::fprintf(stderr, "interpreter: the kernel %s has run for %s: %llu of %llu blocks have ended%s\n",
               state_.kernel_name().c_str(), readable(seconds).c_str(),
               static_cast<unsigned long long>(ended * state_.cluster_size), static_cast<unsigned long long>(state_.blocks),
               more.c_str());
}

// A thread that is stuck in a loop without memory accesses never comes back to the interpreter: it gets a signal.
void Run::watch(std::unique_lock<std::mutex>& lock) {
  const auto limit = std::chrono::duration<double>(state_.options.hang_seconds);
  const auto begin = Clock::now();
  double patience = state_.options.patience_seconds;
  bool shown = false;
  while (alive_ > 0) {
    const auto status =
        all_done_.wait_for(lock, std::min<std::chrono::duration<double>>(limit / 4, std::chrono::milliseconds(250)));
    if (state_.options.progress && status == std::cv_status::timeout && alive_ > 0) {
      state_.options.progress(static_cast<double>(next_cluster_ - alive_) / static_cast<double>(state_.clusters));
      shown = true;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds > patience && alive_ > 0 && !state_.failed) {
      tell_progress(seconds);
      patience = 2 * seconds;
    }
    if (state_.failed)  // wake those who wait for their turn, so that they see it
      while (!waiting_.empty()) {
        ++running_;
        waiting_.front()->may_run = true;
        waiting_.front()->turn.notify_one();
        waiting_.pop_front();
      }
    for (Slot& slot : slots_) {
      if (!slot.cluster) continue;
      for (Watched& watched : slot.threads) {
        const std::uint64_t progress = watched.thread->block().activity.progress();
        if (progress != watched.seen_progress || !slot.may_run) {
          watched.seen_progress = progress;
          watched.seen_at = watched.thread->cpu_seconds();
        } else if (watched.thread->cpu_seconds() - watched.seen_at > state_.options.hang_seconds) {
          watched.thread->signal(kHangSignal);
        }
      }
    }
  }
  if (shown) state_.options.progress(1);
}

void Run::execute() {
  std::unique_lock lock(mutex_);
  for (unsigned i = 0; i < std::min<std::uint64_t>(workers_, state_.clusters); ++i) start_slot();
  watch(lock);
  lock.unlock();
  for (Slot& slot : slots_)
    for (Watched& watched : slot.threads) watched.thread->wait_and_give_back();
}

}  // namespace interpreter
