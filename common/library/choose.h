/// @file
/// Which of the library's kernels a call gets.
#pragma once

#include <algorithm>
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

/// Arguments in the harness's words.
struct Call {
  harness::AnyMatrix A, B, C;
  harness::DType in, out;
  float slope;  ///< of LeakyRelu; 1 changes nothing
};

/// @throws Refused for types that no kernel takes
Call call_of(const Arguments& arguments);
/// run() of course_gemm.h.
void run(const Call& call, cudaStream_t stream);
/// choice() of course_gemm.h.
Choice choice(const Call& call);

/// What matters of A's or B's strides and address.
struct Operand {
  Operands offers;
  double requests;    ///< to the L2 cache for each of its rows of 128 bytes, see harness::Requests
  double spread = 1;  ///< where neighbours do not lie side by side: bytes that are read for each one that is wanted

  /// In some order, for tables.
  auto operator<=>(const Operand&) const = default;
};

/// What a choice depends on, besides the GPU.
struct Task {
  harness::Spec spec;  ///< without an epilogue: all run the same kernel
  Operand a, b;

  Operands operands() const { return std::min(a.offers, b.offers); }       ///< what both offer
  harness::Requests requests() const { return {a.requests, b.requests}; }  ///< for their rows
  /// In some order, for tables.
  bool operator<(const Task& other) const { return tied() < other.tied(); }

 private:
  std::tuple<std::int64_t, std::int64_t, std::int64_t, harness::DType, harness::DType, bool, bool, Operand, Operand> tied() const {
    return {spec.m, spec.n, spec.k, spec.in, spec.out, spec.transpose_a, spec.transpose_b, a, b};
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
  bool lays_a = false, lays_b = false;  ///< out anew, before the kernel (relayout.h)
};
/// The same for users.
Choice to_choice(const Chosen& chosen);
/// What the files of docs/results/h200/choices call it: the kernel, behind A, B or both if these are laid out.
std::string way_name(const Chosen& chosen);

/// The kernels whose own tile a GPU can run on `task`, not the fallback.
std::vector<const Kernel*> candidates(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu);

/// `task` with A, B or both laid out anew.
Task laid_out(const Task& task, bool a, bool b);

/// All that choose() chooses from, with the seconds that the model expects of each.
std::vector<Chosen> choices(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu);

/// What the model (tuning_model.h) expects to be fastest: a candidate, the fallback where there is none, or a candidate for
/// operands that are laid out anew, if the time that this takes is gained. Where `known` has times of such candidates, by the names
/// of their variants, the fastest of those.
/// @throws Error when nothing of these types runs on `gpu`, with the reason
Chosen choose(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu,
              const std::map<std::string, harness::TuningEntry>& known);

/// Starts what was chosen for the task of `call` on device::stream().
void launch(const Call& call, const Chosen& chosen);

}  // namespace gemm::library
