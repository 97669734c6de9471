#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

void row_sums(Matrix<const float> A, float* sums);
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);
void column_sums(Matrix<const float> A, float* sums);

namespace {

// Multiples of 1/64 that nobody can guess: in whatever order they are added, the sum is the same.
float element(std::int64_t row, std::int64_t col) {
  return static_cast<float>((row * 2341 + col * 6407 + row * col % 13 * 17) % 1921 - 960) / 64;
}

#ifdef COURSE_ON_INTERPRETER
// While it exists, blocks run side by side and take turns at one address: before a block's store or atomic there takes place,
// another block has come to one of its own, if there is one. Who reads and adds in two steps does not get away with it.
class Turns {
 public:
  explicit Turns(const void* address) {
    interpreter::options().workers = 4;
    interpreter::options().on_store = [this, address](std::uint64_t block, const void* at) {
      if (at == address) wait_for_another(block);
    };
  }
  Turns(const Turns&) = delete;
  ~Turns() { interpreter::options().on_store = {}, interpreter::options().workers = 1; }

 private:
  void wait_for_another(std::uint64_t block) {
    std::unique_lock lock(mutex_);
    const int mine = last_[block] = ++count_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::milliseconds(50), [&] {
      for (const auto& [other, number] : last_)
        if (other != block && number > mine) return true;
      return false;
    });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, int> last_;  // of each block, which of all stores was its last one
  int count_ = 0;
};
#endif

// Calls `sums_of` with a matrix and `count` sums, which are `before` at first, and compares. `along_rows`: a sum for each row.
// `in_turns`: for the first sum.
Counts sums(const Coach& coach, const char* name, void (*sums_of)(Matrix<const float>, float*), std::int64_t rows,
            std::int64_t cols, bool along_rows, std::int64_t padding = 0, [[maybe_unused]] bool in_turns = false) {
  const std::string what = std::string(name) + " of " + std::to_string(rows) + " x " + std::to_string(cols) + " in f32" +
                           (padding ? ", rows " + std::to_string(padding) + " elements longer than what they hold" : "");
  return coach.run(what, [&] {
    const std::int64_t stride = cols + padding;
    std::vector<float> values(static_cast<std::size_t>(rows * stride), 1e6f);
    std::vector<float> expected(static_cast<std::size_t>(along_rows ? rows : cols), along_rows ? 0.0f : 5.0f);
    const std::vector<float> before = expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < cols; ++col) {
        values[static_cast<std::size_t>(row * stride + col)] = element(row, col);
        expected[static_cast<std::size_t>(along_rows ? row : col)] += element(row, col);
      }
    }
    const device::Buffer<float> a(values, "A");
    device::Buffer<float> result(expected.size(), "sums");
    if (!along_rows) result.upload(before.data(), before.size());
    const std::vector<float> got = asked([&] {
#ifdef COURSE_ON_INTERPRETER
      std::optional<Turns> turns;
      if (in_turns) turns.emplace(result.data());
#endif
      sums_of({a.data(), rows, cols, stride, 1}, result.data());
      device::synchronize();
      return result.download();
    });
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (got.at(i) != expected[i])
        throw NotYet{
            "The result is wrong: sums[" + std::to_string(i) + "] is " + std::to_string(got[i]) + ", expected " +
            std::to_string(expected[i]) + (along_rows ? "." : ". Before the call it was 5.") +
            (in_turns
                 ? "\nHere another block always came in between: what it added may be lost where a sum is read and stored in two "
                   "steps, be each of\nthem an atomic."
                 : "")};
    }
  });
}

// Both functions with rows gigabytes apart, where an offset of 32 bits does not reach them.
void far_rows([[maybe_unused]] const Coach& coach) {
#ifdef COURSE_ON_INTERPRETER
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 64, kRows = 3;
  for (const bool along_rows : {true, false})
    coach.run(std::string(along_rows ? "row_sums" : "column_sums") + " of 3 x 3 in f32, rows " + std::to_string(kStride) +
                  " elements apart: an int cannot count so far",
              [&] {
                float* const a = static_cast<float*>(interpreter::allocate(((kRows - 1) * kStride + kRows) * sizeof(float), "A"));
                const std::shared_ptr<float> owner(a, [](float* p) { interpreter::release(p); });
                const float row[] = {1, 2, 3};
                for (std::int64_t r = 0; r < kRows; ++r) interpreter::copy_in(a + r * kStride, row, sizeof row);
                device::Buffer<float> result(std::vector<float>(kRows, 0), "sums");
                const std::vector<float> got = asked([&] {
                  (along_rows ? row_sums : column_sums)({a, kRows, kRows, kStride, 1}, result.data());
                  device::synchronize();
                  return result.download();
                });
                const std::vector<float> expected = along_rows ? std::vector<float>{6, 6, 6} : std::vector<float>{3, 6, 9};
                if (got != expected) throw NotYet{"The sums are wrong: which offset is kept in an int?"};
              });
#endif
}

Figure copies(double of) {
  return {"copies by cp.async, as a multiple of what is needed",
          [](const interpreter::Counters& c) { return static_cast<double>(c.copy_read.requests); },
          [of](const interpreter::Counters&) { return of; }};
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/02_tiled/README.md, \"Walk\": two barriers, and docs/interpreter.md, \"The checks\": racecheck");
  for (const auto& [rows, cols] : {std::pair{1, 256}, std::pair{3, 1000}, std::pair{5, 33}, std::pair{2, 1}})
    sums(coach, "row_sums", row_sums, rows, cols, true);
  sums(coach, "row_sums", row_sums, 4, 300, true, 5);
  Draw& draw = coach.draw();
  sums(coach, "row_sums", row_sums, draw.between(6, 20), draw.between(1025, 1500), true, draw.between(0, 9));
  sums(coach, "row_sums", row_sums, 8, 1024, true)
      .at_least(loaded(8 * 1024 * 4), 1, "The sums are sums of A's elements: a kernel has to read them.")
      .at_most(global_loads(8 * 1024 / 32), 1, "The 256 threads load a row together, 32 neighbours a warp.")
      .at_most(
          shared_loads(8 * 32), 3.5,  // neighbours first: all warps have work in each round but the last three
          "A round of the loop halves what is left: 128 additions in 4 warps, 64 in 2, 32 in one. Mend it without giving all of\n"
          "the additions to one thread.")
      .at_most(&Teamwork::loaded_by_block, 2 * 2 * 1024 * 4,
               "A block has two rows. Which block adds up the rows of others, while these have nothing to do?")
      .at_most(atomics(8), 1, "An atomic puts all threads in a row. The mistake can be mended without one.");

  coach.lesson("steps/04_pipelined_num_stages/README.md, \"Walk\": one barrier per tile says two things");
  for (const Case& c : {Case{16, 16, 16}, Case{16, 16, 32}, Case{16, 16, 96}, Case{33, 31, 60}, Case{1, 20, 70}, Case{20, 1, 7}})
    coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 18, .n = 35, .k = 50, .padding = 3}, gemm);
  for (const Case& c : coach.drawn({})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 3}, gemm);
  for (const Case& c : {Case{32, 32, 64}, draw.tiles(32, 32, 16, 2)}) {
    const double rounds = static_cast<double>(c.m / 16 * (c.n / 16) * (c.k / 16)), loads = rounds * 8 * 2;  // warps, A and B
    coach.multiply<float, float>(c, gemm)
        .at_least(copies(loads), 1, "The tiles are copied in the background, by cp.async. Mend it without giving that up.")
        .at_most(global_loads(loads), 1, "Each tile is copied once.")
        .at_most(atomics(1), 0, "No atomic is needed: each thread has an element of C of its own.")
        .at_most(barriers(2 * rounds + 2 * static_cast<double>(c.m * c.n) / 256), 1,
                 "One or two barriers for each pair of tiles are enough. What do the others wait for?");
  }

  coach.lesson("docs/interpreter.md, \"The checks\": racecheck");
  for (const auto& [rows, cols] : {std::pair{32, 64}, std::pair{64, 64}, std::pair{100, 70}, std::pair{33, 1}, std::pair{1, 65}})
    sums(coach, "column_sums", column_sums, rows, cols, false);
  sums(coach, "column_sums", column_sums, 70, 66, false, 3);
  sums(coach, "column_sums", column_sums, draw.between(129, 400), draw.between(1, 150), false, draw.between(0, 9));
  sums(coach, "column_sums", column_sums, 128, 64, false, 0, true);
  far_rows(coach);
  const Counts last = sums(coach, "column_sums", column_sums, 128, 128, false);
  last.at_least(loaded(128 * 128 * 4), 1, "The sums are sums of A's elements: a kernel has to read them.")
      .at_most(atomics(4 * 128 / 32), 4,
               "A strip has its sum in a register. How often must it add to sums[col]? Once. A loop of atomicCAS may try again.")
      .at_most(global_loads(128 * 128 / 32), 1.2, "Each element of A is loaded once, 32 neighbours of a row by a warp.");
#ifdef COURSE_ON_INTERPRETER
  const dim3 grid = last.launches(1, "All strips are added up by one kernel.").front().grid;
  coach.require(grid.x * grid.y * grid.z >= 8,
                "column_sums of 128 x 128 are 4 strips of 32 rows and 2 of 64 columns, 8 blocks that work at the\n"
                "same time. Your launch has fewer. Keep the strips: let them add to one place without a race.");
#endif
  last.at_most(
      &Teamwork::loaded_by_block, 1.5 * 32 * 64 * 4,
      "A block has a strip of 32 rows and 64 columns. Which block adds up strips of others, while these have nothing to do?");

  // Three mistakes are to be mended. The counts above see to it that nothing was given up for that: no bar for the time.
}

}  // namespace exercise
