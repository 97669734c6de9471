/// @file
/// Copies of tiles to shared memory. Explained by lesson 03, steps/03_tensor_core/README.md; word for word as there.
#pragma once

#include "common/device/learnt/swizzle.cuh"
#include "common/device/tile_source.cuh"

namespace learnt {

/// Starts copying the next tile of g to s, a whole one: each thread the same chunk of every kStep-th row.
template <class Source, class In>
__device__ __forceinline__ void copy_whole_tile(Source& g, In* s) {
  In* const first = s + swizzled<Source::kRow>(g.row(), g.chunk());
  const In* from = g.data();
#pragma unroll
  for (int i = 0; i < Source::kRows; i += Source::kStep) {  // the swizzle is the same every eight rows
    In* const to = Source::kStep % 8 == 0 ? first + i * Source::kRow : s + swizzled<Source::kRow>(g.row() + i, g.chunk());
    device::cp_async_cg_16_if(g.has_chunk(i), to, from);
    from += Source::kStep * g.row_stride();
  }
  g.next_tile();
}
/// The same for any tile, zeros where g has ended; k_left is how much of k is left.
template <class Source, class In>
__device__ __forceinline__ void copy_tile(Source& g, In* s, int64_t k_left) {
  if (g.ends_with_chunk() && k_left >= Source::kBlockK) return copy_whole_tile(g, s);
  In* const first = s + swizzled<Source::kRow>(g.row(), g.chunk());
#pragma unroll 4
  for (int i = 0; i < Source::kRows; i += Source::kStep) {
    In* const to = Source::kStep % 8 == 0 ? first + i * Source::kRow : s + swizzled<Source::kRow>(g.row() + i, g.chunk());
    device::copy_chunk(to, g.data() + i * g.row_stride(), g.elements(i, k_left));
  }
  g.next_tile();
}

}  // namespace learnt
