#include <doctest/doctest.h>

#include <vector>

#include "common/harness/conformance/conformance.h"
#include "common/harness/problem/problem.h"
#include "steps/08_split_k/gemm.cuh"

namespace {

using harness::DType, harness::Problem, harness::product, harness::Spec, harness::Variant;

std::vector<const Variant*> variants(DType in) {
  std::vector<const Variant*> found;
  for (const Variant& v : harness::this_step().variants)
    if (v.in == in && v.out == in) found.push_back(&v);
  return found;
}

}  // namespace

TEST_CASE("step 08_split_k conforms") {
  harness::check_conformance(harness::this_step());
  CHECK(device::workspace_is_clean());
}
TEST_CASE("step 08_split_k: each candidate is what it says, without bank conflicts") {
  harness::check_candidates(harness::this_step());
}
TEST_CASE("step 08_split_k: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }

TEST_CASE("step 08_split_k: shares are whole tiles along k, and the last one is the largest") {
  using Tile = step_08_split_k::Tile<16, 64, 64, 16, 16, 6, true, 4>;
  CHECK(Tile::share_k(64, 4096) == 15 * 64);    // of 64 tiles: 15 for each of three blocks, 19 for the last
  CHECK(Tile::share_k(64, 10 * 64) == 2 * 64);  // 2, 2, 2 and 4
  CHECK(Tile::share_k(64, 9 * 64) == 0);        // shares of less than two tiles are not worth a trip
  CHECK(Tile::share_k(64, 0) == 0);
  CHECK(Tile::share_k(256, 4096) > 0);
  CHECK(Tile::share_k(257, 4096) == 0);  // more blocks than GPUs hold
  for (std::int64_t k = 1; k < 3000; ++k) {
    const std::int64_t share = Tile::share_k(1, k), last = k - 3 * share;
    CHECK(share % 64 == 0);
    CHECK(last > share);
    CHECK((share == 0 || last >= share + 64));  // two tiles more, the second of which may be ragged
    CHECK((share == 0 || last <= share + 6 * 64));
  }
  CHECK(step_08_split_k::Tile<16, 32, 128, 16, 16, 8, true, 1>::share_k(1, 4096) == 0);
}

TEST_CASE("step 08_split_k: the same bits in every run, and nothing left behind, whatever ran before") {
  for (const Spec& shape : {Spec{8, 136, 2056}, Spec{1, 64, 1024}, Spec{70, 72, 1000}}) {
    Spec spec = shape;
    spec.in = spec.out = DType::kF16;
    Problem problem(spec), other({spec.m, spec.n, spec.k / 2, spec.in, spec.out});
    for (const Variant* v : variants(spec.in)) {
      INFO(v->tile << ", " << spec.shape());
      const std::vector<double> first = harness::check_same_bits(problem, *v);
      product(other, *v);
      CHECK(other.verify() == "");
      CHECK(product(problem, *v) == first);
      CHECK(device::workspace_is_clean());
    }
  }
}

#ifdef COURSE_ON_GPU
TEST_CASE("step 08_split_k: a workspace for each stream, and none during a capture") {
  Problem problem({16, 64, 4096, DType::kF16, DType::kF16});
  const Variant& v = *variants(DType::kF16).front();
  const std::vector<double> expected = product(problem, v);
  float4* const here = device::workspace(1);
  CHECK(device::workspace(1) == here);

  cudaStream_t stream = nullptr;
  DEVICE_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const cudaStream_t before = std::exchange(device::stream(), stream);
  const auto capture = [&] {
    DEVICE_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    std::string said;
    try {
      v.gemm(problem.A.view(), problem.B.view(), problem.C.view());
    } catch (const device::Error& e) {
      said = e.what();
    }
    cudaGraph_t graph = nullptr;
    DEVICE_CHECK(cudaStreamEndCapture(stream, &graph));
    return std::pair(graph, said);
  };
  const auto [too_early, said] = capture();
  CHECK(said.find("launch the kernel once on this stream before") != std::string::npos);
  cudaGraphDestroy(too_early);
  CHECK(product(problem, v) == expected);
  CHECK(device::workspace(1) != here);
  const auto [graph, nothing] = capture();
  CHECK(nothing == "");
  cudaGraphExec_t executable = nullptr;
  DEVICE_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int run = 0; run < 3; ++run) {
    problem.C.poison();
    DEVICE_CHECK(cudaGraphLaunch(executable, stream));
    device::synchronize();
    CHECK(problem.verify() == "");
  }
  CHECK(device::workspace_is_clean());
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  device::stream() = before;
  DEVICE_CHECK(cudaStreamDestroy(stream));
}
#endif
