#include "steps/tensor_parallel/nccl_communicator.h"

#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "common/device/device.cuh"

namespace tensor_parallel {
namespace {

void check(ncclResult_t result, const char* call, Group& group) {
  if (result == ncclSuccess) return;
  group.check();  // a rank that has ended is the better reason
  throw device::Error(std::string(call) + " failed: " + ncclGetErrorString(result) + "; " + ncclGetLastError(nullptr) +
                      "; NCCL_DEBUG=WARN says more");
}
#define NCCL_CHECK(call) check((call), #call, group_)

ncclDataType_t nccl_type(harness::DType type) {
  switch (type) {
    case harness::DType::kF32: return ncclFloat32;
    case harness::DType::kF16: return ncclFloat16;
    case harness::DType::kBF16: return ncclBfloat16;
  }
  return ncclFloat32;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Nccl final : public Communicator {
 public:
  Nccl(TcpGroup& group, Movers movers) : group_(group), movers_(movers) {
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    ncclUniqueId id{};
    if (group.rank() == 0) NCCL_CHECK(ncclGetUniqueId(&id));
    const std::string first = group.exchange(std::string(id.internal, sizeof id.internal))[0];
    std::memcpy(id.internal, first.data(), sizeof id.internal);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    if (movers == Movers::kCopyEngines) config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
#else
    if (movers == Movers::kCopyEngines) throw device::Error("copy engines need NCCL 2.28 or newer");
#endif
    NCCL_CHECK(ncclCommInitRankConfig(&communicator_, group.size(), id, group.rank(), &config));
  }

  // Where a rank has ended, nobody answers any more: then nothing is waited for.
  ~Nccl() override {
    if (!group_.failure().empty()) {
      ncclCommAbort(communicator_);
      return;
    }
    for (const auto& [memory, window] : memory_) {
      if (window) ncclCommWindowDeregister(communicator_, window);
      ncclMemFree(memory);
    }
    ncclCommDestroy(communicator_);
  }
  Nccl(const Nccl&) = delete;

  Group& group() override { return group_; }

  void* allocate(std::size_t bytes) override {
    group_.agree("allocate of " + std::to_string(bytes) + " bytes");
    constexpr std::size_t kPage = 2 << 20;  // windows consist of whole ones
    bytes = std::max(kPage, (bytes + kPage - 1) / kPage * kPage);
    void* memory = nullptr;
    NCCL_CHECK(ncclMemAlloc(&memory, bytes));
    memory_.push_back({memory, nullptr});
    DEVICE_CHECK(cudaMemset(memory, 0, bytes));
    DEVICE_CHECK(cudaDeviceSynchronize());
    if (movers_ == Movers::kCopyEngines) {
      NCCL_CHECK(ncclCommWindowRegister(communicator_, memory, bytes, &memory_.back().window, NCCL_WIN_COLL_SYMMETRIC));
      if (!memory_.back().window) throw device::Error("NCCL's copy engines: these GPUs do not see each other's memory");
    }
    return memory;
  }

  void all_gather(void* all, std::size_t bytes, OnStream stream) override {
    const void* const mine = static_cast<const char*>(all) + static_cast<std::size_t>(rank()) * bytes;
    NCCL_CHECK(ncclAllGather(mine, all, bytes, ncclInt8, communicator_, stream));
  }

  void all_to_all(const void* sent, void* received, std::size_t bytes, OnStream stream) override {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    if (movers_ == Movers::kCopyEngines) return NCCL_CHECK(ncclAlltoAll(sent, received, bytes, ncclInt8, communicator_, stream));
#endif
    NCCL_CHECK(ncclGroupStart());
    for (int q = 0; q < size(); ++q) {
      if (q == rank()) continue;
      const std::size_t at = static_cast<std::size_t>(q) * bytes;
      NCCL_CHECK(ncclSend(static_cast<const char*>(sent) + at, bytes, ncclInt8, q, communicator_, stream));
      NCCL_CHECK(ncclRecv(static_cast<char*>(received) + at, bytes, ncclInt8, q, communicator_, stream));
    }
    NCCL_CHECK(ncclGroupEnd());
  }

  void reduce_scatter(const void* all, void* mine, std::size_t count, harness::DType type, OnStream stream) override {
    NCCL_CHECK(ncclReduceScatter(all, mine, count, nccl_type(type), ncclSum, communicator_, stream));
  }

  void all_reduce(void* data, std::size_t count, harness::DType type, OnStream stream) override {
    NCCL_CHECK(ncclAllReduce(data, data, count, nccl_type(type), ncclSum, communicator_, stream));
  }

  void wait(cudaStream_t stream) override {
    const double until = now() + group_.patience();
    for (;;) {
      const cudaError_t status = cudaStreamQuery(stream);
      if (status == cudaSuccess) return;
      ncclResult_t error = ncclSuccess;
      if (status == cudaErrorNotReady) {
        NCCL_CHECK(ncclCommGetAsyncError(communicator_, &error));
        group_.check();
      }
      if (status != cudaErrorNotReady || (error != ncclSuccess && error != ncclInProgress)) {
        // A peer that ends takes its memory along. Whoever watches the ranks may know which it was a moment later.
        for (int i = 0; i < 10; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(100))) group_.check();
        NCCL_CHECK(error);
        DEVICE_CHECK(status);
      }
      if (now() > until) {
        const std::string why = "it has waited " + std::to_string(static_cast<int>(group_.patience())) +
                                " s for what the ranks do together: one of them hangs";
        group_.fail(why);
        group_.check();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  struct Memory {
    void* address;
    ncclWindow_t window;
  };
  TcpGroup& group_;
  const Movers movers_;
  ncclComm_t communicator_ = nullptr;
  std::vector<Memory> memory_;
};

}  // namespace

std::string name(Movers movers) { return movers == Movers::kCopyEngines ? "copy engines" : "nccl"; }

std::unique_ptr<Communicator> nccl_communicator(TcpGroup& group, Movers movers) { return std::make_unique<Nccl>(group, movers); }

std::string nccl_version() {
  int version = 0;
  ncclGetVersion(&version);
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

}  // namespace tensor_parallel
