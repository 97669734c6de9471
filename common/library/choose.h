/// @file
/// Which of the library's kernels a call gets.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/harness/problem/problem.h"
#include "common/harness/tuning/tuning_cache.h"
#include "common/harness/tuning/tuning_model.h"
#include "common/library/course_gemm.h"
#include "common/library/kernels.h"

namespace gemm::library {

/// What a choice depends on, besides the GPU.
struct Task {
  harness::Spec spec;          ///< without an epilogue: all run the same kernel
  Operands operands;           ///< what A and B both offer
  harness::Requests requests;  ///< for their rows

  /// In some order, for tables.
  bool operator<(const Task& other) const { return tied() < other.tied(); }

 private:
  std::tuple<std::int64_t, std::int64_t, std::int64_t, harness::DType, harness::DType, bool, bool, Operands, double, double> tied()
      const {
    return {spec.m, spec.n, spec.k, spec.in, spec.out, spec.transpose_a, spec.transpose_b, operands, requests.a, requests.b};
  }
};

/// Of a call whose C has rows or columns: the transposed product where the elements of a column of C are closer to each other.
Task task_of(const Call& call);
/// What the times of a task are kept under, for the current device.
harness::TuningKey tuning_key(const Task& task);

/// A kernel, and how it was found: see Choice.
struct Chosen {
  const Kernel* kernel;
  bool is_fallback, is_timed;
  double seconds;
};
/// The same for users.
Choice to_choice(const Chosen& chosen);

/// The kernels whose own tile a GPU can run on `task`, not the fallback.
std::vector<const Kernel*> candidates(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu);

/// The fastest candidate of those that are in `known`, by the names of their variants; where there is none, the one that the model
/// (tuning_model.h) expects to be fastest; without candidates any kernel whose launcher takes the fallback.
/// @throws Error when nothing of these types runs on `gpu`, with the reason
Chosen choose(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu,
              const std::map<std::string, harness::TuningEntry>& known);

}  // namespace gemm::library
