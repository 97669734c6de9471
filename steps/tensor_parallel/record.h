/// @file
/// What a plan does, recorded as FeedForward does it: on which stream, by which line, and what waits for what. Nothing is computed
/// or copied, so a block may have any size. On the interpreter.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "steps/tensor_parallel/cost_model.h"

namespace tensor_parallel {

/// What a rank starts with one call.
struct Operation {
  /// Of memory, from before `end`.
  struct Bytes {
    const char *begin, *end;                                                                 ///< addresses
    bool meets(const Bytes& other) const { return begin < other.end && other.begin < end; }  ///< in a byte at least
  };

  Span::Work work;
  bool on_copies = false;          ///< its stream: that of copies, or that of products
  int line = 0;                    ///< of feed_forward.h
  Range rows = {};                 ///< of X or Y, in the order of Places
  double operations = 0;           ///< of a product
  double bytes = 0;                ///< that a copy receives, or that a sum of parts reads and writes
  std::vector<int> waits = {};     ///< for operations of the other stream: numbers of this rank's
  std::vector<Bytes> reads = {};   ///< of this rank's memory
  std::vector<Bytes> writes = {};  ///< likewise

  /// Which all ranks do together.
  bool is_copy() const { return work == Span::kGather || work == Span::kExchange || work == Span::kReduce; }
};
/// Of two operations that nothing orders, one writes what the other one reads or writes.
struct Race {
  int first, second;  ///< in the order of the program
};

/// A rank of many, alone: it takes down what it is asked for, and says that it has done it.
template <class T>
class Recorder final : public Communicator, private Group, private StreamListener {
 public:
  /// Of `ranks`, number `rank`. This thread's Streams tell it what they do, until it ends.
  Recorder(int rank, int ranks) : rank_(rank), ranks_(ranks) { stream_listener = this; }
  ~Recorder() override { stream_listener = nullptr; }
  Recorder(const Recorder&) = delete;

  /// All that the rank does in a block. @throws std::bad_alloc
  std::vector<Operation> record(const Shape& shape, const Plan& plan) {
    const std::int64_t mine = share(shape.hidden, kHiddenUnit, rank_, ranks_).size();
    const auto weights = [&](std::int64_t rows, std::int64_t cols) {
      return row_major(static_cast<const T*>(allocate(static_cast<std::size_t>(rows * cols + 1) * sizeof(T))), rows, cols);
    };
    const Matrix<const T> W1 = weights(shape.model, mine), W2 = weights(mine, shape.model);
    memory_of_block_ = memory_.size();
    FeedForward<T> block(
        *this, shape, plan, W1, W2, 1,
        [&](Matrix<const T> A, Matrix<const T> B, Matrix<T> C, float, const OnStream& stream) {
          const bool is_first = B.data == W1.data;
          const char* const rows = is_first ? bytes(A.data) : bytes(C.data);
          add({.work = is_first ? Span::kFirst : Span::kSecond,
               .rows = range(rows, is_first ? 0 : 1, A.rows, shape.model),
               .operations = 2.0 * static_cast<double>(A.rows) * static_cast<double>(A.cols) * static_cast<double>(B.cols),
               .reads = {of(A.data, A.rows * A.cols)},
               .writes = {of(C.data, C.rows * C.cols)}},
              stream);
        },
        [&](T* y, const T* own, const T* parts, int, int ranks, std::int64_t count, const OnStream& stream) {
          Operation sum{.work = Span::kAdd,
                        .rows = range(bytes(own), 1, count / shape.model, shape.model),
                        .bytes = static_cast<double>(static_cast<std::size_t>((ranks + 1) * count) * sizeof(T)),
                        .reads = {of(own, count)},
                        .writes = {of(y, count)}};
          for (int q = 0; q < ranks; ++q)
            if (q != rank_) sum.reads.push_back(of(parts + q * count, count));
          add(std::move(sum), stream);
        });
    model_ = shape.model;
    block.run(nullptr);
    return std::move(operations_);
  }

  Group& group() override { return *this; }
  /// Addresses, which nobody reads or writes: the system finds memory for none of them.
  void* allocate(std::size_t bytes) override {
    memory_.emplace_back(std::malloc(std::max<std::size_t>(1, bytes)), std::free);
    if (!memory_.back()) throw std::bad_alloc();
    return memory_.back().get();
  }
  void all_gather(void* all, std::size_t size, OnStream stream) override {
    Operation copy = pieces(Span::kGather, all, size, 0);
    const auto at = static_cast<std::size_t>(rank_);
    copy.reads = {piece(all, size, at)};
    copy.writes = but(all, size, at);
    add(std::move(copy), stream);
  }
  void all_to_all(const void* sent, void* received, std::size_t size, OnStream stream) override {
    Operation copy = pieces(Span::kExchange, sent, size, 1);
    copy.reads = but(sent, size, static_cast<std::size_t>(rank_));
    copy.writes = but(received, size, static_cast<std::size_t>(rank_));
    add(std::move(copy), stream);
  }
  void reduce_scatter(const void* all, void* mine, std::size_t count, harness::DType type, OnStream stream) override {
    const std::size_t size = count * harness::bytes(type);
    Operation copy = pieces(Span::kReduce, all, size, 1);
    copy.reads = {{bytes(all), bytes(all) + static_cast<std::size_t>(ranks_) * size}};
    copy.writes = {piece(mine, size, 0)};
    add(std::move(copy), stream);
  }
  void all_reduce(void*, std::size_t, harness::DType, OnStream) override { throw Fault("all_reduce is not recorded"); }
  void wait(cudaStream_t) override {}

 private:
  struct Stream {
    int last = -1;                // operation
    std::vector<int> waits = {};  // of what comes next
    std::vector<int> now() const {
      std::vector<int> all = waits;
      if (last >= 0) all.push_back(last);
      return all;
    }
  };

  // --- Group: the others say what this rank says
  int rank() const override { return rank_; }
  int size() const override { return ranks_; }
  std::vector<std::string> exchange(const std::string& mine) override {
    return std::vector<std::string>(static_cast<std::size_t>(ranks_), mine);
  }
  void fail(const std::string&) override {}
  void check() override {}
  double patience() const override { return 1; }

  // --- StreamListener
  cudaStream_t communication() override { return reinterpret_cast<cudaStream_t>(this); }  // any but that of products
  void communication_after(const OnStream& stream) override { wait(copies_, stream_of(stream).now()); }
  void record(int which) override {
    events_.resize(std::max(events_.size(), static_cast<std::size_t>(which) + 1));
    events_[static_cast<std::size_t>(which)] = copies_.now();
  }
  void wait_for(int which, const OnStream& stream) override {
    if (static_cast<std::size_t>(which) < events_.size()) wait(stream_of(stream), events_[static_cast<std::size_t>(which)]);
  }

  Stream& stream_of(const OnStream& stream) { return stream.stream == communication() ? copies_ : products_; }
  static void wait(Stream& stream, const std::vector<int>& operations) {
    stream.waits.insert(stream.waits.end(), operations.begin(), operations.end());
  }
  void add(Operation operation, const OnStream& on) {
    Stream& stream = stream_of(on);
    operation.on_copies = &stream == &copies_;
    operation.line = on.line;
    for (const int each : stream.waits)
      if (operations_[static_cast<std::size_t>(each)].on_copies != operation.on_copies &&
          std::find(operation.waits.begin(), operation.waits.end(), each) == operation.waits.end())
        operation.waits.push_back(each);
    stream = {static_cast<int>(operations_.size()), {}};
    operations_.push_back(std::move(operation));
  }

  static const char* bytes(const void* p) { return static_cast<const char*>(p); }
  static Operation::Bytes of(const T* p, std::int64_t count) { return {bytes(p), bytes(p + count)}; }
  static Operation::Bytes piece(const void* all, std::size_t size, std::size_t which) {
    return {bytes(all) + which * size, bytes(all) + (which + 1) * size};
  }
  std::vector<Operation::Bytes> but(const void* all, std::size_t size, std::size_t mine) const {
    std::vector<Operation::Bytes> others;
    for (std::size_t q = 0; q < static_cast<std::size_t>(ranks_); ++q)
      if (q != mine) others.push_back(piece(all, size, q));
    return others;
  }
  // Of X (buffer 0 of the block) or of parts (1).
  Range range(const char* at, std::size_t buffer, std::int64_t rows, std::int64_t model) const {
    const std::int64_t begin =
        (at - bytes(memory_[memory_of_block_ + buffer].get())) / (model * static_cast<std::int64_t>(sizeof(T)));
    return {begin, begin + rows};
  }
  Operation pieces(Span::Work work, const void* all, std::size_t size, std::size_t buffer) const {
    const std::int64_t rows = ranks_ * static_cast<std::int64_t>(size / sizeof(T)) / model_;
    return {.work = work, .rows = range(bytes(all), buffer, rows, model_), .bytes = static_cast<double>(size) * (ranks_ - 1)};
  }

  const int rank_, ranks_;
  std::int64_t model_ = 1;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
  std::size_t memory_of_block_ = 0;
  Stream products_, copies_;
  std::vector<std::vector<int>> events_;
  std::vector<Operation> operations_;
};

/// What each rank does, by rank.
inline std::vector<std::vector<Operation>> recorded(const Shape& shape, const Plan& plan, int ranks) {
  std::vector<std::vector<Operation>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(Recorder<__half>(rank, ranks).record(shape, plan));
  return all;
}

/// Those of one rank, in its own memory. A copy counts as over on all ranks when it is over on this one.
inline std::vector<Race> races(const std::vector<Operation>& operations) {
  std::vector<std::vector<bool>> before;  // [later][earlier]: earlier one is over when the later one begins
  std::vector<Race> found;
  int last[2] = {-1, -1};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& it = operations[i];
    before.emplace_back(operations.size());
    std::vector<int> direct = it.waits;
    if (last[it.on_copies] >= 0) direct.push_back(last[it.on_copies]);
    last[it.on_copies] = static_cast<int>(i);
    for (const int j : direct) {
      before[i][static_cast<std::size_t>(j)] = true;
      for (std::size_t k = 0; k < i; ++k)
        if (before[static_cast<std::size_t>(j)][k]) before[i][k] = true;
    }
    const auto meet = [](const std::vector<Operation::Bytes>& these, const std::vector<Operation::Bytes>& those) {
      for (const auto& a : these)
        for (const auto& b : those)
          if (a.meets(b)) return true;
      return false;
    };
    for (std::size_t j = 0; j < i; ++j) {
      const Operation& other = operations[j];
      if (!before[i][j] && (meet(it.writes, other.writes) || meet(it.writes, other.reads) || meet(it.reads, other.writes)))
        found.push_back({static_cast<int>(j), static_cast<int>(i)});
    }
  }
  return found;
}

}  // namespace tensor_parallel
