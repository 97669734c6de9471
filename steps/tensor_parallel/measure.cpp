// The program on GPUs: one rank's part of it.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/harness/measure/backend.h"
#include "common/harness/measure/baselines.h"
#include "common/harness/measure/ceilings.h"
#include "common/harness/program/tile.h"
#include "common/harness/results/results_json.h"
#include "common/harness/results/statistics.h"
#include "common/library/course_gemm.h"
#include "steps/tensor_parallel/block.h"
#include "steps/tensor_parallel/cost_model.h"
#include "steps/tensor_parallel/nccl_communicator.h"
#include "steps/tensor_parallel/program.h"

namespace tensor_parallel {
namespace {

using nlohmann::ordered_json;

constexpr int kMinRounds = 7;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string text_of(const std::vector<double>& values) {
  std::string text(values.size() * sizeof(double), 0);
  std::memcpy(text.data(), values.data(), text.size());
  return text;
}
std::vector<double> values_of(const std::string& text) {
  std::vector<double> values(text.size() / sizeof(double));
  std::memcpy(values.data(), text.data(), text.size());
  return values;
}
/// Element by element, the largest of all ranks' values.
std::vector<double> largest(Group& group, const std::vector<double>& mine) {
  std::vector<double> most = mine;
  for (const std::string& text : group.exchange(text_of(mine))) {
    const std::vector<double> theirs = values_of(text);
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], theirs.at(i));
  }
  return most;
}

struct Event {
  Event() { DEVICE_CHECK(cudaEventCreate(&event)); }
  ~Event() { cudaEventDestroy(event); }
  Event(const Event&) = delete;
  cudaEvent_t event = nullptr;
};

/// What is timed. All ranks have the same in the same order.
struct Contestant {
  std::string name;
  std::function<void(cudaStream_t)> run;
};

class Rank {
 public:
  Rank(TcpGroup& group, const Options& options) : group_(group), options_(options) {
    DEVICE_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }

  void open_communicators() {
    open(Movers::kAny);
    try {
      open(Movers::kCopyEngines);
      communicators_.back().communicator->allocate(1);
      has_copy_engines_ = true;
    } catch (const device::Error& e) {
      say(std::string("without copy engines: ") + e.what());
    }
  }
  void close_communicators() { communicators_.clear(); }

  void soak() {
    const Shape shape = options_.shapes.front();
    Communicator& c = communicator(has_copy_engines_ ? "copy engines" : "nccl");
    Weights<__half> weights(shape, share(shape.hidden, kHiddenUnit, c.rank(), c.size()));
    weights.fill_with(reals(shape), stream_);
    FeedForward<__half> block(c, shape, has_copy_engines_ ? Plan{true, 2} : Plan{}, weights.W1(), weights.W2(), 1,
                              one_call<__half>());
    fill_input(block, reals(shape).X, c.rank(), stream_);
    tell_others([&] {
      say("soak begins");
      const double until = now() + options_.soak;
      for (bool goes_on = true; goes_on;) {
        for (int i = 0; i < 20; ++i) block.run(stream_);
        c.wait(stream_);
        goes_on = largest(group_, {now() < until ? 1.0 : 0.0})[0] > 0;
      }
      say("soak ends");
    });
  }

  ordered_json measure_link() {
    ordered_json link = ordered_json::array();
    for (const auto& c : communicators_) {
      if (c.name == "copy engines" && !has_copy_engines_) continue;
      constexpr std::size_t kMost = 64 << 20;
      const auto size = static_cast<std::size_t>(c.communicator->size());
      void* const from = c.communicator->allocate(size * kMost);
      void* const to = c.communicator->allocate(size * kMost);
      tell_others([&] {
        for (std::size_t bytes = 32 << 10; bytes <= kMost; bytes *= 8) {
          const std::vector<Contestant> both = {
              {"all_gather", [&](cudaStream_t s) { c.communicator->all_gather(from, bytes, s); }},
              {"all_to_all", [&](cudaStream_t s) { c.communicator->all_to_all(from, to, bytes, s); }},
              {"reduce_scatter",
               [&](cudaStream_t s) { c.communicator->reduce_scatter(from, to, bytes / 2, harness::DType::kF16, s); }}};
          const auto seconds = time(both, 0.05, 5, false);
          for (std::size_t i = 0; i < both.size(); ++i)
            link.push_back(
                {{"movers", c.name}, {"call", both[i].name}, {"bytes", bytes}, {"seconds", harness::quantile(seconds[i], 0.5)}});
        }
      });
    }
    nccl_ = link_of(link, "nccl");
    copy_engines_ = link_of(link, "copy engines");
    return link;
  }

  template <class T>
  ordered_json measure(const Shape& shape) {
    Communicator& nccl = communicator("nccl");
    const int me = nccl.rank(), ranks = nccl.size();
    const auto type = harness::kDType<T>;
    Weights<T> weights(shape, share(shape.hidden, kHiddenUnit, me, ranks)), whole(shape, {0, shape.hidden});
    device::Buffer<T> x(static_cast<std::size_t>(shape.tokens * shape.model)),
        hidden(static_cast<std::size_t>(shape.tokens * shape.hidden)), y(static_cast<std::size_t>(shape.tokens * shape.model));
    const harness::Cublas cublas;

    std::vector<Contestant> contestants;
    struct Checked {
      std::string name;
      std::unique_ptr<FeedForward<T>> block;
      bool replicated;
    };
    std::vector<Checked> blocks;
    const auto add_one_gpu = [&](const std::string& name, const Product<T>& product) {
      contestants.push_back({name, [&, product](cudaStream_t stream) {
                               const auto h = row_major(hidden.data(), shape.tokens, shape.hidden);
                               product(row_major<const T>(x.data(), shape.tokens, shape.model), whole.W1(), h, 1, stream);
                               product(row_major<const T>(h.data, h.rows, h.cols), whole.W2(),
                                       row_major(y.data(), shape.tokens, shape.model), 1, stream);
                             }});
    };
    const auto add = [&](const std::string& name, Communicator& c, const Plan& plan, const Product<T>& product,
                         bool replicated = false) {
      blocks.push_back(
          {name, std::make_unique<FeedForward<T>>(c, shape, plan, weights.W1(), weights.W2(), 1, product), replicated});
      contestants.push_back({name, [block = blocks.back().block.get(), replicated](cudaStream_t stream) {
                               replicated ? block->run_replicated(stream) : block->run(stream);
                             }});
      return blocks.back().block.get();
    };
    const Product<T> ours = one_call<T>(),
                     theirs = [&cublas, type](Matrix<const T> A, Matrix<const T> B, Matrix<T> C, float, cudaStream_t stream) {
                       const harness::Operands operands{harness::untyped(A), harness::untyped(B), harness::untyped(C)};
                       const device::StreamScope on(stream);
                       for (const auto& algorithm : cublas.gemm_ex(operands, type, type)) algorithm(operands);
                     };
    add_one_gpu("one GPU, cublas", theirs);
    add_one_gpu("one GPU, one call", ours);
    FeedForward<T>* const plain_theirs = add("plain, cublas and nccl", nccl, {}, theirs);
    FeedForward<T>* const plain = add("plain", nccl, {}, ours);
    contestants.push_back({"products, cublas", [=](cudaStream_t stream) { plain_theirs->run_products(stream); }});
    contestants.push_back({"products, one call", [=](cudaStream_t stream) { plain->run_products(stream); }});
    const bool few = shape.tokens <= kFewTokens;
    if (few) {
      add("replicated", nccl, {}, ours, true);
    } else {
      for (const int chunks : {1, 2, 4})
        if (has_copy_engines_)
          add("overlapped, " + std::to_string(chunks) + ", copy engines", communicator("copy engines"), {true, chunks}, ours);
    }

    ordered_json result;
    tell_others([&] {
      // Integers: exact, and all blocks have the same bits, in all rows. Then reals, which are timed and verified afterwards.
      for (const bool exact : {true, false}) {
        const Data data = exact ? integers(shape) : reals(shape);
        weights.fill_with(data, stream_);
        whole.fill_with(data, stream_);
        fill(data.X, row_major(x.data(), shape.tokens, shape.model), 0, 0, stream_);
        for (const Checked& b : blocks)
          b.replicated ? fill(data.X, row_major(b.block->input().data, shape.tokens, shape.model), 0, 0, stream_)
                       : fill_input(*b.block, data.X, me, stream_);
        const Range mine = plain->places().mine(me);
        const std::vector<std::int64_t> rows = rows_to_check(mine);
        std::vector<std::int64_t> tokens = rows;
        for (std::int64_t& t : tokens) t += mine.begin;
        const Reference reference(shape, data, 1, ranks, type, exact, tokens);
        if (!exact) result = timed(shape, type, contestants, few);
        std::vector<std::uint16_t> first;
        for (const Checked& b : blocks) {
          b.replicated ? b.block->run_replicated(stream_) : b.block->run(stream_);
          nccl.wait(stream_);
          const Matrix<T> Y = b.replicated ? b.block->all_reduced() : b.block->output();
          std::vector<std::int64_t> at = b.replicated ? tokens : rows;
          if (const std::string wrong = reference.compare(fetch_rows(Y, at)); !wrong.empty())
            throw std::runtime_error(b.name + ": " + wrong);
          if (!exact || b.replicated || mine.size() == 0) continue;
          std::vector<std::uint16_t> all(static_cast<std::size_t>(mine.size() * shape.model));
          device::detail::copy_out(all.data(), Y.data, 2 * all.size());
          std::replace(all.begin(), all.end(), std::uint16_t{0x8000}, std::uint16_t{0});  // -0 is 0
          if (first.empty()) first = all;
          if (all != first)
            throw std::runtime_error(b.name + " has another Y than " + blocks.front().name + ", although all sums are exact");
        }
        group_.exchange("");
      }
    });
    return result;
  }

  // Lets the others know before memory is given back, which would wait for them.
  template <class Body>
  void tell_others(const Body& body) {
    try {
      body();
    } catch (const std::exception& e) {
      group_.fail(e.what());
      throw;
    }
  }

  void say(const std::string& text) const {
    if (group_.rank() == 0) std::printf("%s\n", text.c_str()), std::fflush(stdout);
  }

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Communicator> communicator;
  };
  void open(Movers movers) { communicators_.push_back({name(movers), nccl_communicator(group_, movers)}); }
  Communicator& communicator(const std::string& name) {
    for (const Named& c : communicators_)
      if (c.name == name) return *c.communicator;
    throw std::logic_error("no communicator " + name);
  }

  template <class T>
  static Product<T> one_call() {
    return [](Matrix<const T> A, Matrix<const T> B, Matrix<T> C, float slope, cudaStream_t stream) {
      gemm::run(A, B, C, gemm::LeakyRelu{slope}, stream);
    };
  }

  // Seconds of each contestant in each round, of the slowest rank. In a round each runs as often as takes some milliseconds; the
  // ranks begin together, after an all_reduce. As a graph, what is shorter than its launches.
  std::vector<std::vector<double>> time(const std::vector<Contestant>& contestants, double seconds, int min_rounds, bool graphs) {
    constexpr double kRun = 12e-3;
    Communicator& nccl = *communicators_.front().communicator;
    const device::Buffer<float> together(1);
    DEVICE_CHECK(cudaMemsetAsync(together.data(), 0, sizeof(float), stream_));
    Event begin, end;
    std::vector<cudaGraphExec_t> executables(contestants.size());
    const auto run_times = [&](std::size_t who, int times) {
      nccl.all_reduce(together.data(), 1, harness::DType::kF32, stream_);
      DEVICE_CHECK(cudaEventRecord(begin.event, stream_));
      for (int i = 0; i < times; ++i)
        executables[who] ? DEVICE_CHECK(cudaGraphLaunch(executables[who], stream_)) : contestants[who].run(stream_);
      DEVICE_CHECK(cudaEventRecord(end.event, stream_));
      nccl.wait(stream_);
      float milliseconds = 0;
      DEVICE_CHECK(cudaEventElapsedTime(&milliseconds, begin.event, end.event));
      return 1e-3 * milliseconds / times;
    };
    constexpr int kInGraph = 20;
    std::vector<int> times;
    for (std::size_t who = 0; who < contestants.size(); ++who) {
      run_times(who, 2);  // modules load, handles are made
      if (graphs) {
        cudaGraph_t graph = nullptr;
        DEVICE_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < kInGraph; ++i) contestants[who].run(stream_);
        DEVICE_CHECK(cudaStreamEndCapture(stream_, &graph));
        DEVICE_CHECK(cudaGraphInstantiate(&executables[who], graph, 0));
        cudaGraphDestroy(graph);
        run_times(who, 1);
      }
      const double once = largest(group_, {run_times(who, 3)})[0];
      times.push_back(std::clamp(static_cast<int>(std::ceil(kRun / once)), 1, 200));
    }
    std::vector<std::vector<double>> rounds(contestants.size());
    const double start = now();
    for (int round = 0;; ++round) {
      for (std::size_t i = 0; i < contestants.size(); ++i) {
        const std::size_t who = (i + static_cast<std::size_t>(round)) % contestants.size();
        rounds[who].push_back(run_times(who, times[who]) / (executables[who] ? kInGraph : 1));
      }
      const bool enough = round + 1 >= min_rounds && now() - start > seconds;
      if (largest(group_, {enough ? 1.0 : 0.0})[0] > 0) break;
    }
    for (const cudaGraphExec_t e : executables)
      if (e) cudaGraphExecDestroy(e);
    for (std::vector<double>& r : rounds) r = largest(group_, r);
    return rounds;
  }

  ordered_json timed(const Shape& shape, harness::DType type, const std::vector<Contestant>& contestants, bool graphs) {
    const auto rounds = time(contestants, options_.seconds, kMinRounds, graphs);
    const auto find = [&](const std::string& name) {
      for (std::size_t i = 0; i < contestants.size(); ++i)
        if (contestants[i].name == name) return rounds[i];
      throw std::logic_error(name);
    };
    const auto median = [](const std::vector<double>& v) { return harness::quantile(v, 0.5); };
    const std::vector<double> one = find("one GPU, cublas");
    const double sequence = median(find("plain, cublas and nccl")), products = median(find("products, cublas"));
    ordered_json result = {{"tokens", shape.tokens},        {"model", shape.model},
                           {"hidden", shape.hidden},        {"type", std::string(harness::name(type))},
                           {"ranks", group_.size()},        {"verified", true},
                           {"rounds", one.size()},          {"graph", graphs},
                           {"times", ordered_json::array()}};
    say(std::to_string(shape.tokens) + " x " + std::to_string(shape.model) + " x " + std::to_string(shape.hidden) + " " +
        std::string(harness::name(type)));
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const double seconds = median(rounds[i]);
      const double efficiency = median(harness::ratios(rounds[i], one)) / group_.size();
      result["times"].push_back(
          {{"name", contestants[i].name},
           {"seconds",
            {{"median", seconds}, {"q20", harness::quantile(rounds[i], 0.2)}, {"q80", harness::quantile(rounds[i], 0.8)}}},
           {"efficiency", efficiency},
           {"hidden", (sequence - seconds) / (sequence - products)}});
      say(harness::formatted("  %-34s %9.1f us  efficiency %.3f  hidden %4.0f %%", contestants[i].name.c_str(), 1e6 * seconds,
                             efficiency, 100 * (sequence - seconds) / (sequence - products)));
    }
    if (group_.size() == 1) return result;  // nothing is copied
    const Costs costs{median(find("products, one call")), nccl_, copy_engines_, graphs};
    const Prediction choice = CostModel(costs, shape, group_.size()).choose(graphs);
    result["chosen"] = {{"name", name(choice)}, {"predicted", choice.seconds}};
    say(harness::formatted("  the model chooses: %-15s %9.1f us", name(choice).c_str(), 1e6 * choice.seconds));
    return result;
  }

  TcpGroup& group_;
  const Options& options_;
  cudaStream_t stream_ = nullptr;
  std::vector<Named> communicators_;
  bool has_copy_engines_ = false;
  Link nccl_, copy_engines_;  // as measured
};

// Where ranks run, and how their GPUs are connected.
ordered_json topology(TcpGroup& group) {
  const harness::Machine machine = harness::this_machine();
  ordered_json ranks = ordered_json::array();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  int peers = 0, gpus = 0, mine_is = 0;
  DEVICE_CHECK(cudaGetDeviceCount(&gpus));
  DEVICE_CHECK(cudaGetDevice(&mine_is));
  for (int other = 0; other < gpus; ++other) {
    int can = 0;
    if (other != mine_is && cudaDeviceCanAccessPeer(&can, mine_is, other) == cudaSuccess) peers += can;
  }
  const ordered_json entry = {{"host", host},
                              {"gpu", machine.gpu},
                              {"uuid", machine.uuid.value_or("")},
                              {"driver", machine.driver.value_or("")},
                              {"peers", peers}};
  for (const std::string& text : group.exchange(entry.dump())) ranks.push_back(ordered_json::parse(text));
  return ranks;
}

}  // namespace

int run_rank(const Place& place, const Options& options) {
  int gpus = 0;
  DEVICE_CHECK(cudaGetDeviceCount(&gpus));
  if (place.local_rank >= gpus)
    throw harness::BadInput("rank " + std::to_string(place.rank) + " is number " + std::to_string(place.local_rank) +
                            " of its host, which has " + std::to_string(gpus) + " GPUs: each rank needs one");
  DEVICE_CHECK(cudaSetDevice(place.local_rank));
  DEVICE_CHECK(cudaFree(nullptr));  // whoever waits for others need not wait for CUDA
  if (options.json.size() && place.rank == 0) harness::check_writable(options.json);
  TcpGroup group(place, options.patience);
  // A process that cannot end by itself, for it waits in a call of CUDA or NCCL, is ended.
  group.on_failure([rank = place.rank](const std::string& why) {
    std::thread([rank, why] {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      std::fprintf(stderr, "tensor_parallel: rank %d ends: %s\n", rank, why.c_str());
      _exit(1);
    }).detach();
  });
  Rank rank(group, options);
  try {
    std::string shapes;
    for (const Shape& s : options.shapes)
      shapes += std::to_string(s.tokens) + "x" + std::to_string(s.model) + "x" + std::to_string(s.hidden) + " ";
    group.agree(shapes + std::to_string(options.types.size()) + " types");
    rank.open_communicators();
    if (options.soak > 0) {
      rank.soak();
    } else {
      ordered_json document = {
          {"schema", "gemm-course-tensor-parallel"},  {"version", 1},           {"created", harness::utc_now()},
          {"commit", harness::commit().value_or("")}, {"nccl", nccl_version()}, {"ranks", topology(group)}};
      const harness::Machine machine = harness::this_machine();
      document["cublas"] = machine.cublas.value_or(""), document["cuda"] = machine.cuda;
      document["link"] = rank.measure_link();
      for (const Shape& shape : options.shapes)
        for (const harness::DType type : options.types) {
          document["results"].push_back(type == harness::DType::kF16 ? rank.measure<__half>(shape)
                                                                     : rank.measure<__nv_bfloat16>(shape));
          if (!options.json.empty() && place.rank == 0) harness::write_file(options.json, document.dump(1) + "\n");
        }
    }
    rank.close_communicators();
    return 0;
  } catch (const std::exception& e) {
    group.fail(e.what());
    const std::string why = group.failure();
    std::fprintf(stderr, "tensor_parallel: rank %d ends: %s\n", place.rank, why.c_str());
    rank.close_communicators();
    return 1;
  }
}

}  // namespace tensor_parallel
