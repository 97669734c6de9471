// ldmatrix, stmatrix, mma and elect.sync: instructions that the 32 lanes of a warp execute together (PTX ISA, "ldmatrix",
// "stmatrix", "mma.sync", "elect.sync").
#include "common/interpreter/instructions/tensor.h"

#include <cstring>

#include "common/interpreter/instructions/mma_model.h"
#include "common/interpreter/schedule/entered.h"

namespace interpreter {

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

struct MatrixStore {
  void* row;
  const std::uint32_t* r;
};

template <int kCount, bool kTransposed>
void store_matrices(void* const* lanes, unsigned) {
  const auto argument = [&](int lane) { return static_cast<MatrixStore*>(lanes[lane]); };
  for (int m = 0; m < kCount; ++m) {
    std::uint16_t matrix[8][8];
    for (int lane = 0; lane < 32; ++lane) {
      const int i = lane / 4, j = lane % 4 * 2;
      const std::uint32_t pair = argument(lane)->r[m];
      (kTransposed ? matrix[j][i] : matrix[i][j]) = static_cast<std::uint16_t>(pair);
      (kTransposed ? matrix[j + 1][i] : matrix[i][j + 1]) = static_cast<std::uint16_t>(pair >> 16);
    }
    for (int row = 0; row < 8; ++row) std::memcpy(argument(8 * m + row)->row, matrix[row], 16);
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

// See Options::mma.
void add_nothing(void* const*, unsigned) {}

// It orders nothing: the lanes only meet.
void elect(void* const*, unsigned) {}

// The first 8 * count lanes name a row each.
void move_matrices(const char* name, Op op, const void* row, int count, void* argument, Combine combine,
                   const void* return_address) {
  const Entered in(op == Op::kMatrixStore ? Worlds::kFirst : Worlds::kBoth);  // what it stores is not taken back
  const Pc pc = to_pc(return_address);
  const bool has_row = static_cast<int>(in.fiber.lane) < 8 * count;
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(row);
  const bool is_shared = in.block.shared.contains(begin) && in.block.shared.contains(begin + 15);
  if (has_row && in.block.work().options().memcheck && !is_shared)
    in.block.reporter.fail(Check::kMemcheck,
                           std::string(name) + (op == Op::kMatrixStore ? " to " : " from ") + in.block.reporter.describe(row) +
                               ", which is not shared memory",
                           "the rows lie in shared memory", &in.fiber, user_location(pc), in.block.reporter.variable_at(row));
  in.block.meetings.instruction_of_warp(in.fiber, name, argument, combine, pc);
  // Only now, when all lanes have come: one that waits for a barrier elsewhere would else be counted apart from the others.
  if (has_row) in.block.observe(in.fiber, row, 16, op, false, return_address);
}

}  // namespace

void ldmatrix(std::uint32_t* r, const void* row, int count, bool transposed) {
  MatrixLoad argument{r, row};
  static constexpr Combine kOf[][2] = {{load_matrices<1, false>, load_matrices<1, true>},
                                       {load_matrices<2, false>, load_matrices<2, true>},
                                       {load_matrices<4, false>, load_matrices<4, true>}};
  move_matrices("ldmatrix", Op::kMatrixLoad, row, count, &argument, kOf[count / 2][transposed], __builtin_return_address(0));
}

void stmatrix(void* row, const std::uint32_t* r, int count, bool transposed) {
  MatrixStore argument{row, r};
  static constexpr Combine kOf[][2] = {{store_matrices<1, false>, store_matrices<1, true>},
                                       {store_matrices<2, false>, store_matrices<2, true>},
                                       {store_matrices<4, false>, store_matrices<4, true>}};
  move_matrices("stmatrix", Op::kMatrixStore, row, count, &argument, kOf[count / 2][transposed], __builtin_return_address(0));
}

void mma_m16n8k16(float* d, const std::uint32_t* a, const std::uint32_t* b, bool is_half) {
  const Entered in(Worlds::kBoth);
  const Pc pc = to_pc(__builtin_return_address(0));
  const Options& options = in.block.work().options();
  if (in.fiber.lane == 0 && options.count && !in.block.worlds.in_other()) in.block.count_mma(in.fiber.warp, pc);
  Multiplication argument{d, a, b};
  const Combine combine = !options.mma ? add_nothing : is_half ? multiply<true> : multiply<false>;
  in.block.meetings.instruction_of_warp(in.fiber, "mma", &argument, combine, pc);
}

bool elect_sync() {
  const Entered in(Worlds::kBoth);
  in.block.meetings.instruction_of_warp(in.fiber, "elect.sync", nullptr, elect, to_pc(__builtin_return_address(0)));
  return in.fiber.lane == 0;
}

}  // namespace interpreter
