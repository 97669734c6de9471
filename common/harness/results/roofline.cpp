#include "common/harness/results/roofline.h"

#include <algorithm>
#include <cmath>

#include "common/harness/program/text.h"

namespace harness {
namespace {

ByteModel model(double bytes, double flops, const Ceilings& ceilings, double peak) {
  ByteModel m{bytes, {}, {}};
  if (bytes <= 0) return m;
  m.intensity = flops / bytes;
  m.bound = std::min(peak, *m.intensity * ceilings.copy_bytes);
  return m;
}

}  // namespace

Roofline roofline(const Spec& s, int tile_m, int tile_n, const Ceilings& ceilings, bool wgmma) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  const double in = static_cast<double>(bytes(s.in)), out = static_cast<double>(bytes(s.out));
  Roofline r;
  r.flops = s.flops();
  r.peak = ceilings.peak(s.in, wgmma);
  r.ridge = r.peak / ceilings.copy_bytes;
  r.tile_m = tile_m, r.tile_n = tile_n;
  const auto of = [&](double bytes) { return model(bytes, r.flops, ceilings, r.peak); };
  r.no_reuse = of(in * (m * k * n + k * n * m));
  r.tile_reuse = of(in * (m * k * std::ceil(n / tile_n) + k * n * std::ceil(m / tile_m)));
  r.compulsory = of(in * (m * k + k * n) + out * (m + (s.epilogue.bias ? 1 : 0)) * n);
  if (!s.epilogue.is_identity()) r.saved_bytes = 2 * out * m * n;
  return r;
}

std::string note(const Roofline& r, std::optional<double> rate) {
  if (r.flops == 0 || !r.tile_reuse.bound) return "Nothing to multiply, so there is no bound.";
  const bool shares = r.tile_m > 1 || r.tile_n > 1;
  const ByteModel& loads = shares ? r.tile_reuse : r.no_reuse;
  std::string text =
      shares ? "Loading the operands of each " + std::to_string(r.tile_m) + "x" + std::to_string(r.tile_n) + " tile once reads "
             : "If every multiply-add loads its operands, it reads ";
  text += with_prefix(loads.bytes) + "B: " + digits(*loads.intensity) + " FLOP/byte, ";
  text += *loads.intensity < r.ridge
              ? "left of the ridge at " + digits(r.ridge) + ", so memory bounds it at " + with_prefix(*loads.bound) + "FLOP/s"
              : "right of the ridge at " + digits(r.ridge) + ", so arithmetic bounds it at " + with_prefix(*loads.bound) + "FLOP/s";
  if (*r.compulsory.bound < r.peak)
    text += "; moving everything just once, memory still bounds it at " + with_prefix(*r.compulsory.bound) + "FLOP/s";
  text += ".";
  if (r.saved_bytes > 0)
    text += " A separate kernel for the epilogue would read and write C again: fused, it saves " + with_prefix(r.saved_bytes) +
            "B, " + digits(100 * r.saved_bytes / (r.compulsory.bytes + r.saved_bytes)) + " % of what both must move.";
  if (!rate) return text;
  text += " Measured: " + with_prefix(*rate) + "FLOP/s, " + digits(100 * *rate / *r.compulsory.bound) + " % of the roofline";
  if (*rate > *loads.bound)
    text += ", " + digits(*rate / *loads.bound) + " times that bound: caches answer most of the loads";
  else if (*loads.bound >= r.peak)
    text += ": the rest is time in which arithmetic units wait or have nothing to do";
  return text + ".";
}

}  // namespace harness
