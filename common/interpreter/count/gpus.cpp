#include "common/interpreter/count/gpus.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace interpreter {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::size_t kGB = 1000 * 1000 * 1000;

// Threads, blocks and shared memory per SM: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
// SMs, L2, memory, bandwidth, clock and tensor-core rate: A100 (NVIDIA A100 Tensor Core GPU Architecture, 80 GB SXM), H100 (NVIDIA
// H100 Tensor Core GPU Architecture, SXM5), H200 (datasheet; 132 SMs and 60 MiB L2 as the CUDA runtime reports them), RTX 4090
// (NVIDIA Ada GPU Architecture). Parts of the L2 cache: the same papers, and measured on an H200; coalescers: Nsight Compute's
// "LRC" and measured on an H200, taken over for the H100. mma.sync: measured on an H200 (common/harness/measure/ceilings.cpp),
// taken over for the H100.
constexpr Gpu kGpus[] = {
    {"a100", "NVIDIA A100 SXM 80 GB", 80, 108, 2048, 32, 164 * kKiB, 163 * kKiB, 192 * kKiB, 40 * kMiB, 2, 0, 80 * kGB, 2.039e12,
     64, 1.41e9, 312e12, 312e12},
    {"h100", "NVIDIA H100 SXM5 80 GB", 90, 132, 2048, 32, 228 * kKiB, 227 * kKiB, 256 * kKiB, 50 * kMiB, 2, 8, 80 * kGB, 3.35e12,
     128, 1.98e9, 989.4e12, 643e12},
    {"h200", "NVIDIA H200 141 GB", 90, 132, 2048, 32, 228 * kKiB, 227 * kKiB, 256 * kKiB, 60 * kMiB, 2, 8, 141 * kGB, 4.8e12, 128,
     1.98e9, 989.4e12, 643e12},
    {"4090", "NVIDIA GeForce RTX 4090", 89, 128, 1536, 24, 100 * kKiB, 99 * kKiB, 128 * kKiB, 72 * kMiB, 1, 0, 24 * kGB, 1.008e12,
     128, 2.52e9, 165.2e12, 165.2e12},
};

}  // namespace

std::span<const Gpu> gpus() { return kGpus; }

const Gpu& find_gpu(std::string_view name) {
  for (const Gpu& gpu : kGpus)
    if (gpu.name == name) return gpu;
  std::string known;
  for (const Gpu& gpu : kGpus) known += (known.empty() ? "" : ", ") + std::string(gpu.name);
  throw std::invalid_argument("unknown GPU '" + std::string(name) + "'; known: " + known);
}

int resident_blocks_per_sm(const Gpu& gpu, int threads, std::size_t shared_bytes) {
  const int warps = (threads + 31) / 32;
  const int by_threads = gpu.max_threads_per_sm / 32 / std::max(1, warps);
  const int by_shared = static_cast<int>(gpu.shared_per_sm / (shared_bytes + kReservedSharedPerBlock));
  return std::min({gpu.max_blocks_per_sm, by_threads, by_shared});
}

}  // namespace interpreter
