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

constexpr double kSampleSeconds = 1e-3;  // a graph lasts about that long

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
  double seconds_since(const Event& begin) const {
    DEVICE_CHECK(cudaEventSynchronize(event_));
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

}  // namespace

Sample Timings::sample(std::size_t i) const {
  return {quantile(seconds[i], 0.5),
          quantile(seconds[i], 0.2),
          quantile(seconds[i], 0.8),
          static_cast<int>(seconds[i].size()),
          launches[i],
          static_cast<bool>(graph[i])};
}

Ratio Timings::ratio(std::size_t i, std::size_t other) const {
  const std::vector<double> rounds = ratios(seconds[i], seconds[other]);
  if (rounds.empty()) return {};
  return {quantile(rounds, 0.5), quantile(rounds, 0.2), quantile(rounds, 0.8)};
}

Timings time_in_rounds(const std::vector<Contestant>& contestants, const TimingPlan& plan,
                       const std::function<void()>& while_running) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const device::StreamScope stream(stream_for_timing());
  KeptMemory memory;
  Event begin, end;
  int next_set = 0;
  const auto turn = [&] { return plan.cold ? next_set++ % plan.sets : 0; };

  const auto shortest_launch = [&](const Contestant& c, double seconds) {
    double shortest = 1e9;
    const auto start = Clock::now();
    do {
      begin.record();
      c.launch(turn());
      end.record();
      shortest = std::min(shortest, end.seconds_since(begin));
    } while (since(start) < seconds);
    return shortest;
  };
  // Modules and handles load at the first launch; then the clocks rise. How many launches a run has is decided after that, or the
  // first contestant would seem slower than it is: with one launch of 0.9 ms in place of two, a round leaves more of its time, and
  // so of the power limit, to the others.
  for (const Contestant& c : contestants) {
    c.launch(turn());
    DEVICE_CHECK(cudaStreamSynchronize(device::stream()));
    shortest_launch(c, plan.warm_up);
  }

  Timings timings;
  for (const Contestant& c : contestants) {
    const double shortest = shortest_launch(c, plan.warm_up / 4);
    const bool graph = plan.graphs && shortest < kSampleSeconds;
    int launches = 1;
    if (graph) {
      launches = static_cast<int>(std::ceil(kSampleSeconds / std::max(shortest, 1e-6)));
      // Whole turns through the sets, so that each replay finds the caches as the one before left them.
      if (plan.cold) launches = (launches + plan.sets - 1) / plan.sets * plan.sets;
    }
    timings.launches.push_back(launches);
    timings.graph.push_back(graph);
  }

  const std::size_t n = contestants.size();
  std::vector<std::vector<Graph>> graphs(n);  // of one set each, or one of all sets if the plan is cold
  for (std::size_t who = 0; who < n; ++who)
    for (int set = 0; timings.graph[who] && set < (plan.cold ? 1 : plan.sets); ++set) {
      graphs[who].emplace_back([&] {
        for (int i = 0; i < timings.launches[who]; ++i) contestants[who].launch(plan.cold ? i % plan.sets : set);
      });
    }

  timings.seconds.resize(n);
  const auto start = Clock::now();
  for (int round = 0; round < plan.max_rounds; ++round) {
    const bool last = round + 1 == plan.max_rounds || (round + 1 >= plan.min_rounds && since(start) > plan.seconds);
    // Forwards in even rounds, backwards in odd ones, each time beginning with another.
    const std::size_t stride = round % 2 ? n - 1 : 1;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t who = (static_cast<std::size_t>(round) + i * stride) % n;
      const auto run = [&] {
        if (timings.graph[who])
          graphs[who][static_cast<std::size_t>(round) % graphs[who].size()].launch();
        else
          contestants[who].launch(plan.cold ? turn() : round % plan.sets);  // cold, each launch finds another set
      };
      // Twice: then the caches are as they will be again and again, and the second run waits for the first. Where the GPU waits for
      // a graph, the graph begins late. Without graphs, what starting costs is what is asked for.
      if (plan.graphs) run();
      begin.record();
      run();
      end.record();
      if (last && i == 0 && while_running) while_running();
      timings.seconds[who].push_back(end.seconds_since(begin) / timings.launches[who]);
    }
    if (last) break;
  }
  return timings;
}

}  // namespace harness
