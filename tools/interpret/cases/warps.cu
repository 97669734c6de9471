// 0 ok : segmented scan by shuffles, flags travel along
// 1 bug synccheck - : the shuffle stands inside if (lane >= d) with a full mask
// 2 ok : sums of 16 lanes by shuffles of width 16
// 3 bug synccheck - : a width of 12
// 4 ok : histogram by match_any, leaders add atomically
// 5 bug racecheck bins : leaders of several warps add plainly
// 6 ok : lanes with odd values take turns, mask by ballot before the branch
// 7 bug synccheck - : the same with a mask of even lanes
// 8 bug synccheck - : mask 0xffff, called by all lanes
// 9 bug synccheck - : lanes from 24 on have left, full mask, their values are used
// 10 ok : reduce_add by halves with their own masks
// 11 ok : transposition in shared memory of a warp, __syncwarp before and after
// 12 bug racecheck tile : no __syncwarp after the read, the next round overwrites
// 13 ok : compaction of a warp by ballot, lanes beyond n vote 0
// 14 ok : loop until no lane has work, __any_sync by all
// 15 bug synccheck|deadlock - : lanes leave the loop, the others vote with a full mask
// 16 ok : butterfly maximum with index
// 17 bug synccheck|deadlock - : __syncwarp of all 32 in a branch of 16 lanes, the other 16 come to another
// 18 ok : rotation by shfl with (lane + 1) & 31
// 19 bug racecheck total : lane 0 of each warp stores its sum to one shared word
// 20 ok : last lane's inclusive sum by shfl is the total for all
// 21 bug racecheck sums : warp 0 adds the warps' sums without a barrier
// 22 bug synccheck - : match_all in a warp of which one half has gone another way
// 23 ok : bit transposition by ballots
// 24 ok : quads exchange by shfl_xor inside a branch of whole quads with a quad's mask
// 25 bug synccheck|deadlock - : __reduce_add_sync names a lane that is in another branch
#include "case.h"
constexpr unsigned kAll = 0xffffffff;
template <int V> __global__ void segments(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  int x = in[i], head = x % 5 == 0;
  for (int d = 1; d < 32; d *= 2) {
    if (V == 1) {
      if (lane >= d) {
        const int y = __shfl_up_sync(kAll, x, d), h = __shfl_up_sync(kAll, head, d);  // @1
        if (!head) x += y, head = h;
      }
    } else {
      const int y = __shfl_up_sync(kAll, x, d), h = __shfl_up_sync(kAll, head, d);
      if (lane >= d && !head) x += y, head = h;
    }
  }
  out[i] = x;
}
template <int V> __global__ void some(const int* in, int* out, int n) {
  __shared__ int bins[8], tile[2][32][33], sums[2], total;
  const int t = threadIdx.x, i = blockIdx.x * 64 + t, lane = t % 32, warp = t / 32;
  int x = in[i];
  if (V == 2 || V == 3) {
    for (int d = 8; d; d /= 2) x += __shfl_down_sync(kAll, x, d, V == 2 ? 16 : 12);  // @3
    out[i] = __shfl_sync(kAll, x, 0, 16);
  } else if (V == 4 || V == 5) {
    if (t < 8) bins[t] = 0;
    __syncthreads();
    const unsigned peers = __match_any_sync(kAll, x % 8);
    if (lane == __ffs(peers) - 1) {
      if (V == 4) atomicAdd(&bins[x % 8], __popc(peers));
      else bins[x % 8] += __popc(peers);  // @5
    }
    __syncthreads();
    out[i] = bins[x % 8];
  } else if (V == 6 || V == 7) {
    const unsigned odd = __ballot_sync(kAll, x % 2);
    if (x % 2) {
      const unsigned mask = V == 6 ? odd : 0x55555555;
      x = __shfl_sync(mask, x, __ffs(mask) - 1);  // @7
    }
    out[i] = x;
  } else if (V == 8) {
    out[i] = __shfl_xor_sync(0xffff, x, 1);  // @8
  } else if (V == 9) {
    if (lane >= 24) return;
    for (int d = 16; d; d /= 2) x += __shfl_down_sync(kAll, x, d);  // @9
    out[i] = x;
  } else if (V == 10) {
    out[i] = lane < 16 ? __reduce_add_sync(0xffff, x) : __reduce_add_sync(0xffff0000, x);
  } else if (V == 11 || V == 12) {
    for (int r = 0; r < 2; ++r) {
      for (int row = 0; row < 32; ++row) tile[warp][row][lane] = x + row + r;  // @12
      __syncwarp();
      int s = 0;
      for (int c = 0; c < 32; ++c) s += tile[warp][lane][c];  // @12
      if (V == 11) __syncwarp();
      x = s;
    }
    out[i] = x;
  } else if (V == 13) {
    const bool keep = i % 64 < 50 && x % 3 == 0;
    const unsigned who = __ballot_sync(kAll, keep);
    if (keep) out[i / 32 * 32 + __popc(who & (1u << lane) - 1)] = x;
  } else if (V == 14) {
    int rounds = 0;
    while (__any_sync(kAll, x > 0)) {
      x -= 100;
      ++rounds;
    }
    out[i] = rounds;
  } else if (V == 15) {
    int rounds = 0;
    while (x > 0) {
      x -= 100;
      ++rounds;
      if (!__any_sync(kAll, x > 0)) break;  // @15
    }
    out[i] = rounds;
    __syncthreads();
  } else if (V == 16) {
    int at = lane;
    for (int d = 16; d; d /= 2) {
      const int y = __shfl_xor_sync(kAll, x, d), a = __shfl_xor_sync(kAll, at, d);
      if (y > x || (y == x && a < at)) x = y, at = a;
    }
    out[i] = at;
  } else if (V == 17) {
    if (lane < 16) {
      x += __shfl_xor_sync(0xffff, x, 1);
      __syncwarp();  // @17
    } else {
      x += __shfl_xor_sync(0xffff0000, x, 1);
      __shfl_sync(0xffff0000, x, 16);
      __ballot_sync(kAll, x);  // @17
    }
    out[i] = x;
  } else if (V == 18) {
    out[i] = __shfl_sync(kAll, x, lane + 1 & 31);
  } else if (V == 19) {
    x = __reduce_add_sync(kAll, x);
    if (lane == 0) total = x;  // @19
    __syncthreads();
    out[i] = total;
  } else if (V == 20) {
    for (int d = 1; d < 32; d *= 2) {
      const int y = __shfl_up_sync(kAll, x, d);
      if (lane >= d) x += y;
    }
    out[i] = __shfl_sync(kAll, x, 31) - x;
  } else if (V == 21) {
    x = __reduce_add_sync(kAll, x);
    if (lane == 0) sums[warp] = x;  // @21
    if (t == 0) out[i] = sums[0] + sums[1];  // @21
  } else if (V == 22) {
    int p = 0;
    if (lane < 16) p = __match_all_sync(kAll, x, &p);  // @22
    __syncthreads();
    out[i] = p;
  } else if (V == 23) {
    int y = 0;
    for (int b = 0; b < 32; ++b) {
      const unsigned bits = __ballot_sync(kAll, x >> b & 1);
      if (lane == b) y = int(bits);
    }
    out[i] = y;
  } else if (V == 24) {
    if (lane / 4 % 2) {
      const unsigned quad = 0xfu << (lane & 28);
      x += __shfl_xor_sync(quad, x, 1, 4);
      x += __shfl_xor_sync(quad, x, 2, 4);
    }
    out[i] = x;
  } else if (V == 25) {
    if (lane < 8) x = __reduce_add_sync(0x1ff, x);  // @25
    else x = __reduce_max_sync(0xffffff00, x);  // @25
    __syncthreads();
    out[i] = x;
  }
}
template <int V> int test() {
  return check(V <= 1 ? segments<V> : some<V>, 2, 64, 128, 128, [](auto& in, int i) {
    const int w = i / 32 * 32, l = i % 32;
    auto sum = [&](int a, int n) { int s = 0; for (int j = a; j < a + n; ++j) s += in[j]; return s; };
    if (V <= 1) { int s = in[i], j = i; while (in[j] % 5 && j % 32) s += in[--j]; return s; }
    if (V == 2 || V == 3 || V == 10) return sum(i / 16 * 16, 16);
    if (V == 4 || V == 5) { int s = 0; for (int j = 0; j < 64; ++j) s += in[i / 64 * 64 + j] % 8 == in[i] % 8; return s; }
    if (V == 6) { if (in[i] % 2 == 0) return in[i]; int j = w; while (in[j] % 2 == 0) ++j; return in[j]; }
    if (V == 11) { int s = 0, s0 = 0; for (int c = 0; c < 32; ++c) s0 += in[w + c]; for (int c = 0; c < 32; ++c) s += s0 + 32 * c + l + 1; return s; }
    if (V == 13) { std::vector<int> k; for (int j = w; j < w + 32; ++j) if (j % 64 < 50 && in[j] % 3 == 0) k.push_back(in[j]); return l < int(k.size()) ? k[l] : 0; }
    if (V == 14) { int m = 0; for (int j = w; j < w + 32; ++j) m = std::max(m, in[j]); return (m + 99) / 100; }
    if (V == 16) return int(std::max_element(in.begin() + w, in.begin() + w + 32) - in.begin()) - w;
    if (V == 18) return in[w + (l + 1) % 32];
    if (V == 20) return sum(i + 1, 31 - l);
    if (V == 23) { unsigned y = 0; for (int j = 0; j < 32; ++j) y |= unsigned(in[w + j] >> l & 1) << j; return int(y); }
    if (V == 24) return l / 4 % 2 ? sum(i / 4 * 4, 4) : in[i];
    return in[i];
  });
}
MAIN(26)
