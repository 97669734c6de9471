// Inline PTX, each instruction beside what CUDA C++ or arithmetic says that it does. nvcc compiles it too, for sm_90a.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

__device__ unsigned failures;

__device__ void expect(bool right, int line) {
  if (!right && atomicAdd(&failures, 1u) < 5) printf("line %d, thread %u: wrong\n", line, threadIdx.x);
}
#define EXPECT(condition) expect(condition, __LINE__)

#define ASM_ADD(to, a, b) asm("add.s32 %0, %1, %2;" : "=r"(to) : "r"(a), "r"(b))
#define ASM_WITH_LINES(to, a)    \
  asm("{\n"                      \
      ".reg .u32 twice;\n"       \
      "add.u32 twice, %1, %1;\n" \
      "xor.b32 %0, twice, 1;\n"  \
      "}"                        \
      : "=r"(to)                 \
      : "r"(a))

__device__ uint32_t in_shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__global__ void integers(int seed) {
  const uint32_t a = (threadIdx.x + seed) * 2654435761u, b = threadIdx.x ^ 0x9e3779b9u, c = threadIdx.x;
  uint32_t r, low, high;
  int s;
  uint64_t w;
  ASM_ADD(s, static_cast<int>(a), -3);
  EXPECT(s == static_cast<int>(a - 3));
  ASM_WITH_LINES(r, a);
  EXPECT(r == ((2 * a) ^ 1));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  EXPECT(r == (a ^ b ^ c));
  asm("lop3.b32 %0, %1, %2, %3, 0xe2;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  EXPECT(r == ((b & a) | (~b & c)));
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(r) : "r"(a), "r"(b));
  EXPECT(r == __byte_perm(a, b, 0x5410));
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(a), "r"(b), "r"(c));
  EXPECT(static_cast<uint32_t>(s) == a * b + c);
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  EXPECT(r == __umulhi(a, b));
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(w) : "r"(a), "r"(b));
  EXPECT(w == uint64_t{a} * b);
  asm("shl.b32 %0, %1, 40;" : "=r"(r) : "r"(a));
  EXPECT(r == 0);
  asm("shr.s32 %0, %1, 40;" : "=r"(s) : "r"(0x80000000));
  EXPECT(s == -1);
  asm("mov.b64 %0, {%1, %2};" : "=l"(w) : "r"(a), "r"(b));
  EXPECT(w == (uint64_t{b} << 32 | a));
  asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(w));
  EXPECT(low == a && high == b);
  asm("bfi.b32 %0, %1, %2, 3, 7;" : "=r"(r) : "r"(a), "r"(b));
  EXPECT(r == ((b & ~(0x7fu << 3)) | (a & 0x7f) << 3));
  asm("bfe.u32 %0, %1, 5, 6;" : "=r"(r) : "r"(a));
  EXPECT(r == (a >> 5 & 63));
  asm("bfe.s32 %0, %1, 5, 6;" : "=r"(s) : "r"(a));
  EXPECT(s == (static_cast<int>(a << 21) >> 26));
  asm("bfe.s32 %0, %1, 28, 9;" : "=r"(s) : "r"(a));
  EXPECT(s == static_cast<int>(a) >> 28);
  asm("{ .reg .u32 one, two; add.cc.u32 one, %1, %2; addc.u32 two, %1, 0; xor.b32 %0, one, two; }" : "=r"(r) : "r"(a), "r"(b));
  EXPECT(r == ((a + b) ^ (a + (a + b < a))));
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(a), "r"(b), "r"(c));
  EXPECT(s == __dp4a(static_cast<int>(a), static_cast<int>(b), static_cast<int>(c)));
  asm("sad.s32 %0, %1, %2, 5;" : "=r"(r) : "r"(-3), "r"(c));
  EXPECT(r == c + 8);
  asm("mul.hi.u64 %0, %1, %2;" : "=l"(w) : "l"(uint64_t{a} << 32), "l"(uint64_t{b} << 32));
  EXPECT(w == uint64_t{a} * b);
  high = 3;
  asm("{ .reg .pred p; again: add.u32 %0, %0, 1; setp.lt.u32 p, %0, 50; @p bra again; }" : "+r"(high));
  EXPECT(high == 50);
  asm("shf.l.wrap.b32 %0, %1, %2, 7;" : "=r"(r) : "r"(a), "r"(b));
  EXPECT(r == __funnelshift_l(a, b, 7));
  asm("popc.b32 %0, %1;" : "=r"(r) : "r"(a));
  EXPECT(r == static_cast<uint32_t>(__popc(a)));
  asm("min.s32 %0, %1, %2;" : "=r"(s) : "r"(a), "r"(b));
  EXPECT(s == min(static_cast<int>(a), static_cast<int>(b)));
  asm volatile(
      "{\n\t"
      ".reg .pred p<2>;\n\t"
      "setp.lt.u32 p0, %1, 5;\n\t"
      "setp.ge.and.u32 p1, %1, 2, p0;\n\t"
      "selp.u32 %0, 1, 2, p0;\n\t"
      "@p1 add.u32 %0, %0, 100;\n\t"
      "@!p0 bra SKIP;\n\t"
      "add.u32 %0, %0, 10;\n\t"
      "SKIP:\n\t"
      "}"
      : "=r"(r)
      : "r"(c));
  EXPECT(r == (c < 5 ? 11 + (c >= 2 ? 100 : 0) : 2));
  asm("{ .reg .u32 i; mov.u32 i, 0; mov.u32 %0, 0; again: add.u32 i, i, 1; add.u32 %0, %0, i; { .reg .pred more; setp.lt.u32 more, "
      "i, %1; @more bra again; } }"
      : "=r"(r)
      : "r"(c + 1));
  EXPECT(r == (c + 1) * (c + 2) / 2);
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  EXPECT(r == threadIdx.x % 32);
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r));
  EXPECT(r == (1u << threadIdx.x % 32) - 1);
  asm("mov.u32 %0, %%tid.x;" : "=r"(r));
  EXPECT(r == threadIdx.x);
}

__global__ void floats() {
  const float x = threadIdx.x * 0.37f - 3, y = threadIdx.x + 0.5f;
  float f;
  uint32_t r;
  uint16_t h;
  int s;
  asm("fma.rn.f32 %0, %1, %2, 0f3f800000;" : "=f"(f) : "f"(x), "f"(y));
  EXPECT(f == fmaf(x, y, 1.0f));
  asm("copysign.f32 %0, %1, %2;" : "=f"(f) : "f"(x), "f"(y));
  EXPECT(f == copysignf(y, x));
  asm("max.f32 %0, %1, %2;" : "=f"(f) : "f"(x), "f"(y));
  EXPECT(f == fmaxf(x, y));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(f) : "f"(3.0f));
  EXPECT(f == 8);
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y));
  const __half2 two = __floats2half2_rn(y, x);
  EXPECT(r == *reinterpret_cast<const uint32_t*>(&two));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  EXPECT(h == __half_as_ushort(__float2half(x)));
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  EXPECT(f == __half2float(__float2half(x)));
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(s) : "f"(x));
  EXPECT(s == __float2int_rn(x));
  asm("cvt.rmi.s32.f32 %0, %1;" : "=r"(s) : "f"(x));
  EXPECT(s == __float2int_rd(x));
  asm("fma.rn.f16x2 %0, %1, %1, %1;" : "=r"(r) : "r"(*reinterpret_cast<const uint32_t*>(&two)));
  const __half2 fused = __hfma2(two, two, two);
  EXPECT(r == *reinterpret_cast<const uint32_t*>(&fused));
  asm("{ .reg .f16 low, high; mov.b32 {low, high}, %1; add.f16 low, low, high; mov.b32 %0, {low, high}; }"
      : "=r"(r)
      : "r"(*reinterpret_cast<const uint32_t*>(&two)));
  const __half2 summed = __halves2half2(__hadd(__low2half(two), __high2half(two)), __high2half(two));
  EXPECT(r == *reinterpret_cast<const uint32_t*>(&summed));
}

__global__ void memory(float4* vectors, unsigned* words, unsigned long long* pairs) {
  __shared__ float tile[128];
  const unsigned t = threadIdx.x;
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(vectors + t));
  EXPECT(v.x == 4.0f * t && v.w == 4.0f * t + 3);
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(in_shared(tile + 4 * t)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
  __syncwarp();
  float f;
  asm volatile("ld.shared.f32 %0, [%1+4];" : "=f"(f) : "r"(in_shared(tile + 4 * (31 - t))) : "memory");
  EXPECT(f == 4.0f * (31 - t) + 1);
  unsigned r;
  asm volatile("atom.global.add.u32 %0, [%1], 2;" : "=r"(r) : "l"(words) : "memory");
  EXPECT(r % 2 == 0 && r < 64);
  asm volatile("red.global.gpu.relaxed.add.u32 [%0], %1;" ::"l"(words + 1), "r"(t) : "memory");
  asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], 0, 7;" : "=r"(r) : "l"(words + 2) : "memory");
  EXPECT(r == 0 || r == 7);
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(r) : "l"(words + 2) : "memory");
  EXPECT(r == 7);
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(pairs + 2 * t), "l"(uint64_t{t}), "l"(uint64_t{t} << 40)
               : "memory");
  unsigned long long p, q;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(p), "=l"(q) : "l"(pairs + 2 * t) : "memory");
  EXPECT(p == t && q == static_cast<unsigned long long>(t) << 40);
}

template <int kRounds>
__global__ void restricted(const float4* __restrict__ vectors) {
  for (int i = 0; i < kRounds; ++i) {
    const unsigned at = threadIdx.x / 2 + i;
    float f;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(f) : "l"(&vectors[at]));
    EXPECT(f == 4.0f * at);
  }
}

__global__ void warps() {
  const unsigned lane = threadIdx.x;
  unsigned r, inside;
  asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 3, 0, -1; selp.u32 %1, 1, 0, p; }"
               : "=r"(r), "=r"(inside)
               : "r"(lane * 5));
  EXPECT(r == (lane < 3 ? lane * 5 : (lane - 3) * 5) && inside == (lane >= 3));
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(r) : "r"(lane));
  EXPECT(r == (lane ^ 1));
  asm volatile("shfl.sync.down.b32 %0, %1, 4, 0x181f, 0xffffffff;" : "=r"(r) : "r"(lane));  // in segments of 8
  EXPECT(r == (lane % 8 < 4 ? lane + 4 : lane));
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 9; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(r) : "r"(lane));
  EXPECT(r == 0x1ff);
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(lane));
  EXPECT(r == 31);
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(r));
  EXPECT(__popc(__ballot_sync(0xffffffff, r)) == 1);
  // Of a matrix whose element of row i and column j is 8 * i + j.
  const unsigned element = lane / 4 * 8 + lane % 4 * 2, mirrored = lane % 4 * 16 + lane / 4;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"((element + 1) << 16 | element));
  EXPECT(r == ((mirrored + 8) << 16 | mirrored));
  unsigned leader = 99, is_leader = 0;
  asm volatile(
      "{\n"
      ".reg .b32 %%rx;\n"
      ".reg .pred %%px;\n"
      "elect.sync %%rx|%%px, %2;\n"
      "@%%px mov.s32 %1, 1;\n"
      "mov.s32 %0, %%rx;\n"
      "}"
      : "+r"(leader), "+r"(is_leader)
      : "r"(0xffffffff));
  EXPECT(leader < 32 && is_leader == (leader == lane));
  asm volatile("bar.warp.sync 0xffffffff;");
}

// C = A · B for 16 x 8 x 16, by ldmatrix and both sums that mma.sync may have.
__global__ void matrices(const __half* A, const __half* B, float* C, __half* C16) {
  __shared__ __align__(16) __half a[16][16], b[8][16], back[16][16];
  const unsigned lane = threadIdx.x;
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16;" ::"r"(in_shared(&a[lane / 2][lane % 2 * 8])),
               "l"(A + lane * 8));
  asm volatile("{ .reg .pred p; setp.ge.u32 p, %2, 16; @!p cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(
                   in_shared(&b[lane / 2 % 8][lane % 2 * 8])),
               "l"(B + lane % 16 * 8), "r"(lane));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
  __syncwarp();
  uint32_t ra[4], rb[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(in_shared(&a[lane % 16][lane / 16 * 8])));
  asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared::cta.b16 {%0, %1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(in_shared(&b[lane % 8][lane / 8 % 2 * 8])));
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  uint32_t h[2];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
               : "=r"(h[0]), "=r"(h[1])
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), "r"(0), "r"(0));
  float e[4];
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
               : "=f"(e[0]), "=f"(e[1]), "=f"(e[2]), "=f"(e[3])
               : "r"(ra[0]), "r"(ra[1]), "r"(rb[0]), "f"(0.0f));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3])
               : "r"(ra[2]), "r"(ra[3]), "r"(rb[1]));
  const unsigned g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) {
    EXPECT(e[i] == d[i]);  // small integers: exact in any order
    C[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
  }
  for (int i = 0; i < 2; ++i) *reinterpret_cast<uint32_t*>(C16 + (g + 8 * i) * 8 + 2 * t) = h[i];
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(in_shared(&back[lane % 16][lane / 16 * 8])),
               "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]));
  __syncwarp();
  for (int i = 0; i < 8; ++i)
    EXPECT(__half_as_ushort(back[lane / 2][lane % 2 * 8 + i]) == __half_as_ushort(a[lane / 2][lane % 2 * 8 + i]));
}

// A ring of two stages that one thread fills, and an arrival whose state says what to wait for.
__global__ void ring(const float* in, float* out, int chunks) {
  __shared__ alignas(16) float stage[2][32];
  __shared__ uint64_t full[2], empty[2], once;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(full + i)), "r"(1));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(empty + i)), "r"(32));
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(in_shared(&once)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(in_shared(&once)) : "memory");
  for (uint32_t over = 0; !over;)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over)
                 : "r"(in_shared(&once)), "l"(state)
                 : "memory");
  const auto wait = [](uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra.uni DONE;\n"
        "bra.uni LAB_WAIT;\n"
        "DONE:\n"
        "}" ::"r"(in_shared(barrier)),
        "r"(parity)
        : "memory");
  };
  if (threadIdx.x >= 32) {
    if (threadIdx.x == 32)
      for (int i = 0; i < chunks; ++i) {
        wait(empty + i % 2, i / 2 % 2 ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(full + i % 2)), "r"(128) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         in_shared(stage[i % 2])),
                     "l"(in + 32 * i), "r"(128), "r"(in_shared(full + i % 2))
                     : "memory");
      }
    return;
  }
  float sum = 0;
  for (int i = 0; i < chunks; ++i) {
    wait(full + i % 2, i / 2 % 2);
    sum += stage[i % 2][threadIdx.x];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(in_shared(empty + i % 2)) : "memory");
  }
  stage[0][threadIdx.x] = sum;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync 1, 32;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(in_shared(stage[0])), "r"(128)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
}

__global__ void __cluster_dims__(2, 1, 1) clusters(unsigned* out) {
  __shared__ unsigned mine;
  __shared__ uint64_t arrived, sent;
  __shared__ __align__(16) float floats_of_other[4];
  __shared__ unsigned long long words_of_other[2];
  __shared__ unsigned word_of_other;
  const auto wait = [](uint64_t* barrier) {
    for (uint32_t over = 0; !over;)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(over)
                   : "r"(in_shared(barrier))
                   : "memory");
  };
  unsigned rank, there, value;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    mine = 100 + rank;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(in_shared(&arrived)));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(in_shared(&sent)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(in_shared(&mine)), "r"(rank ^ 1));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
  EXPECT(value == 100 + (rank ^ 1));
  if (threadIdx.x == 0) {
    out[rank] = value;
    asm volatile(
        "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
        "[remote]; }" ::"r"(in_shared(&arrived)),
        "r"(rank ^ 1)
        : "memory");
    wait(&arrived);
  }
  if (threadIdx.x == 0) {  // 16 + 16 + 4 bytes come
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 36;" ::"r"(in_shared(&sent)) : "memory");
    asm volatile(
        "{ .reg .b32 to, bar;\n"
        "mapa.shared::cluster.u32 bar, %3, %4;\n"
        "mapa.shared::cluster.u32 to, %0, %4;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [to], {%5, 0f40000000, 0f40400000, 0f40800000}, [bar];\n"
        "mapa.shared::cluster.u32 to, %1, %4;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [to], {%6, 7}, [bar];\n"
        "mapa.shared::cluster.u32 to, %2, %4;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [to], %4, [bar]; }" ::"r"(in_shared(floats_of_other)),
        "r"(in_shared(words_of_other)), "r"(in_shared(&word_of_other)), "r"(in_shared(&sent)), "r"(rank ^ 1), "f"(1.0f + rank),
        "l"(1ull << 40 | rank)
        : "memory");
  }
  wait(&sent);
  EXPECT(floats_of_other[0] == 1.0f + (rank ^ 1) && floats_of_other[1] == 2 && floats_of_other[2] == 3 && floats_of_other[3] == 4);
  EXPECT(words_of_other[0] == (1ull << 40 | (rank ^ 1)) && words_of_other[1] == 7);
  EXPECT(word_of_other == rank);
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

int main() {
  float4* vectors;
  unsigned* words;
  unsigned long long* pairs;
  __half *A, *B, *C16;
  float *C, *sums;
  cudaMallocManaged(&vectors, 32 * sizeof(float4));
  cudaMallocManaged(&words, 4 * sizeof(unsigned));
  cudaMallocManaged(&pairs, 64 * sizeof(unsigned long long));
  cudaMallocManaged(&A, 16 * 16 * sizeof(__half));
  cudaMallocManaged(&B, 16 * 8 * sizeof(__half));
  cudaMallocManaged(&C, 16 * 8 * sizeof(float));
  cudaMallocManaged(&C16, 16 * 8 * sizeof(__half));
  cudaMallocManaged(&sums, 32 * sizeof(float));
  for (int i = 0; i < 32; ++i) vectors[i] = {4.0f * i, 4.0f * i + 1, 4.0f * i + 2, 4.0f * i + 3};
  for (int i = 0; i < 4; ++i) words[i] = 0;
  for (int i = 0; i < 16 * 16; ++i) A[i] = __float2half(i * 7 % 13 - 6);
  for (int i = 0; i < 8 * 16; ++i) B[i] = __float2half(i * 5 % 11 - 5);
  integers<<<2, 64>>>(3);
  floats<<<1, 32>>>();
  memory<<<1, 32>>>(vectors, words, pairs);
  restricted<2><<<1, 32>>>(vectors);
  warps<<<1, 32>>>();
  matrices<<<1, 32>>>(A, B, C, C16);
  ring<<<1, 64>>>(reinterpret_cast<const float*>(vectors), sums, 4);
  clusters<<<2, 32>>>(words + 2);
  if (cudaDeviceSynchronize() != cudaSuccess) return puts("a kernel failed"), 1;
  int wrong = words[0] != 64 || words[1] != 496 || words[2] != 101 || words[3] != 100;
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += __half2float(A[row * 16 + k]) * __half2float(B[column * 16 + k]);
      wrong += sum != C[row * 8 + column] || sum != __half2float(C16[row * 8 + column]);
    }
  for (int i = 0; i < 32; ++i) wrong += sums[i] != 4 * i + 4 * 48;
  unsigned failed = 0;
  cudaMemcpyFromSymbol(&failed, failures, sizeof failed);
  puts(wrong || failed ? "WRONG" : "right");
  return wrong || failed;
}
