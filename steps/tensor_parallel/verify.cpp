// The program on the interpreter.
#include <cstdio>
#include <mutex>

#include "common/library/course_gemm.h"
#include "steps/tensor_parallel/block.h"
#include "steps/tensor_parallel/program.h"

namespace tensor_parallel {
namespace {

template <class T>
void verify(Communicator& c, const Shape& shape, int* code) {
  static std::mutex one_line_at_a_time;
  const Data data = integers(shape);
  const Range hidden = share(shape.hidden, kHiddenUnit, c.rank(), c.size());
  Weights<T> weights(shape, hidden);
  weights.fill_with(data, nullptr);
  for (const Plan plan : {Plan{false, 1}, Plan{true, 1}, Plan{true, 2}}) {
    FeedForward<T> block(
        c, shape, plan, weights.W1(), weights.W2(), 1,
        [](auto A, auto B, auto C, float slope, cudaStream_t stream) { gemm::run(A, B, C, gemm::LeakyRelu{slope}, stream); });
    const Range mine = block.places().mine(c.rank());
    fill_input(block, data.X, c.rank(), nullptr);
    const std::size_t before = c.received();
    block.run(nullptr);
    c.wait(nullptr);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(mine.size())), tokens;
    for (std::int64_t i = 0; i < mine.size(); ++i) rows[static_cast<std::size_t>(i)] = i, tokens.push_back(mine.begin + i);
    const std::string wrong =
        Reference(shape, data, 1, c.size(), harness::kDType<T>, true, tokens).compare(fetch_rows(block.output(), rows));
    const std::lock_guard lock(one_line_at_a_time);
    std::printf("rank %d: tokens %ld to %ld, hidden columns %ld to %ld, %s, %d chunk%s: %zu bytes received, %s\n", c.rank(),
                mine.begin, mine.end, hidden.begin, hidden.end, plan.overlapped ? "overlapped" : "plain", plan.chunks,
                plan.chunks == 1 ? "" : "s", c.received() - before, wrong.empty() ? "right" : wrong.c_str());
    if (!wrong.empty()) *code = 1;
  }
}

}  // namespace

void verify_all(Communicator& c, const Options& options, int* code) {
  for (const Shape& shape : options.shapes)
    for (const harness::DType type : options.types)
      type == harness::DType::kF16 ? verify<__half>(c, shape, code) : verify<__nv_bfloat16>(c, shape, code);
}

}  // namespace tensor_parallel
