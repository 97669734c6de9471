#include "common/library/course_gemm.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <tuple>

#include "common/device/device.cuh"
#include "common/device/tensor_operand.h"
#include "common/harness/tuning/here.h"
#include "common/harness/tuning/tuning.h"
#include "common/library/choose.h"
#include "common/library/relayout.h"
#ifdef COURSE_ON_INTERPRETER
#include "common/interpreter/count/gpus.h"
#endif

namespace gemm::library {
namespace {

using harness::AnyMatrix, harness::DType;

constexpr std::int64_t kSectorBytes = 32;  // what memory reads at least

// ------------------------------------------------------------------------------------------------------------ what is asked for
DType type_of(int type) {
  switch (type) {
    case COURSE_GEMM_F32: return DType::kF32;
    case COURSE_GEMM_F16: return DType::kF16;
    case COURSE_GEMM_BF16: return DType::kBF16;
    default: throw Refused("gemm: type " + std::to_string(type) + " is none of CourseGemmType");
  }
}

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
Operands offers_of(const AnyMatrix& m) {
  const Matrix<const T> typed = {static_cast<const T*>(m.data), m.rows, m.cols, m.row_stride, m.col_stride};
  return device::has_tensor_map(typed) ? Operands::kBoxes : device::in_chunks(typed) ? Operands::kChunks : Operands::kAny;
}

Operand operand_of(const AnyMatrix& m, DType type) {
  const std::int64_t pitch = std::max(std::abs(m.row_stride), std::abs(m.col_stride));  // of what the copy engine takes
  const std::int64_t apart = lies_by_columns(m) ? m.row_stride : m.col_stride, element = static_cast<std::int64_t>(bytes(type));
  return {element == 2 ? offers_of<__half>(m) : offers_of<float>(m),
          harness::requests_for_rows(reinterpret_cast<std::uintptr_t>(m.data), pitch * element),
          static_cast<double>(std::clamp<std::int64_t>(std::abs(apart), 1, kSectorBytes / element))};
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

// The product that is computed: its operands are laid out anew where that was chosen, and stay so while this lives.
class Product {
 public:
  Product(const Call& call, const Chosen& chosen) : call_(by_rows_of_c(call)), memory_(memory_for(call_, chosen)) {
    if (!memory_ || !memory_->data()) return;
    std::vector<Copy> copies;
    char* to = static_cast<char*>(memory_->data());
    const auto replace = [&](AnyMatrix& m) {
      copies.push_back({m, in_lines(m, call.in, to)});
      to += bytes_in_lines(m, call.in);
      m = copies.back().to;
    };
    if (chosen.lays_a) replace(call_.A);
    if (chosen.lays_b) replace(call_.B);
    lay_out(copies);
  }
  /// False: there was no memory. The operands are as they were, and the kernel's launcher takes the fallback if it must.
  bool is_as_chosen() const { return !memory_ || memory_->data(); }
  void launch(const Kernel& kernel) const { kernel.run(call_.A, call_.B, call_.C, call_.slope); }

 private:
  static std::unique_ptr<StreamMemory> memory_for(const Call& call, const Chosen& chosen) {
    if (!chosen.lays_a && !chosen.lays_b) return nullptr;
    return std::make_unique<StreamMemory>((chosen.lays_a ? bytes_in_lines(call.A, call.in) : 0) +
                                          (chosen.lays_b ? bytes_in_lines(call.B, call.in) : 0));
  }

  Call call_;
  std::unique_ptr<StreamMemory> memory_;
};

// ------------------------------------------------------------------------------------------------------------------- tuning
#ifndef COURSE_ON_INTERPRETER
void refuse_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  DEVICE_CHECK(cudaStreamIsCapturing(stream, &status));
  if (status != cudaStreamCaptureStatusNone)
    throw Error("gemm::tune: the stream is being captured, and launches cannot be timed meanwhile; tune before the capture begins");
}

// Of the kernels alone: their operands are laid out before.
void time_candidates(const Call& call, const Task& task, const Chosen& chosen, const Gpu& gpu) {
  const Product product(call, chosen);
  if (!product.is_as_chosen()) return;
  DEVICE_CHECK(cudaStreamSynchronize(device::stream()));  // whoever writes A and B is done, and so are the copies
  std::map<const harness::Variant*, const Kernel*> by_variant;
  std::vector<const harness::Variant*> variants;
  for (const Kernel* kernel : candidates(kernels(), laid_out(task, chosen.lays_a, chosen.lays_b), gpu.limits)) {
    by_variant[&kernel->variant] = kernel;
    variants.push_back(&kernel->variant);
  }
  const auto launcher = [&](const harness::Variant* v) {
    return [&product, kernel = by_variant.at(v)] { product.launch(*kernel); };
  };
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

Call call_of(const Arguments& arguments) {
  const auto any = [](const CourseGemmMatrix& m) { return AnyMatrix{m.data, m.rows, m.cols, m.row_stride, m.col_stride}; };
  const Call call{any(arguments.A),      any(arguments.B),       any(arguments.C),
                  type_of(arguments.in), type_of(arguments.out), arguments.slope};
  if (call.out != call.in && call.out != DType::kF32) throw Refused("gemm: C has the type of A and B, or f32");
  return call;
}

Task task_of(const Call& call) {
  const Call by_rows = by_rows_of_c(call);
  const AnyMatrix &A = by_rows.A, &B = by_rows.B;
  const Operand a = operand_of(A, call.in), b = operand_of(B, call.in);
  const auto by_columns = [](const AnyMatrix& m, const Operand& x) {
    return x.offers == Operands::kAny ? lies_by_columns(m) : m.row_stride == 1 && m.col_stride != 1;
  };
  return {{by_rows.C.rows, by_rows.C.cols, A.cols, call.in, call.out, by_columns(A, a), by_columns(B, b)}, a, b};
}

harness::TuningKey tuning_key(const Task& task) { return key_of(task, table().gpu(number_of_gpu())); }

void launch(const Call& call, const Chosen& chosen) { Product(call, chosen).launch(*chosen.kernel); }

void run(const Call& call, cudaStream_t stream) {
  if (!check(call)) return;
  with_errors([&] {
    const Chosen chosen = table().find(task_of(call));
    const device::StreamScope on_stream(stream);
    launch(call, chosen);
  });
}

Choice choice(const Call& call) {
  if (!check(call)) return {};
  return with_errors([&] { return to_choice(table().find(task_of(call))); });
}

void run(const Arguments& of_call, cudaStream_t stream) { run(call_of(of_call), stream); }

Choice choice(const Arguments& of_call) { return choice(call_of(of_call)); }

Choice tune(const Arguments& of_call, cudaStream_t stream) {
  const Call call = call_of(of_call);
  if (!check(call)) return {};
  return with_errors([&] {
    const Task task = task_of(call);
#ifndef COURSE_ON_INTERPRETER
    refuse_captured(stream);
    if (const Chosen by_model = table().find(task); !by_model.is_fallback) {
      const device::StreamScope on_stream(stream);
      time_candidates(call, task, by_model, table().gpu(number_of_gpu()));
    }
#endif
    const Chosen chosen = table().find(task);
    const device::StreamScope on_stream(stream);
    launch(call, chosen);  // where all times were known, nothing has run yet
    return to_choice(chosen);
  });
}

}  // namespace gemm::library
