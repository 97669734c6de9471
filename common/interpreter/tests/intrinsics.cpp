// Functions that CUDA gives to device code alone: bits and values that its documentation says, some from a GPU.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "common/interpreter/tests/orders.h"

using device::Buffer;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("directed rounding brackets the exact result") {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-100, 100);
  for (int i = 0; i < 2000; ++i) {
    const float a = number(random), b = number(random), c = number(random);
    const long double sum = static_cast<long double>(a) + b, product = static_cast<long double>(a) * b;
    CHECK(__fadd_rd(a, b) <= sum);
    CHECK(__fadd_ru(a, b) >= sum);
    CHECK(std::fabs(__fadd_rz(a, b)) <= std::fabs(sum));
    CHECK((__fadd_rn(a, b) == __fadd_rd(a, b) || __fadd_rn(a, b) == __fadd_ru(a, b)));
    CHECK(__fadd_ru(a, b) <= std::nextafter(__fadd_rd(a, b), kInfinity));
    CHECK(__fsub_rd(a, b) <= static_cast<long double>(a) - b);
    CHECK(__fmul_rd(a, b) <= product);
    CHECK(__fmul_ru(a, b) >= product);
    CHECK(__fdiv_rd(a, b) <= static_cast<long double>(a) / b);
    CHECK(__fdiv_ru(a, b) >= static_cast<long double>(a) / b);
    CHECK(__fmaf_rd(a, b, c) <= product + c);
    CHECK(__fmaf_ru(a, b, c) >= product + c);
    CHECK(__dadd_rd(a, b) <= sum);
    CHECK(__double2float_rd(a * 1.000000001) <= a * 1.000000001);
    CHECK(__double2float_ru(a * 1.000000001) >= a * 1.000000001);
  }
  CHECK(__fsqrt_rd(2) < __fsqrt_ru(2));
  CHECK(__frcp_rd(3) < __frcp_ru(3));
  CHECK(__fadd_rn(1, 1e-9f) == 1);  // and the mode is as before
}

TEST_CASE("conversions to integers round, and stop at the ends") {
  CHECK(__float2int_rn(2.5f) == 2);
  CHECK(__float2int_rn(3.5f) == 4);
  CHECK(__float2int_rz(-2.7f) == -2);
  CHECK(__float2int_rd(-2.1f) == -3);
  CHECK(__float2int_ru(2.1f) == 3);
  CHECK(__float2int_rz(3e9f) == 0x7fffffff);
  CHECK(__float2int_rz(-kInfinity) == std::numeric_limits<int>::min());
  CHECK(__float2int_rz(kNan) == 0);
  CHECK(__float2uint_rz(-5.0f) == 0);
  CHECK(__float2uint_rz(kInfinity) == 0xffffffffu);
  CHECK(__float2ll_rz(1e30f) == std::numeric_limits<long long>::max());
  CHECK(__float2ll_rz(kNan) == std::numeric_limits<long long>::min());
  CHECK(__double2ull_rz(1e30) == std::numeric_limits<unsigned long long>::max());
  CHECK(__int2float_rz(0x7fffffff) == 2147483520.0f);
  CHECK(__int2float_ru(0x7fffffff) == 2147483648.0f);
  CHECK(__ull2double_rd(~0ull) == 18446744073709549568.0);
}

TEST_CASE("bits of a double") {
  CHECK(__double_as_longlong(1.0) == 0x3ff0000000000000);
  CHECK(__longlong_as_double(0x4000000000000000) == 2.0);
  CHECK(__double2hiint(-1.0) == static_cast<int>(0xbff00000));
  CHECK(__hiloint2double(0x3ff00000, 1) == 1.0 + 0x1p-52);
  CHECK(__double2loint(__hiloint2double(5, -7)) == -7);
}

TEST_CASE("integers: products, averages, dot products, bits") {
  CHECK(__mul64hi(-1, 2) == -1);
  CHECK(__umul64hi(1ull << 63, 6) == 3);
  CHECK(__umul24(0xff000003u, 5) == 15);
  CHECK(__sad(-5, 7, 1u) == 13);
  CHECK(__sad(std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), 0u) == 0xffffffffu);
  CHECK(__usad(1u, 2u, 3u) == 4);
  CHECK(__hadd(-3, 0) == -2);
  CHECK(__rhadd(0x7fffffff, 0x7fffffff) == 0x7fffffff);
  CHECK(__uhadd(0xffffffffu, 0xfffffffdu) == 0xfffffffeu);
  CHECK(__brevll(1) == 1ull << 63);
  CHECK(__dp4a(static_cast<int>(0xff020304), 0x01010101, 10) == 18);
  CHECK(__dp4a(0xff020304u, 0x01010101u, 10u) == 274);
  CHECK(__dp2a_lo(static_cast<int>(0xffff0002), 0x04030201, 0) == 0);
  CHECK(__dp2a_hi(static_cast<int>(0xffff0002), 0x04030201, 0) == 2);
  CHECK(__funnelshift_lc(1, 2, 40) == 1);
  CHECK(__funnelshift_rc(1, 2, 32) == 2);
  CHECK(__fns(0b10110, 0, 2) == 2);
  CHECK(__fns(0b10110, 4, -2) == 2);
  CHECK(__fns(0, 0, 1) == ~0u);
}

TEST_CASE("integers in the lanes of a word") {
  CHECK(__vadd4(0xff010203u, 0x01020304u) == 0x00030507u);
  CHECK(__vsub2(0x00000001u, 0x00010002u) == 0xffffffffu);
  CHECK(__vaddss2(0x7fff8000u, 0x0001ffffu) == 0x7fff8000u);
  CHECK(__vaddus4(0xff010203u, 0x01020304u) == 0xff030507u);
  CHECK(__vsubus4(0x01020304u, 0x02010101u) == 0x00010203u);
  CHECK(__vabs2(0xffff0003u) == 0x00010003u);
  CHECK(__vabsss2(0x8000ffffu) == 0x7fff0001u);
  CHECK(__vneg4(0x01ff0080u) == 0xff010080u);
  CHECK(__vmaxs4(0xff010203u, 0x00000000u) == 0x00010203u);
  CHECK(__vmaxu4(0xff010203u, 0x00000000u) == 0xff010203u);
  CHECK(__vmins2(0xffff0003u, 0x00010001u) == 0xffff0001u);
  CHECK(__vavgu4(0x01020304u, 0x02020404u) == 0x02020404u);
  CHECK(__vhaddu4(0x01020304u, 0x02020404u) == 0x01020304u);
  CHECK(__vcmpgts4(0x01ff0000u, 0x00000000u) == 0xff000000u);
  CHECK(__vsetgtu4(0x01ff0000u, 0x00000000u) == 0x01010000u);
  CHECK(__vcmpeq2(0x12345678u, 0x12340000u) == 0xffff0000u);
  CHECK(__vsadu4(0x01020304u, 0x04030201u) == 8);
  CHECK(__vsads4(0xff000000u, 0x01000000u) == 2);
}

TEST_CASE("DPX: maxima and minima of sums, of three, with 0") {
  CHECK(__vimax3_s32(-1, 5, 2) == 5);
  CHECK(__vimin3_u32(3u, ~0u, 2u) == 2);
  CHECK(__vimin3_s32_relu(4, -7, 9) == 0);
  CHECK(__vimax_s32_relu(-4, -7) == 0);
  CHECK(__viaddmax_s32(3, 4, 5) == 7);
  CHECK(__viaddmax_s32(std::numeric_limits<int>::max(), 1, -9) == -9);  // the sum wraps around
  CHECK(__viaddmin_u32(~0u, 2u, 7u) == 1);
  CHECK(__viaddmin_s32_relu(-3, 1, 5) == 0);
  CHECK(__vimax3_s16x2(0xffff0001u, 0x00020003u, 0x00008000u) == 0x00020003u);
  CHECK(__vimax3_u16x2(0xffff0001u, 0x00020003u, 0x00008000u) == 0xffff8000u);
  CHECK(__viaddmax_s16x2(0x7fff0001u, 0x00010001u, 0x00050005u) == 0x00050005u);
  CHECK(__viaddmin_u16x2(0xffff0001u, 0x00020001u, 0x00050005u) == 0x00010002u);
  CHECK(__vimin_s16x2_relu(0xffff0003u, 0x00010002u) == 0x00000002u);
  CHECK(__viaddmax_s16x2_relu(0xffff0001u, 0xffff0001u, 0xfffe0000u) == 0x00000002u);
  bool first = false, high = true, low = false;
  CHECK(__vibmax_s32(2, 1, &first) == 2);
  CHECK(first);
  CHECK(__vibmin_u32(2u, 1u, &first) == 1);
  CHECK_FALSE(first);
  CHECK(__vibmax_s16x2(0xffff0002u, 0x00010002u, &high, &low) == 0x00010002u);
  CHECK_FALSE(high);
  CHECK(low);
  CHECK(__vibmin_u16x2(0xffff0002u, 0x00010001u, &high, &low) == 0x00010001u);
  CHECK_FALSE(high);
  CHECK_FALSE(low);
}

TEST_CASE("mathematical functions that CUDA alone has") {
  CHECK(sinpif(1) == 0);
  CHECK(sinpif(0.5f) == 1);
  CHECK(cospif(0.5f) == 0);
  CHECK(sinpi(1e6 + 0.25) == doctest::Approx(std::sqrt(0.5)));
  CHECK(rcbrt(8.0) == doctest::Approx(0.5));
  CHECK(rhypotf(3, 4) == doctest::Approx(0.2));
  CHECK(norm3df(1, 2, 2) == doctest::Approx(3));
  CHECK(rnorm4d(1, 1, 1, 1) == doctest::Approx(0.5));
  CHECK(normcdf(0.0) == doctest::Approx(0.5));
  CHECK(normcdf(1.96) == doctest::Approx(0.9750021));
  CHECK(normcdfinv(0.975) == doctest::Approx(1.959963985));
  CHECK(erfcx(0.0) == doctest::Approx(1));
  for (const double x : {-0.99, -0.5, 0.0, 1e-8, 0.3, 0.999999}) CHECK(std::erf(erfinv(x)) == doctest::Approx(x).epsilon(1e-12));
  for (const double y : {1e-200, 1e-10, 0.5, 1.5, 1.99}) CHECK(std::erfc(erfcinv(y)) == doctest::Approx(y).epsilon(1e-9));
  CHECK(std::isinf(erfinv(1.0)));
  CHECK(std::isnan(erfinv(2.0)));
}

// A sum of three terms whose exact value lies just beside the middle between two numbers of 8 bits.
TEST_CASE("fma of 16-bit numbers rounds once") {
  const auto bf16 = [](float x) { return __float2bfloat16(x); };
  // 1 + 2^-8 is the middle between 1 and 1 + 2^-7; the tiny addend decides.
  const __nv_bfloat16 one = bf16(1), above = bf16(0x1p-8f), product = bf16(1.0078125f);
  CHECK(__bfloat162float(__hfma(one, above, one)) == 1.0f);
  // (1 + 2^-4)^2 = 1 + 2^-3 + 2^-8 is the middle; the addend is too small for a double's sum.
  const __nv_bfloat16 x = bf16(1 + 0x1p-4f);
  CHECK(__bfloat162float(__hfma(x, x, bf16(0x1p-80f))) == 1 + 0x1p-3f + 0x1p-7f);
  CHECK(__bfloat162float(__hfma(x, x, bf16(-0x1p-80f))) == 1 + 0x1p-3f);
  CHECK(__bfloat162float(__hfma(x, x, bf16(0))) == 1 + 0x1p-3f);
  CHECK(__bfloat162float(product) == 1.0078125f);
  const auto half = [](float x) { return __float2half(x); };
  CHECK(__half2float(__hfma(half(3), half(5), half(-16))) == -1);
  CHECK(std::isinf(__half2float(__hfma(half(300), half(300), half(0)))));
  CHECK(std::isnan(__half2float(__hfma(half(kInfinity), half(0), half(0)))));
  CHECK(__half2float(__hfma_relu(half(-1), half(2), half(1))) == 0);
  CHECK(std::isnan(__half2float(__hfma_relu(half(kNan), half(2), half(1)))));
  CHECK(__half2float(__hfma_sat(half(3), half(2), half(1))) == 1);
  CHECK(__half2float(__hfma_sat(half(kNan), half(2), half(1))) == 0);
}

TEST_CASE("functions of 16-bit numbers") {
  const auto half = [](float x) { return __float2half(x); };
  CHECK(__half2float(hexp(half(1))) == 2.71875f);
  CHECK(__half2float(hsqrt(half(2))) == 1.4140625f);
  CHECK(__half2float(hrcp(half(3))) == 0.333251953125f);
  CHECK(__half2float(htrunc(half(-2.5f))) == -2);
  CHECK(__half2float(hrint(half(2.5f))) == 2);
  CHECK(__half2int_rn(half(2.5f)) == 2);
  CHECK(__half2int_ru(half(2.5f)) == 3);
  CHECK(__half2short_rn(half(60000)) == 32767);
  CHECK(__half2uint_rd(half(-1)) == 0);
  CHECK(__half2int_rn(half(kNan)) == 0);
  CHECK(__bfloat162float(__int2bfloat16_rz(0x7fffffff)) == 2139095040.0f);
  CHECK(__bfloat162float(__int2bfloat16_ru(257)) == 258);
  CHECK(__bfloat162float(hexp2(__float2bfloat16(3))) == 8);
  const __half2 sum = __hcmadd(__floats2half2_rn(1, 2), __floats2half2_rn(3, 4), __floats2half2_rn(10, 20));
  CHECK(__low2float(sum) == 10 + 3 - 8);
  CHECK(__high2float(sum) == 20 + 4 + 6);
}

__constant__ int in_constant_memory[4];

__global__ void spaces(int* out) {
  __shared__ int statics[4];
  int mine = 1;
  out[0] = __isShared(statics) && __isShared(device::dynamic_smem<int>()) && !__isGlobal(statics);
  out[1] = __isGlobal(out) && !__isShared(out) && !__isLocal(out);
  out[2] = __isLocal(&mine) && !__isGlobal(&mine);
  out[3] = __isConstant(in_constant_memory) && !__isGlobal(in_constant_memory);
}

TEST_CASE("address spaces") {
  const Buffer<int> out(4, "out");
  device::launch(spaces, 1, 1, 64, out.data());
  CHECK(out.download() == std::vector<int>(4, 1));
}

__global__ void vectors(float4* sum, float2* pairs) {
  atomicAdd(sum, make_float4(1, 2, 3, 4));
  atomicAdd(&pairs[threadIdx.x % 2], make_float2(1, -1));
}

TEST_CASE("atomics on vectors") {
  in_all_orders([] {
    const Buffer<float4> sum(std::vector<float4>(1, make_float4(0, 0, 0, 0)), "sum");
    const Buffer<float2> pairs(std::vector<float2>(2, make_float2(0, 0)), "pairs");
    device::launch(vectors, 2, 64, 0, sum.data(), pairs.data());
    CHECK(sum.download()[0].w == 512);
    CHECK(pairs.download()[1].y == -64);
  });
}

__global__ void nodes_of_a_list(float** nodes, float* out) {
  nodes[threadIdx.x] = new float(static_cast<float>(threadIdx.x));
  __syncthreads();
  out[threadIdx.x] = *nodes[31 - threadIdx.x];
  __syncthreads();
  delete nodes[threadIdx.x];
}
struct Node {
  int value;
  Node* next;
};
__global__ void count_down(int* sum, int n) {
  Node* list = nullptr;
  for (int i = 0; i <= n + static_cast<int>(threadIdx.x); ++i) list = new Node{i, list};
  while (list) {  // each is read for the last time right before it goes
    sum[threadIdx.x] += list->value;
    Node* const next = list->next;
    delete list;
    list = next;
  }
}
__global__ void beyond_a_node(float* volatile* node, float* out) {
  *node = new float[2];  // where the compiler does not see it any more
  float* const two = *node;
  two[0] = two[1] = 1;
  out[0] = two[2 + threadIdx.x];
}

TEST_CASE("new in a kernel gives device memory") {
  in_all_orders([] {
    const Buffer<float*> nodes(32, "nodes");
    const Buffer<float> out(32, "out");
    device::launch(nodes_of_a_list, 1, 32, 0, nodes.data(), out.data());
    CHECK(out.download()[0] == 31);
    const Buffer<int> sum(std::vector<int>(40, 0), "sum");
    device::launch(count_down, 1, 40, 0, sum.data(), 3);
    CHECK(sum.download()[0] == 6);
    CHECK(sum.download()[39] == 42 * 43 / 2);
  });
  const Buffer<float*> node(1, "node");
  const Buffer<float> out(1, "out");
  try {
    device::launch(beyond_a_node, 1, 1, 0, node.data(), out.data());
    FAIL("no error");
  } catch (const interpreter::KernelError& e) {
    CHECK(e.diagnosis.check == interpreter::Check::kMemcheck);
    CHECK(e.diagnosis.variable == "malloc in a kernel");
  }
}

}  // namespace
