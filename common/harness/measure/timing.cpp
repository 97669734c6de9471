#include "common/harness/measure/timing.h"

#include <chrono>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "common/device/device.cuh"
#include "common/harness/results/statistics.h"

namespace harness {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// All that a process times is launched on this stream: on an H200, cuBLAS's products of few rows take some per cent longer in
// graphs that were captured on any stream but the first one that the process works with. It stays until the process ends, as the
// context does. The default stream cannot be captured.
cudaStream_t stream_for_timing() {
  static const cudaStream_t stream = [] {
    cudaStream_t created = nullptr;
    DEVICE_CHECK(cudaStreamCreate(&created));
    return created;
  }();
  return stream;
}

// Lends launchers memory, and keeps what they give back for the next one that asks for as much: launches follow each other on one
// stream, so none needs it any more when another one gets it.
class KeptMemory final : public device::Lender {
 public:
  KeptMemory() : before_(std::exchange(device::lender(), this)) {}
  ~KeptMemory() {
    device::lender() = before_;
    for (const auto& [bytes, p] : free_) cudaFree(p);
  }
  KeptMemory(const KeptMemory&) = delete;
  void* allocate(std::size_t bytes) override {
    if (const auto kept = free_.find(bytes); kept != free_.end()) {
      void* const p = kept->second;
      free_.erase(kept);
      return p;
    }
    void* const p = device::detail::allocate_from_runtime(bytes);
    bytes_.emplace(p, bytes);
    return p;
  }
  void release(void* p) noexcept override {
    if (const auto lent = bytes_.find(p); lent != bytes_.end())
      free_.emplace(lent->second, p);
    else
      cudaFree(p);  // older than this
  }

 private:
  device::Lender* before_;
  std::unordered_map<void*, std::size_t> bytes_;
  std::multimap<std::size_t, void*> free_;
};

class Event {
 public:
  Event() { DEVICE_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  void record() { DEVICE_CHECK(cudaEventRecord(event_, device::stream())); }
  void wait() const { DEVICE_CHECK(cudaEventSynchronize(event_)); }
  double seconds_since(const Event& begin) const {
    wait();
    float milliseconds = 0;
    DEVICE_CHECK(cudaEventElapsedTime(&milliseconds, begin.event_, event_));
    return 1e-3 * milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class Graph {
 public:
  explicit Graph(const std::function<void()>& launches) {
    cudaGraph_t graph = nullptr;
    DEVICE_CHECK(cudaStreamBeginCapture(device::stream(), cudaStreamCaptureModeThreadLocal));
    try {
      launches();
    } catch (...) {
      cudaStreamEndCapture(device::stream(), &graph);
      throw;
    }
    DEVICE_CHECK(cudaStreamEndCapture(device::stream(), &graph));
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    DEVICE_CHECK(status);
  }
  Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  ~Graph() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }
  void launch() const { DEVICE_CHECK(cudaGraphLaunch(executable_, device::stream())); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

// Contestants that are warm, with graphs of those whose launches are short. While it lives, launches are on the stream for timing.
class Contest {
 public:
  Contest(const std::vector<Contestant>& contestants, const TimingPlan& plan) : contestants_(contestants), plan_(plan) {
    // Modules and handles load at the first launch; then the clocks rise. How many launches a run has is decided after that, or the
    // first contestant would seem slower than it is: with one launch of 0.9 ms in place of two, a round leaves more of its time,
    // and so of the power limit, to the others.
    for (const Contestant& c : contestants_) {
      c(turn());
      DEVICE_CHECK(cudaStreamSynchronize(device::stream()));
      shortest_launch(c, plan_.warm_up);
    }
    for (const Contestant& c : contestants_) plan_runs(shortest_launch(c, plan_.warm_up / 4));
    for (std::size_t who = 0; who < contestants_.size(); ++who) make_graphs(who);
  }
  Contest(const Contest&) = delete;

  std::size_t size() const { return contestants_.size(); }
  const std::vector<int>& launches() const { return launches_; }
  const std::vector<bool>& graph() const { return graph_; }

  /// Starts a contestant's launches of one round: a graph, or one launch.
  void run(std::size_t who, int round) {
    if (graph_[who])
      graphs_[who][static_cast<std::size_t>(round) % graphs_[who].size()].launch();
    else
      contestants_[who](plan_.cold ? turn() : round % plan_.sets);  // cold, each launch finds another set
  }

 private:
  int turn() { return plan_.cold ? next_set_++ % plan_.sets : 0; }

  double shortest_launch(const Contestant& c, double seconds) {
    double shortest = 1e9;
    const auto start = Clock::now();
    do {
      begin_.record();
      c(turn());
      end_.record();
      shortest = std::min(shortest, end_.seconds_since(begin_));
    } while (seconds_since(start) < seconds);
    return shortest;
  }

  void plan_runs(double shortest) {
    const bool graph = plan_.graphs && shortest < plan_.of_graph;
    int launches = 1;
    if (graph) {
      launches = static_cast<int>(std::ceil(plan_.of_graph / std::max(shortest, 1e-6)));
      // Whole turns through the sets, so that each replay finds the caches as the one before left them.
      if (plan_.cold) launches = (launches + plan_.sets - 1) / plan_.sets * plan_.sets;
    }
    launches_.push_back(launches);
    graph_.push_back(graph);
  }

  // Of one set each, or one of all sets if the plan is cold.
  void make_graphs(std::size_t who) {
    graphs_.emplace_back();
    for (int set = 0; graph_[who] && set < (plan_.cold ? 1 : plan_.sets); ++set) {
      graphs_[who].emplace_back([&] {
        for (int i = 0; i < launches_[who]; ++i) contestants_[who](plan_.cold ? i % plan_.sets : set);
      });
    }
  }

  const device::StreamScope stream_{stream_for_timing()};
  KeptMemory memory_;
  Event begin_, end_;
  const std::vector<Contestant>& contestants_;
  const TimingPlan& plan_;
  int next_set_ = 0;
  std::vector<int> launches_;  // per round
  std::vector<bool> graph_;
  std::vector<std::vector<Graph>> graphs_;
};

// Runs a contestant without a pause until its time is over. Some run waits behind the one that is being executed, so that the GPU
// never has to wait.
class WithoutPause {
 public:
  WithoutPause(Contest& contest, std::size_t who) : contest_(contest), who_(who) { start(); }

  /// One more run has ended when this returns.
  void next() {
    start();
    ends_[(runs_ - 2) % 2].wait();
  }
  void finish() { ends_[(runs_ - 1) % 2].wait(); }
  int ended() const { return runs_ - 1; }  ///< after next()

 private:
  void start() {
    contest_.run(who_, runs_);
    ends_[runs_++ % 2].record();
  }
  Contest& contest_;
  std::size_t who_;
  Event ends_[2];
  int runs_ = 0;
};

// The GPU's counter of energy, read where it changes, for it stands still for up to a tenth of a second.
struct Reading {
  double joules;
  Clock::time_point time;
  int runs;  // that have ended
};
Reading next_reading(WithoutPause& runs, const std::function<double()>& joules) {
  constexpr double kPatienceSeconds = 2;
  const double before = joules();
  for (const auto start = Clock::now(); seconds_since(start) < kPatienceSeconds;) {
    runs.next();
    if (const double now = joules(); now != before) return {now, Clock::now(), runs.ended()};
  }
  throw device::Error("the GPU's counter of energy stands still; measure without --energy");
}

// Of a launch, while a contestant runs for `seconds` or a little more.
Energy energy_alone(Contest& contest, std::size_t who, double seconds, const std::function<double()>& joules) {
  constexpr double kSettleSeconds = 0.2;  // then clocks and power have found each other
  WithoutPause runs(contest, who);
  for (const auto start = Clock::now(); seconds_since(start) < kSettleSeconds;) runs.next();
  const Reading first = next_reading(runs, joules);
  while (seconds_since(first.time) < seconds) runs.next();
  const Reading last = next_reading(runs, joules);
  runs.finish();
  const double launches = static_cast<double>(last.runs - first.runs) * contest.launches()[who];
  return {(last.joules - first.joules) / launches, std::chrono::duration<double>(last.time - first.time).count() / launches};
}

}  // namespace

Sample Timings::sample(std::size_t i) const {
  const std::vector<double>& rounds = seconds[i];
  return {quantile(rounds, 0.5),           quantile(rounds, 0.2), quantile(rounds, 0.8),
          static_cast<int>(rounds.size()), launches[i],           graph[i]};
}

Ratio Timings::ratio(std::size_t i, std::size_t other) const {
  const std::vector<double> rounds = ratios(seconds[i], seconds[other]);
  if (rounds.empty()) return {};
  return {quantile(rounds, 0.5), quantile(rounds, 0.2), quantile(rounds, 0.8)};
}

Timings time_in_rounds(const std::vector<Contestant>& contestants, const TimingPlan& plan,
                       const std::function<void()>& while_running) {
  Contest contest(contestants, plan);
  Event begin, end;
  const std::size_t n = contest.size();
  Timings timings{std::vector<std::vector<double>>(n), contest.launches(), contest.graph()};
  const auto start = Clock::now();
  for (int round = 0; round < plan.max_rounds; ++round) {
    const bool last = round + 1 == plan.max_rounds || (round + 1 >= plan.min_rounds && seconds_since(start) > plan.seconds);
    // Forwards in even rounds, backwards in odd ones, each time beginning with another.
    const std::size_t stride = round % 2 ? n - 1 : 1;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t who = (static_cast<std::size_t>(round) + i * stride) % n;
      // Twice: then the caches are as they will be again and again, and the second run waits for the first. Where the GPU waits for
      // a graph, the graph begins late. Without graphs, what starting costs is what is asked for.
      if (plan.graphs) contest.run(who, round);
      begin.record();
      contest.run(who, round);
      end.record();
      if (last && i == 0 && while_running) while_running();
      timings.seconds[who].push_back(end.seconds_since(begin) / timings.launches[who]);
    }
    if (last) break;
  }
  return timings;
}

std::vector<Energy> measure_energy(const std::vector<Contestant>& contestants, const TimingPlan& plan,
                                   const std::function<double()>& joules) {
  // Every other turn goes backwards, for a warmer GPU takes more: nobody always comes first. Nothing is noted in the turn before
  // them: for some seconds after a pause, the GPU allows itself another power.
  constexpr int kTurns = 2;
  Contest contest(contestants, plan);
  std::vector<Energy> energies(contest.size());
  for (int turn = -1; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < contest.size(); ++i) {
      const std::size_t who = turn % 2 ? contest.size() - 1 - i : i;
      const Energy energy = energy_alone(contest, who, plan.seconds / kTurns, joules);
      if (turn < 0) continue;
      energies[who].joules += energy.joules / kTurns;
      energies[who].seconds += energy.seconds / kTurns;
    }
  }
  return energies;
}

}  // namespace harness
