#include <doctest/doctest.h>

#include <mutex>
#include <set>

#include "common/library/course_gemm.h"
#include "steps/tensor_parallel/block.h"
#include "steps/tensor_parallel/loopback.h"

using namespace tensor_parallel;

namespace {

constexpr double kPatience = 60;

template <class T>
void one_call(Matrix<const T> A, Matrix<const T> B, Matrix<T> C, float slope, cudaStream_t stream) {
  gemm::run(A, B, C, gemm::LeakyRelu{slope}, stream);
}

// Each rank's tokens, when all have run the plan; verified.
template <class T>
void check_block(const Shape& shape, const Plan& plan, int ranks, bool exact, bool replicated = false) {
  CAPTURE(ranks);
  CAPTURE(shape.tokens);
  CAPTURE(plan.overlapped);
  CAPTURE(plan.chunks);
  constexpr float kSlope = 0.5;  // exact for integers
  const Data data = exact ? integers(shape) : reals(shape);
  std::mutex mutex;
  std::string wrong;
  std::int64_t tokens_seen = 0;
  run_loopback(ranks, kPatience, [&](Communicator& c) {
    const Range hidden = share(shape.hidden, kHiddenUnit, c.rank(), ranks);
    Weights<T> weights(shape, hidden);
    weights.fill_with(data, nullptr);
    FeedForward<T> block(c, shape, plan, weights.W1(), weights.W2(), kSlope, one_call<T>);
    const Range mine = replicated ? Range{0, shape.tokens} : block.places().mine(c.rank());
    if (replicated)
      fill(data.X, row_major(block.input().data, shape.tokens, shape.model), 0, 0, nullptr);
    else
      fill_input(block, data.X, c.rank(), nullptr);
    replicated ? block.run_replicated(nullptr) : block.run(nullptr);
    if (!replicated) block.run(nullptr);  // what the first run left does not matter
    c.wait(nullptr);
    const Matrix<T> Y = replicated ? block.all_reduced() : block.output();
    std::vector<std::int64_t> tokens, rows;
    for (std::int64_t i = 0; i < mine.size(); ++i) rows.push_back(i), tokens.push_back(mine.begin + i);
    const std::string text = Reference(shape, data, kSlope, ranks, harness::kDType<T>, exact, tokens).compare(fetch_rows(Y, rows));
    const std::lock_guard lock(mutex);
    tokens_seen += mine.size();
    if (!text.empty()) wrong = "rank " + std::to_string(c.rank()) + ": " + text;
  });
  CHECK(wrong == "");
  CHECK(tokens_seen == shape.tokens * (replicated ? ranks : 1));
}

}  // namespace

TEST_CASE("tensor_parallel: each token and each hidden column belongs to one rank, and rows of tokens do not overlap") {
  for (const int ranks : {1, 2, 3, 4, 7})
    for (const std::int64_t total : {0, 1, 3, 64, 200, 11008}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range r = share(total, kHiddenUnit, rank, ranks);
        CHECK(r.begin == next);
        CHECK((r.size() % kHiddenUnit == 0 || r.end == total));
        next = r.end;
      }
      CHECK(next == total);
      for (const int chunks : {1, 2, 5}) {
        const Places places{total, ranks, chunks};
        std::set<std::int64_t> rows;
        for (int rank = 0; rank < ranks; ++rank)
          for (std::int64_t i = 0; i < places.mine(rank).size(); ++i) rows.insert(places.row(rank, i));
        CHECK(static_cast<std::int64_t>(rows.size()) == total);
        if (total > 0) CHECK((*rows.begin() >= 0 && *rows.rbegin() < places.rows()));
      }
    }
}

TEST_CASE("tensor_parallel: 1 to 4 ranks, plain and overlapped, with shares that differ: exact in integers") {
  for (const int ranks : {1, 2, 3, 4})
    for (const Plan plan : {Plan{false, 1}, Plan{true, 1}, Plan{true, 3}}) check_block<__half>({37, 72, 200}, plan, ranks, true);
  check_block<__nv_bfloat16>({37, 72, 200}, {true, 2}, 3, true);
}

TEST_CASE("tensor_parallel: real numbers stay within what roundings allow") {
  check_block<__half>({37, 72, 200}, {true, 2}, 3, false);
  check_block<__nv_bfloat16>({37, 72, 200}, {false, 1}, 2, false);
}

TEST_CASE("tensor_parallel: fewer tokens than ranks, fewer hidden columns, a model that fills no vector") {
  for (const Plan plan : {Plan{false, 1}, Plan{true, 2}}) {
    check_block<__half>({1, 72, 64}, plan, 3, true);
    check_block<__half>({5, 13, 136}, plan, 2, true);
  }
}

TEST_CASE("tensor_parallel: what a rank receives is what the lesson predicts, however many hidden columns there are") {
  for (const std::int64_t hidden : {200, 2000})
    for (const auto& [plan, bytes] :
         {std::pair{Plan{false, 1}, 7488}, std::pair{Plan{true, 1}, 7488}, std::pair{Plan{true, 2}, 8064}})
      run_loopback(3, kPatience, [&, &plan = plan, &bytes = bytes](Communicator& c) {
        const Shape shape{37, 72, hidden};
        Weights<__half> weights(shape, share(shape.hidden, kHiddenUnit, c.rank(), 3));
        FeedForward<__half> block(c, shape, plan, weights.W1(), weights.W2(), 1, [](auto, auto, auto, float, cudaStream_t) {});
        block.run(nullptr);
        if (c.received() != static_cast<std::size_t>(bytes)) throw std::runtime_error(std::to_string(c.received()) + " bytes");
      });
}

TEST_CASE("tensor_parallel: few tokens, which all ranks have") {
  for (const int ranks : {1, 2, 3}) check_block<__half>({1, 72, 200}, {}, ranks, true, true);
}

TEST_CASE("tensor_parallel: a comparison finds a token that is wrong") {
  const Shape shape{4, 16, 64};
  const std::vector<unsigned char> zeros(16 * 2);
  CHECK(Reference(shape, integers(shape), 1, 2, harness::DType::kF16, true, {2}).compare(zeros).starts_with("Y of token 2"));
  CHECK(Reference(shape, reals(shape), 1, 2, harness::DType::kF16, false, {2}).compare(zeros).starts_with("Y of token 2"));
}

TEST_CASE("tensor_parallel: ranks that disagree, end or hang end the others, with the reason") {
  const auto message = [](double patience, const std::function<void(Communicator&)>& body) -> std::string {
    try {
      run_loopback(3, patience, body);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "";
  };
  // The shape
  CHECK(message(kPatience,
                [](Communicator& c) {
                  const Matrix<const __half> none;
                  FeedForward<__half>(c, {c.rank() == 1 ? 5 : 4, 8, 0}, {}, none, none, 1, one_call<__half>);
                }) ==
        "the ranks disagree: rank 0 has 4 tokens x 8 x 0 f16, plain, 1 chunks, slope 1.000000, rank 1 has 5 tokens x 8 x 0 f16, "
        "plain, 1 "
        "chunks, slope 1.000000");
  // The call
  CHECK(message(kPatience, [](Communicator& c) {
          void* const all = c.allocate(64);
          c.rank() == 2 ? c.all_gather(all, 8, nullptr) : c.all_gather(all, 16, nullptr);
        }) == "the ranks disagree: rank 0 has all_gather of 16 bytes, rank 2 has all_gather of 8 bytes");
  // One ends: the others do not wait for it
  std::mutex mutex;
  std::vector<std::string> others;
  CHECK(message(kPatience, [&](Communicator& c) {
          void* const all = c.allocate(64);
          try {
            if (c.rank() == 1) throw std::runtime_error("no memory");
            c.all_gather(all, 16, nullptr);
          } catch (const Fault& e) {
            const std::lock_guard lock(mutex);
            others.push_back(e.what());
            throw;
          }
        }) == "no memory");
  CHECK(others == std::vector<std::string>(2, "rank 1 has ended: no memory"));
  // One hangs, here until the others have given up
  CHECK(message(0.2, [](Communicator& c) {
          while (c.rank() == 1) c.group().check();
          c.group().exchange("");
        }) == "rank 1 has not come for 0.200000 s");
}
