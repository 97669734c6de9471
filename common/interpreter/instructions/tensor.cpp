// ldmatrix, stmatrix, mma and elect.sync: instructions that the 32 lanes of a warp execute together (PTX ISA, "ldmatrix",
// "stmatrix", "mma.sync", "elect.sync").
#include "common/interpreter/instructions/tensor.h"

#include <cstring>

#include "common/interpreter/count/counters.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/meetings/meetings.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/memory/stacks.h"
#include "common/interpreter/report/reporter.h"

namespace interpreter {

namespace {

struct MatrixLoad {
  std::uint32_t* r;
  const void* row;
  bool transposed;
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
  Fiber* fiber;
  Pc pc;
  MmaForm form;
  unsigned m, k;
  void* d;
  const void *a, *b;
};
// A register, counted in `T`.
template <class T>
const void* word(const void* registers, unsigned i) {
  return static_cast<const T*>(registers) + i;
}

// m16n8k16 of 16-bit numbers, with sums of float: what is usual is fast.
template <bool kIsHalf>
void multiply(void* const* lanes, unsigned) {
  std::uint16_t a[16][16], b[8][16];
  float d[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& argument = *static_cast<const Multiplication*>(lanes[lane]);
    const int group = lane / 4, pair = lane % 4 * 2;
    for (unsigned i = 0; i < 4; ++i) std::memcpy(&a[group + i % 2 * 8][pair + i / 2 * 8], word<std::uint32_t>(argument.a, i), 4);
    for (unsigned i = 0; i < 2; ++i) std::memcpy(&b[group][pair + i * 8], word<std::uint32_t>(argument.b, i), 4);
    for (unsigned i = 0; i < 2; ++i) std::memcpy(&d[group + i * 8][pair], word<std::uint64_t>(argument.d, i), 8);
  }
  multiply_16x8x16(d, a, b, kIsHalf);
  for (int lane = 0; lane < 32; ++lane) {
    const auto& argument = *static_cast<const Multiplication*>(lanes[lane]);
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 2; ++i) std::memcpy(static_cast<std::uint64_t*>(argument.d) + i, &d[group + i * 8][pair], 8);
  }
}

void require_one_form(void* const* lanes) {
  const auto& first = *static_cast<const Multiplication*>(lanes[0]);
  for (int lane = 1; lane < 32; ++lane)
    if (const auto& one = *static_cast<const Multiplication*>(lanes[lane]);
        one.form != first.form || one.m != first.m || one.k != first.k)
      current_block->reporter.fail(Check::kSynccheck, "mma of another shape or type than that of the warp's lane 0",
                                   "all lanes of a warp execute the same mma", one.fiber, user_location(one.pc));
}

// Seen as words all fragments are alike: with g = lane / 4 and t = lane % 4, A's registers are word t of the rows g and g + 8, if
// there are 16, then word t + 4 of these; B's are the words t and t + 4 of column g. Sums are columns 2 t and 2 t + 1 of these
// rows.
void multiply_any(void* const* lanes, unsigned) {
  require_one_form(lanes);
  const auto& first = *static_cast<const Multiplication*>(lanes[0]);
  const unsigned halves = first.m / 8, words = first.k * bytes_of(first.form.a) / 4;
  const bool in_pairs = first.form.sum == Number::kF16;  // sums in one word
  std::uint16_t a[16][16] = {}, b[8][16] = {};
  std::uint32_t d[16][8] = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& argument = *static_cast<const Multiplication*>(lanes[lane]);
    const unsigned group = lane / 4, t = lane % 4;
    const auto* const sums = static_cast<const std::uint32_t*>(argument.d);
    for (unsigned i = 0; i < halves * words / 4; ++i)
      std::memcpy(&a[group + i % halves * 8][2 * (t + i / halves * 4)], word<std::uint32_t>(argument.a, i), 4);
    for (unsigned i = 0; i < words / 4; ++i) std::memcpy(&b[group][2 * (t + i * 4)], word<std::uint32_t>(argument.b, i), 4);
    for (unsigned i = 0; i < 2 * halves; ++i)
      d[group + i / 2 * 8][2 * t + i % 2] = in_pairs ? sums[i / 2] >> i % 2 * 16 & 0xffff : sums[i];
  }
  multiply_tile(first.form, false, d, a, b);
  for (unsigned lane = 0; lane < 32; ++lane) {
    auto* const sums = static_cast<std::uint32_t*>(static_cast<const Multiplication*>(lanes[lane])->d);
    for (unsigned i = 0; i < 2 * halves; ++i) {
      const std::uint32_t* const row = &d[lane / 4 + i / 2 * 8][lane % 4 * 2];
      if (!in_pairs)
        sums[i] = row[i % 2];
      else if (i % 2 == 0)
        sums[i / 2] = row[0] | row[1] << 16;
    }
  }
}

// The same of words of 8 bytes.
void multiply_all_doubles(void* const* lanes, unsigned) {
  require_one_form(lanes);
  const auto& first = *static_cast<const Multiplication*>(lanes[0]);
  const unsigned halves = first.m / 8, k = first.k;
  double a[16][16], b[8][16];
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& argument = *static_cast<const Multiplication*>(lanes[lane]);
    const unsigned group = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < halves * k / 4; ++i)
      std::memcpy(&a[group + i % halves * 8][t + i / halves * 4], word<double>(argument.a, i), 8);
    for (unsigned i = 0; i < k / 4; ++i) std::memcpy(&b[group][t + i * 4], word<double>(argument.b, i), 8);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    auto* const sums = static_cast<double*>(static_cast<const Multiplication*>(lanes[lane])->d);
    for (unsigned i = 0; i < 2 * halves; ++i)
      sums[i] = multiply_doubles(sums[i], a[lane / 4 + i / 2 * 8], b[lane % 4 * 2 + i % 2], k);
  }
}

// See Options::mma.
void add_nothing(void* const*, unsigned) {}

// See added_without_product().
void add_a_number(void* const* lanes, unsigned) {
  for (int lane = 0; lane < 32; ++lane) {
    auto* const sums = static_cast<float*>(static_cast<const Multiplication*>(lanes[lane])->d);
    for (int i = 0; i < 4; ++i) sums[i] += added_without_product();
  }
}

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
  if (has_row && in.block.work.options().memcheck && !is_shared)
    in.block.reporter.fail(Check::kMemcheck,
                           std::string(name) + (op == Op::kMatrixStore ? " to " : " from ") + in.block.reporter.describe(row) +
                               ", which is not shared memory",
                           "the rows lie in shared memory", &in.fiber, user_location(pc), in.block.reporter.variable_at(row));
  in.block.meetings.instruction_of_warp(in.fiber, name, argument, combine, pc);
  if (op == Op::kMatrixLoad) {
    const auto& load = *static_cast<const MatrixLoad*>(argument);
    in.block.note(in.fiber, kRegisters, pc, in.block.stacks.depth_of(in.fiber.linear, load.r) | (load.transposed ? 1u : 0u));
  }
  // Only now, when all lanes have come: one that waits for a barrier elsewhere would else be counted apart from the others.
  if (has_row) in.block.observe(in.fiber, row, 16, op, false, return_address);
}

}  // namespace

void ldmatrix(std::uint32_t* r, const void* row, int count, bool transposed) {
  MatrixLoad argument{r, row, transposed};
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

static void start_mma(const MmaForm& form, unsigned m, unsigned k, void* d, const void* a, const void* b,
                      const void* return_address) {
  const Entered in(Worlds::kBoth);
  const Pc pc = to_pc(return_address);
  const Options& options = in.block.work.options();
  if (in.fiber.lane == 0 && options.count && !in.block.worlds.in_other()) in.block.counters.count_mma(pc, in.fiber.warp);
  Multiplication argument{&in.fiber, pc, form, m, k, d, a, b};
  const bool is_usual = bytes_of(form.a) == 2 && k == 16 && form.sum == Number::kF32;
  const Combine combine = !options.mma               ? is_usual && added_without_product() != 0 ? add_a_number : add_nothing
                          : form.sum == Number::kF64 ? multiply_all_doubles
                          : !is_usual                ? multiply_any
                          : form.a == Number::kF16   ? multiply<true>
                                                     : multiply<false>;
  in.block.meetings.instruction_of_warp(in.fiber, "mma", &argument, combine, pc);
  const bool is_in_words = m == 16 && form.sum != Number::kF64;
  in.block.note(in.fiber, EventKind::kMma, pc, 2 * m * 8 * k, in.block.stacks.depth_of(in.fiber.linear, a),
                in.block.stacks.depth_of(in.fiber.linear, d), is_in_words ? k * bytes_of(form.a) / 4 : 0);
}
void mma_m16n8k16(float* d, const std::uint32_t* a, const std::uint32_t* b, bool is_half) {
  const Number type = is_half ? Number::kF16 : Number::kBf16;
  start_mma({type, type, Number::kF32}, 16, 16, d, a, b, __builtin_return_address(0));
}
void mma(const MmaForm& form, unsigned m, unsigned k, void* d, const void* a, const void* b) {
  start_mma(form, m, k, d, a, b, __builtin_return_address(0));
}

bool elect_sync() {
  const Entered in(Worlds::kBoth);
  in.block.meetings.instruction_of_warp(in.fiber, "elect.sync", nullptr, elect, to_pc(__builtin_return_address(0)));
  return in.fiber.lane == 0;
}

}  // namespace interpreter
