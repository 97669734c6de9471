// ldmatrix and mma: instructions that the 32 lanes of a warp execute together (PTX ISA, "ldmatrix", "mma.sync").
#include <cstring>

#include "common/interpreter/block_parts.h"
#include "common/interpreter/mma_model.h"

namespace interpreter {

void ldmatrix(std::uint32_t* r, const void* row, int count, bool transposed) {
  const Entered in;
  in.block.ldmatrix(in.fiber, r, row, count, transposed, __builtin_return_address(0));
}
void mma_m16n8k16(float* d, const std::uint32_t* a, const std::uint32_t* b, bool is_half) {
  const Entered in;
  in.block.mma(in.fiber, d, a, b, is_half, to_pc(__builtin_return_address(0)));
}

namespace {

struct MatrixLoad {
  std::uint32_t* r;
  const void* row;
};

// A function per instruction: lanes that execute different ones do not meet.
template <int kCount, bool kTransposed>
void load_matrices(void* const* lanes, unsigned) {
  const auto argument = [&](int lane) { return static_cast<MatrixLoad*>(lanes[lane]); };
  for (int m = 0; m < kCount; ++m) {
    std::uint16_t matrix[8][8];
    for (int row = 0; row < 8; ++row) std::memcpy(matrix[row], argument(8 * m + row)->row, 16);
    for (int lane = 0; lane < 32; ++lane) {
      const int i = lane / 4, j = lane % 4 * 2;
      const std::uint16_t low = kTransposed ? matrix[j][i] : matrix[i][j];
      const std::uint16_t high = kTransposed ? matrix[j + 1][i] : matrix[i][j + 1];
      argument(lane)->r[m] = low | static_cast<std::uint32_t>(high) << 16;
    }
  }
}

struct Multiplication {
  float* d;
  const std::uint32_t *a, *b;
};

template <bool kIsHalf>
void multiply(void* const* lanes, unsigned) {
  std::uint16_t a[16][16], b[8][16];
  float d[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& argument = *static_cast<const Multiplication*>(lanes[lane]);
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 4; ++i) std::memcpy(&a[group + i % 2 * 8][pair + i / 2 * 8], &argument.a[i], 4);
    for (int i = 0; i < 2; ++i) std::memcpy(&b[group][pair + i * 8], &argument.b[i], 4);
    for (int i = 0; i < 2; ++i) std::memcpy(&d[group + i * 8][pair], &argument.d[2 * i], 8);
  }
  multiply_16x8x16(d, a, b, kIsHalf);
  for (int lane = 0; lane < 32; ++lane) {
    const auto& argument = *static_cast<const Multiplication*>(lanes[lane]);
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 2; ++i) std::memcpy(&argument.d[2 * i], &d[group + i * 8][pair], 8);
  }
}

}  // namespace

void Block::ldmatrix(Fiber& fiber, std::uint32_t* r, const void* row, int count, bool transposed, const void* return_address) {
  const Pc pc = to_pc(return_address);
  if (static_cast<int>(fiber.lane) < 8 * count) {
    if (launch_->options.memcheck && !in_shared(reinterpret_cast<std::uintptr_t>(row)))
      fail(Check::kMemcheck, "ldmatrix from " + describe(row) + ", which is not shared memory", "the rows lie in shared memory",
           &fiber, user_location(pc), variable_at(row));
    observe(fiber, row, 16, Op::kMatrixLoad, false, return_address);
  }
  MatrixLoad argument{r, row};
  const Combine combine = count == 1   ? transposed ? load_matrices<1, true> : load_matrices<1, false>
                            : count == 2 ? transposed ? load_matrices<2, true> : load_matrices<2, false>
                            : transposed ? load_matrices<4, true>
                                       : load_matrices<4, false>;
  instruction_of_warp(fiber, "ldmatrix", &argument, combine, pc);
}

void Block::mma(Fiber& fiber, float* d, const std::uint32_t* a, const std::uint32_t* b, bool is_half, Pc pc) {
  if (fiber.lane == 0 && launch_->options.count) counters.count_mma(pc);
  Multiplication argument{d, a, b};
  instruction_of_warp(fiber, "mma", &argument, is_half ? multiply<true> : multiply<false>, pc);
}

}  // namespace interpreter
