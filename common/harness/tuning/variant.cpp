#include <stdexcept>

#include "common/harness/problem/activation_kernel.h"
#include "common/harness/program/step.h"

namespace harness {
namespace {

const Fused* find(const Variant& v, const Epilogue& e) {
  for (const Fused& f : v.fused)
    if (f.activation == e.activation && (f.takes_bias || !e.bias)) return &f;
  return nullptr;
}

}  // namespace

bool Variant::has(const Epilogue& e) const { return (e.is_identity() && gemm) || unfused || find(*this, e); }

Variant without_fusing(const Variant& v) {
  Variant alone = v;
  alone.tile += ", unfused";
  alone.fused.clear();
  alone.unfused = true;
  return alone;
}

void Variant::run(const Epilogue& e, const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void* bias) const {
  if (e.is_identity()) return gemm(A, B, C);
  if (unfused) {
    gemm(A, B, C);
    return launch_activation(out, C, e, bias);
  }
  const Fused* const f = find(*this, e);
  if (!f) throw std::invalid_argument(tile + " was not built with the epilogue " + name(e));
  f->gemm(A, B, C, e.bias ? bias : nullptr);
}

}  // namespace harness
