#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

int stage_of(int tile);
std::uint32_t parity_of(int tile);
void column_sums(Matrix<const float> A, float* sums);

namespace {

constexpr std::int64_t kRows = 8, kCols = 64, kAdding = 2;

// Multiples of 1/64 that nobody can guess: in whatever order they are added, the sum is the same.
float element(std::int64_t row, std::int64_t col) {
  return static_cast<float>((row * 2341 + col * 6407 + row * col % 13 * 17) % 1921 - 960) / 64;
}

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  const bool said_too_early = says("deadlock") && says(" of empty ") && says("lacks 2048 bytes and 0 of");
  if (said_too_early || (says("expect_tx on full") && says("one arrival more")))
    return "The thread that copies waits at empty[stage] first, and says how many bytes come behind that: then the tile before "
           "has\n"
           "been read, and the phase of full[stage] before is over.";
  if (says("deadlock") && says(" of full ") && !says("for phase 0 of full") && !says(" of empty "))
    return "Each phase of `full` is a tile's: it has one arrival, that of the thread which copies. Who adds waits for the parity "
           "of "
           "its tile,\nand arrives at `empty`.";
  return "";
}

Counts sums(const Coach& coach, std::int64_t rows, std::int64_t cols, std::int64_t padding = 0, bool drawn = false) {
  const std::int64_t tiles = (rows + kRows - 1) / kRows;
  const std::string what = "column_sums of " + std::to_string(rows) + " x " + std::to_string(cols) + " in f32, " +
                           std::to_string(tiles) + (tiles == 1 ? " tile" : " tiles") + " for a ring of 3 stages" +
                           (padding ? ", rows " + std::to_string(padding) + " elements longer than what they hold" : "") +
                           (drawn ? ", drawn at random: --seed " + std::to_string(coach.draw().seed()) + " draws it again" : "");
  return coach.run(what, [&] {
    const std::int64_t stride = cols + padding;
    std::vector<float> values(static_cast<std::size_t>(rows * stride), 1e6f);
    std::vector<float> expected(static_cast<std::size_t>(cols), 0.0f);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t col = 0; col < cols; ++col)
        expected[static_cast<std::size_t>(col)] += values[static_cast<std::size_t>(row * stride + col)] = element(row, col);
    const device::Buffer<float> a(values, "A");
    const device::Buffer<float> result(expected.size(), "sums");
    const auto call = [&] {
      column_sums({a.data(), rows, cols, stride, 1}, result.data());
      device::synchronize();
      return result.download();
    };
    const std::vector<float> got = explained(meant, [&] { return asked(call); });
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (got.at(i) != expected[i])
        throw NotYet{"The result is wrong: sums[" + std::to_string(i) + "] is " + std::to_string(got[i]) + ", expected " +
                     std::to_string(expected[i]) + ".\nIs each tile added once?"};
  });
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/09_tma/README.md, \"Walk\": full, empty and parity");
  for (int tile = 0; tile < 40; ++tile) {
    const std::string name = std::to_string(tile), before = std::to_string(tile - 3), round = std::to_string(tile / 3);
    const int stage = Asked(stage_of)(tile);
    coach.require(stage == tile % 3, "stage_of(" + name + ") is " + std::to_string(stage) + ", expected " +
                                         std::to_string(tile % 3) + ": the ring has 3 stages, and tile " + name + " goes " +
                                         (tile < 3 ? "to one of its own." : "where tile " + before + " was.") +
                                         "\nWith fewer stages in use, less is on its way while a tile is added.");
    const std::uint32_t parity = Asked(parity_of)(tile);
    coach.require(parity == static_cast<std::uint32_t>(tile / 3 % 2),
                  "parity_of(" + name + ") is " + std::to_string(parity) + ", expected " + std::to_string(tile / 3 % 2) +
                      ": each tile that comes to a stage ends a phase of its `full`.\nBefore tile " + name + " there " +
                      (tile / 3 == 1 ? "has been 1" : "have been " + round) + ", so its phase is number " + round +
                      ". Parity is that of the number: the barrier goes on to the next\nphase by itself, and nobody sets it back.");
  }
  for (const std::int64_t tiles : {1, 2, 3, 4, 7, 12}) sums(coach, tiles * kRows, kCols);
  for (const auto& [rows, cols] : {std::pair{1, 4}, std::pair{5, 64}, std::pair{23, 68}, std::pair{100, 12}, std::pair{41, 200}})
    sums(coach, rows, cols, 4);
  Draw& draw = coach.draw();
  sums(coach, draw.between(500, 1500), 4, 0, true);
  for (int i = 0; i < 2; ++i) sums(coach, draw.between(1, 150), 4 * draw.between(1, 40), 4 * draw.between(0, 3), true);

  struct Shape {
    std::int64_t rows, cols;
    bool is_drawn;
  };
  for (const auto& [rows, cols, is_drawn] :
       {Shape{4 * kRows, kCols, false}, {9 * kRows, 2 * kCols, false}, {draw.between(30, 130), 4 * draw.between(1, 40), true}}) {
    const std::int64_t tiles = (rows + kRows - 1) / kRows, blocks = (cols + kCols - 1) / kCols;
    const auto all = static_cast<double>(tiles * blocks);
    const Counts counts = sums(coach, rows, cols, (4 - cols % 4) % 4, is_drawn);
    counts.at_least(boxes(all), 1, "A tile comes by the copy engine.")
        .at_most(boxes(all), 1, "A tile is one box, and is copied once.")
        .at_most(asked(4 * all), 0, "No thread loads elements of A: the engine brings them.")
        .at_most(shared_asked(all * kRows * kCols * 4), 1, "Each element of a tile is read once.")
        .at_most(shared_loads(all * kRows * kAdding), 2,  // lanes of a warp need not come from a wait together
                 "The lanes of a warp read together, 32 neighbours of a row.")
        .at_most(shared_stores(all), 0, "No thread writes to a stage.")
        .at_most(
            barriers(static_cast<double>(blocks)), 1,
            "__syncthreads() has all threads wait for each other. After the first one, full and empty are enough: who adds does\n"
            "not wait for who copies, as long as there are full stages.")
        .at_most(
            &Teamwork::named_of_all, static_cast<double>(blocks) - static_cast<double>(counts.teamwork().block_meetings),
            "A named barrier of all threads is a barrier for all threads, too. After the first one, full and empty are enough.")
        .at_most(&Teamwork::named_of_roles, 0,
                 "Who copies and those who use what comes meet at full and empty alone, whatever the name of another barrier is.")
        .at_least_copies_under_way(
            3,  // in one of the orders, the thread that copies comes first
            "The ring has 3 stages, so 3 tiles may be on their way before anybody has read one. What does the "
            "thread that copies\nwait for? For the stage that it fills to be empty, and for nothing else.")
        .at_least_copies_each_time(3,
                                   "Copies run ahead as far as there are stages, and not at the beginning alone: tile t is copied "
                                   "as soon as tile t - 3 has\n"
                                   "been read, whatever becomes of t - 2 and t - 1. Who adds gives a stage back at once, and who "
                                   "copies waits for nothing\n"
                                   "else.");
  }
  // Toy sizes: whether copies hide behind additions is lesson 09's question, not this one's. There is no bar for the time.
}

}  // namespace exercise
