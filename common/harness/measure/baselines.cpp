#include "common/harness/measure/baselines.h"

#include <cublasLt.h>
#include <cublas_v2.h>

#include <limits>
#include <optional>
#include <string>

#include "common/device/device.cuh"

namespace harness {
namespace {

// What NVIDIA recommends for Hopper (cuBLAS manual, cublasSetWorkspace), and enough for all older ones.
constexpr std::size_t kWorkspaceBytes = 32 << 20;
constexpr int kMaxCandidates = 16;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw device::Error(std::string(call) + " failed: " + cublasGetStatusString(status));
}
#define CUBLAS_CHECK(call) check((call), #call)

cudaDataType cuda_type(DType t) { return t == DType::kF32 ? CUDA_R_32F : t == DType::kF16 ? CUDA_R_16F : CUDA_R_16BF; }

// An operand as cuBLAS sees it: column-major, perhaps transposed, with the distance between columns.
struct Stored {
  cublasOperation_t op;
  std::int64_t ld;
};

std::optional<Stored> column_major(const AnyMatrix& m) {
  const auto fits = [](std::int64_t stride, std::int64_t length) {
    return stride >= std::max<std::int64_t>(1, length) && stride <= std::numeric_limits<int>::max();
  };
  if ((m.row_stride == 1 || m.rows == 1) && fits(m.col_stride, m.rows)) return Stored{CUBLAS_OP_N, m.col_stride};
  if ((m.col_stride == 1 || m.cols == 1) && fits(m.row_stride, m.cols)) return Stored{CUBLAS_OP_T, m.row_stride};
  return std::nullopt;
}

AnyMatrix transposed(const AnyMatrix& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }
// C is column-major for cuBLAS. A row-major C is the column-major transposed: C^T = B^T A^T.
Operands transposed(const Operands& o) { return {transposed(o.B), transposed(o.A), transposed(o.C), o.bias}; }

// A problem in cuBLAS's terms.
struct Gemm {
  bool transposed;
  int m, n, k;
  Stored a, b;
  std::int64_t ldc;

  Operands of(const Operands& o) const { return transposed ? harness::transposed(o) : o; }
};

std::optional<Gemm> in_terms_of_cublas(const Operands& like) {
  for (const bool turn : {true, false}) {
    const Operands o = turn ? transposed(like) : like;
    const auto a = column_major(o.A), b = column_major(o.B), c = column_major(o.C);
    if (!a || !b || !c || c->op != CUBLAS_OP_N) continue;
    for (const std::int64_t extent : {o.C.rows, o.C.cols, o.A.cols})
      if (extent < 1 || extent > std::numeric_limits<int>::max()) return std::nullopt;
    return Gemm{turn, static_cast<int>(o.C.rows), static_cast<int>(o.C.cols), static_cast<int>(o.A.cols), *a, *b, c->ld};
  }
  return std::nullopt;
}

const float kOne = 1, kZero = 0;

std::optional<cublasLtEpilogue_t> lt_epilogue(const Epilogue& e) {
  switch (e.activation) {
    case kActivation<gemm::Identity>: return e.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case kActivation<gemm::Relu>: return e.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case kActivation<gemm::GeluTanh>: return e.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default: break;
  }
  return std::nullopt;
}

}  // namespace

struct Cublas::Handles {
  Handles() : workspace(kWorkspaceBytes, "cuBLAS workspace") {
    CUBLAS_CHECK(cublasCreate(&blas));
    CUBLAS_CHECK(cublasLtCreate(&lt));
  }
  ~Handles() {
    cublasDestroy(blas);
    cublasLtDestroy(lt);
  }
  cublasHandle_t blas = nullptr;
  cublasLtHandle_t lt = nullptr;
  device::Buffer<unsigned char> workspace;
};

Cublas::Cublas() : handles_(std::make_shared<Handles>()) {}
Cublas::~Cublas() = default;

std::string Cublas::version() const {
  int v = 0;
  CUBLAS_CHECK(cublasGetVersion(handles_->blas, &v));
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}

std::vector<Cublas::Algorithm> Cublas::gemm_ex(const Operands& like, DType in, DType out) const {
  const auto gemm = in_terms_of_cublas(like);
  if (!gemm) return {};
  return {[handles = handles_, g = *gemm, in, out](const Operands& operands) {
    const Operands o = g.of(operands);
    CUBLAS_CHECK(cublasSetStream(handles->blas, device::stream()));
    CUBLAS_CHECK(cublasSetWorkspace(handles->blas, handles->workspace.data(), kWorkspaceBytes));  // setting the stream resets it
    CUBLAS_CHECK(cublasGemmEx(handles->blas, g.a.op, g.b.op, g.m, g.n, g.k, &kOne, o.A.data, cuda_type(in),
                              static_cast<int>(g.a.ld), o.B.data, cuda_type(in), static_cast<int>(g.b.ld), &kZero, o.C.data,
                              cuda_type(out), static_cast<int>(g.ldc), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }};
}

std::vector<Cublas::Algorithm> Cublas::lt_candidates(const Operands& like, DType in, DType out, const Epilogue& epilogue) const {
  const auto gemm = in_terms_of_cublas(like);
  const auto lt = lt_epilogue(epilogue);
  if (!gemm || !lt || (epilogue.bias && !gemm->transposed)) return {};  // its bias runs along the rows of its column-major C
  struct Description {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    ~Description() {
      for (const cublasLtMatrixLayout_t layout : {a, b, c})
        if (layout) cublasLtMatrixLayoutDestroy(layout);
      if (operation) cublasLtMatmulDescDestroy(operation);
    }
  };
  const auto d = std::make_shared<Description>();
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&d->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(d->operation, CUBLASLT_MATMUL_DESC_TRANSA, &gemm->a.op, sizeof gemm->a.op));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(d->operation, CUBLASLT_MATMUL_DESC_TRANSB, &gemm->b.op, sizeof gemm->b.op));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(d->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &*lt, sizeof *lt));
  const auto set_bias = [](cublasLtMatmulDesc_t operation, const void* bias) {
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  };
  if (epilogue.bias) set_bias(d->operation, like.bias);
  const auto layout = [&](cublasLtMatrixLayout_t* to, DType type, cublasOperation_t op, int rows, int cols, std::int64_t ld) {
    if (op == CUBLAS_OP_T) std::swap(rows, cols);
    CUBLAS_CHECK(
        cublasLtMatrixLayoutCreate(to, cuda_type(type), static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), ld));
  };
  layout(&d->a, in, gemm->a.op, gemm->m, gemm->k, gemm->a.ld);
  layout(&d->b, in, gemm->b.op, gemm->k, gemm->n, gemm->b.ld);
  layout(&d->c, out, CUBLAS_OP_N, gemm->m, gemm->n, gemm->ldc);

  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
                                       sizeof kWorkspaceBytes);
  // Heuristics assume 256-byte alignment unless they are told.
  const Operands o = gemm->of(like);
  const auto alignment = [](const void* p) {
    std::uint32_t a = 256;
    while (reinterpret_cast<std::uintptr_t>(p) % a) a /= 2;
    return a;
  };
  const std::uint32_t aligned[] = {alignment(o.A.data), alignment(o.B.data), alignment(o.C.data), alignment(o.C.data)};
  const cublasLtMatmulPreferenceAttributes_t attributes[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4; ++i) cublasLtMatmulPreferenceSetAttribute(preference, attributes[i], &aligned[i], sizeof aligned[i]);
  cublasLtMatmulHeuristicResult_t found[kMaxCandidates];
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handles_->lt, d->operation, d->a, d->b, d->c, d->c, preference, kMaxCandidates, found, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  CUBLAS_CHECK(status);

  std::vector<Algorithm> algorithms;
  for (int i = 0; i < count; ++i) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms.push_back([handles = handles_, d, g = *gemm, algorithm = found[i].algo, set_bias](const Operands& operands) {
      const Operands o = g.of(operands);
      if (o.bias) set_bias(d->operation, o.bias);
      CUBLAS_CHECK(cublasLtMatmul(handles->lt, d->operation, &kOne, o.A.data, d->a, o.B.data, d->b, &kZero, o.C.data, d->c,
                                  o.C.data, d->c, &algorithm, handles->workspace.data(), kWorkspaceBytes, device::stream()));
    });
  }
  return algorithms;
}

}  // namespace harness
