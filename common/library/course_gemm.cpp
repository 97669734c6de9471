#include "common/library/course_gemm.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>

#include "common/device/device.cuh"
#include "common/device/tensor_operand.h"
#include "common/harness/tuning/here.h"
#include "common/harness/tuning/tuning.h"
#include "common/library/choose.h"
#ifdef COURSE_ON_INTERPRETER
#include "common/interpreter/count/gpus.h"
#endif

namespace gemm::library {
namespace {

using harness::AnyMatrix, harness::DType;

// ------------------------------------------------------------------------------------------------------------ what is asked for
detail::Extent extent(const AnyMatrix& m, DType type) {
  return {m.data, m.rows, m.cols, m.row_stride, m.col_stride, static_cast<std::int64_t>(bytes(type))};
}

AnyMatrix transposed(const AnyMatrix& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }

// Steps store rows of C. Where its columns are what lies together, they compute the transposed product.
Call by_rows_of_c(const Call& call) {
  const AnyMatrix& C = call.C;
  const bool columns_lie_together = C.cols == 1 || (C.rows > 1 && std::abs(C.row_stride) < std::abs(C.col_stride));
  if (!columns_lie_together) return call;
  return {transposed(call.B), transposed(call.A), transposed(C), call.in, call.out, call.slope};
}

template <class T>
Operands operands_of(const AnyMatrix& A, const AnyMatrix& B) {
  const Matrix<const T> a = {static_cast<const T*>(A.data), A.rows, A.cols, A.row_stride, A.col_stride},
                        b_transposed = {static_cast<const T*>(B.data), B.cols, B.rows, B.col_stride, B.row_stride};
  if (!device::in_chunks(a) || !device::in_chunks(b_transposed)) return Operands::kAny;
  return device::has_tensor_map(a) && device::has_tensor_map(b_transposed) ? Operands::kBoxes : Operands::kChunks;
}

double requests_of(const AnyMatrix& m, DType type) {
  const std::int64_t pitch = std::max(std::abs(m.row_stride), std::abs(m.col_stride));  // of what the copy engine takes
  return harness::requests_for_rows(reinterpret_cast<std::uintptr_t>(m.data), pitch * static_cast<std::int64_t>(bytes(type)));
}

// ------------------------------------------------------------------------------------------------------- where it is asked for
struct Gpu {
  harness::GpuLimits limits;
  std::string driver;
};

int number_of_gpu() {
#ifdef COURSE_ON_INTERPRETER
  return static_cast<int>(&interpreter::find_gpu(interpreter::options().gpu) - interpreter::gpus().data());
#else
  int number = 0;
  DEVICE_CHECK(cudaGetDevice(&number));
  return number;
#endif
}

Gpu gpu_here() {
  int driver = 0;
#ifndef COURSE_ON_INTERPRETER
  DEVICE_CHECK(cudaDriverGetVersion(&driver));
#endif
  return {harness::limits_here(), "CUDA " + std::to_string(driver)};
}

// ------------------------------------------------------------------------------------------------------------ what was chosen
harness::TuningKey key_of(const Task& task, const Gpu& gpu) {
  return {"course_gemm", COURSE_KERNEL_VERSION, task.spec, gpu.limits.name, gpu.limits.multiprocessors, gpu.driver};
}

// Choices are remembered by GPU and task. Readers do not wait for each other.
class Table {
 public:
  Chosen find(const Task& task) {
    const std::pair key(number_of_gpu(), task);
    {
      const std::shared_lock reading(mutex_);
      if (const auto found = chosen_.find(key); found != chosen_.end()) return found->second;
    }
    const Gpu gpu = this->gpu(key.first);
    harness::TuningCache cache(harness::TuningCache::default_folder());
    const Chosen chosen = choose(kernels(), task, gpu.limits, cache.find(key_of(task, gpu)));
    const std::unique_lock writing(mutex_);
    if (chosen_.size() >= kMost) chosen_.clear();
    return chosen_.emplace(key, chosen).first->second;  // if two threads came at once, both get the first one's
  }

  void keep(const Task& task, const Chosen& chosen) {
    const std::pair key(number_of_gpu(), task);
    const std::unique_lock writing(mutex_);
    chosen_.insert_or_assign(key, chosen);
  }

  Gpu gpu(int number) {
    {
      const std::shared_lock reading(mutex_);
      if (const auto found = gpus_.find(number); found != gpus_.end()) return found->second;
    }
    const Gpu gpu = gpu_here();
    const std::unique_lock writing(mutex_);
    return gpus_.emplace(number, gpu).first->second;
  }

 private:
  static constexpr std::size_t kMost = 1 << 16;  // some MiB: a program may ask for ever new shapes

  std::shared_mutex mutex_;
  std::map<std::pair<int, Task>, Chosen> chosen_;
  std::map<int, Gpu> gpus_;
};

Table& table() {
  static Table the_table;
  return the_table;
}

void launch(const Kernel& kernel, const Call& call) {
  const Call by_rows = by_rows_of_c(call);
  kernel.run(by_rows.A, by_rows.B, by_rows.C, by_rows.slope);
}

// ------------------------------------------------------------------------------------------------------------------- tuning
#ifndef COURSE_ON_INTERPRETER
void refuse_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  DEVICE_CHECK(cudaStreamIsCapturing(stream, &status));
  if (status != cudaStreamCaptureStatusNone)
    throw Error("gemm::tune: the stream is being captured, and launches cannot be timed meanwhile; tune before the capture begins");
}

void time_candidates(const Call& call, const Task& task, const Gpu& gpu) {
  std::map<const harness::Variant*, const Kernel*> by_variant;
  std::vector<const harness::Variant*> variants;
  for (const Kernel* kernel : candidates(kernels(), task, gpu.limits)) {
    by_variant[&kernel->variant] = kernel;
    variants.push_back(&kernel->variant);
  }
  const auto launcher = [&](const harness::Variant* v) { return [&call, kernel = by_variant.at(v)] { launch(*kernel, call); }; };
  harness::Tuner tuner;
  tuner.gpu = gpu.limits;
  tuner.resources = [&](const harness::Variant& v) { return harness::resources_of(launcher(&v)); };
  tuner.time = [&](const std::vector<const harness::Variant*>& group) {
    std::vector<std::function<void()>> launchers;
    for (const harness::Variant* v : group) launchers.push_back(launcher(v));
    return harness::seconds_of(launchers);
  };
  harness::TuningCache cache(harness::TuningCache::default_folder());
  const harness::Tuning tuning = harness::tune(variants, key_of(task, gpu), tuner, cache);
  std::map<std::string, harness::TuningEntry> known;  // also where no folder could keep it
  for (const harness::Candidate& c : tuning.candidates)
    if (c.seconds > 0) known[c.variant->tile] = {c.seconds, ""};
  table().keep(task, choose(kernels(), task, gpu.limits, known));
}
#endif

// What goes wrong in CUDA is an Error of the library, whose users need not know the course's own.
template <class Body>
auto with_errors(const Body& body) {
  try {
    return body();
  } catch (const device::Error& e) {
    throw Error(std::string("gemm: ") + e.what());
  }
}

// Refuses what the contract does not allow. @return whether there is anything to do
bool check(const Call& call) {
  detail::check(extent(call.A, call.in), extent(call.B, call.in), extent(call.C, call.out));
  return call.C.rows > 0 && call.C.cols > 0;
}

}  // namespace

Task task_of(const Call& call) {
  const Call by_rows = by_rows_of_c(call);
  const AnyMatrix &A = by_rows.A, &B = by_rows.B;
  const auto by_columns = [](const AnyMatrix& m) { return m.row_stride == 1 && m.col_stride != 1; };
  return {{by_rows.C.rows, by_rows.C.cols, A.cols, call.in, call.out, by_columns(A), by_columns(B)},
          bytes(call.in) == 2 ? operands_of<__half>(A, B) : operands_of<float>(A, B),
          {requests_of(A, call.in), requests_of(B, call.in)}};
}

harness::TuningKey tuning_key(const Task& task) { return key_of(task, table().gpu(number_of_gpu())); }

void run(const Call& call, cudaStream_t stream) {
  if (!check(call)) return;
  with_errors([&] {
    const Chosen chosen = table().find(task_of(call));
    const device::StreamScope on_stream(stream);
    launch(*chosen.kernel, call);
  });
}

Choice choice(const Call& call) {
  if (!check(call)) return {};
  return with_errors([&] { return to_choice(table().find(task_of(call))); });
}

Choice tune(const Call& call, cudaStream_t stream) {
  if (!check(call)) return {};
  return with_errors([&] {
    const Task task = task_of(call);
#ifndef COURSE_ON_INTERPRETER
    refuse_captured(stream);
    if (!table().find(task).is_fallback) {
      DEVICE_CHECK(cudaStreamSynchronize(stream));  // whoever writes A and B is done
      time_candidates(call, task, table().gpu(number_of_gpu()));
    }
#endif
    const Chosen chosen = table().find(task);
    const device::StreamScope on_stream(stream);
    launch(*chosen.kernel, call);  // where all times were known, nothing has run yet
    return to_choice(chosen);
  });
}

}  // namespace gemm::library
