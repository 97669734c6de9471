#include <string>
#include <string_view>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

void row_sums(Matrix<const float> A, float* sums);
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);
void reverse_segments(const float* from, float* to, int count);

namespace {

// Multiples of 1/64 that nobody can guess: in whatever order they are added, the sum is the same.
float element(std::int64_t salt, std::int64_t row, std::int64_t col) {
  return static_cast<float>((row * 2341 + col * 6407 + row * col % 13 * 17 + salt * 131) % 1921 - 960) / 64;
}

Figure copies(double of) {
  return {"copies by the copy engine, as a multiple of what is needed",
          [](const interpreter::Counters& c) { return static_cast<double>(c.bulk_read.requests); },
          [of](const interpreter::Counters&) { return of; }};
}

Figure copied(double bytes) {
  return {"bytes that the copy engine reads, as a multiple of what is needed",
          [](const interpreter::Counters& c) { return static_cast<double>(c.bulk_read.bytes); },
          [bytes](const interpreter::Counters&) { return bytes; }};
}

constexpr std::string_view kAhead =
    "The ring has two stages: while one is read, the next copy is on its way to the other. What does the thread that copies wait\n"
    "for? For the stage that it fills to be empty, and for nothing else.";

constexpr std::string_view kMeets =
    "`full` and `empty` say all that is to be said in the loop. A barrier for all of the block makes everybody wait for the "
    "slowest.";

std::string words(std::uint64_t drawn) {
  return drawn ? ", drawn at random: --seed " + std::to_string(drawn) + " draws it again" : "";
}

Counts row_sums(const Coach& coach, std::int64_t rows, std::int64_t cols, std::int64_t padding = 0, std::uint64_t drawn = 0) {
  const std::string what = "row_sums of " + std::to_string(rows) + " x " + std::to_string(cols) + " in f32" +
                           (padding ? ", rows " + std::to_string(padding) + " elements longer than what they hold" : "") +
                           words(drawn);
  return coach.run(what, [&] {
    const std::int64_t stride = cols + padding, salt = static_cast<std::int64_t>(drawn % 1000);
    std::vector<float> values(static_cast<std::size_t>(rows * stride), 1e6f);
    std::vector<float> expected(static_cast<std::size_t>(rows), 0.0f);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < cols; ++col) {
        values[static_cast<std::size_t>(row * stride + col)] = element(salt, row, col);
        expected[static_cast<std::size_t>(row)] += element(salt, row, col);
      }
    }
    const device::Buffer<float> A(values, "A"), sums(std::vector<float>(expected.size(), 1e6f), "sums");
    const std::vector<float> got = asked([&] {
      exercise::row_sums({A.data(), rows, cols, stride, 1}, sums.data());
      device::synchronize();
      return sums.download();
    });
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (got.at(i) != expected[i])
        throw NotYet{"The result is wrong: sums[" + std::to_string(i) + "] is " + std::to_string(got[i]) + ", expected " +
                     std::to_string(expected[i]) +
                     ".\nIs each chunk of 128 elements added once, by the threads that have its elements, the last and shorter one "
                     "too?"};
  });
}

Counts reverse_segments(const Coach& coach, std::int64_t count, std::uint64_t drawn = 0) {
  return coach.run("reverse_segments of " + std::to_string(count) + " x 256" + words(drawn), [&] {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count * 256; ++i)
      values.push_back(element(static_cast<std::int64_t>(drawn % 1000), i / 256, i % 256));
    const device::Buffer<float> from(values, "from"), to(std::vector<float>(values.size(), 1e6f), "to");
    const std::vector<float> got = asked([&] {
      exercise::reverse_segments(from.data(), to.data(), static_cast<int>(count));
      device::synchronize();
      return to.download();
    });
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const float expected = values[i / 256 * 256 + 255 - i % 256]; got.at(i) != expected)
        throw NotYet{
            "The result is wrong: to[" + std::to_string(i) + "] is " + std::to_string(got[i]) + ", expected " +
            std::to_string(expected) +
            ".\nElement i of a segment is element 255 - i of what it was: each block stores what the other one has copied."};
  });
}

}  // namespace

void check(Coach& coach) {
  Draw& draw = coach.draw();
  coach.lesson("steps/09_tma/README.md, \"Walk\": full and empty");
  // As long as the ring, and longer.
  for (const auto& [rows, cols] : {std::pair{1, 256}, std::pair{2, 384}, std::pair{3, 1000}, std::pair{2, 4}})
    row_sums(coach, rows, cols);
  row_sums(coach, draw.between(1, 3), 4 * draw.between(150, 300), 4 * draw.between(1, 3), draw.seed());
  row_sums(coach, 1, 4 * draw.between(1000, 2000), 0, draw.seed());
  for (const auto& [rows, cols] :
       {std::pair<std::int64_t, std::int64_t>{4, 1024}, std::pair{draw.between(2, 6), 128 * draw.between(3, 9)}}) {
    const double chunks = static_cast<double>(rows * cols) / 128;
    row_sums(coach, rows, cols)
        .at_least(copies(chunks), 1,
                  "A row comes by the copy engine, 128 elements at a time. Mend the ring without giving that up.")
        .at_most(copies(chunks), 1, "Each chunk is copied once.")
        .at_most(copied(chunks * 128 * 4), 1, "A copy brings its own chunk of 128 elements, and nothing of the next one.")
        .at_most(global_loads(1), 0, "The copy engine loads. Threads read what is in shared memory.")
        .at_most(barriers(static_cast<double>(rows)), 1, kMeets)
        .at_most(&Teamwork::named_of_all, static_cast<double>(rows), kMeets)
        .at_most(&Teamwork::named_of_roles, static_cast<double>(rows), kMeets)
        .at_least_copies_under_way(2, kAhead);
  }

  coach.lesson("steps/11_warp_specialized/README.md, and 09_tma for full and empty");
  const char* const hint =
      "Does each warp with rows in C multiply all slices of k, each once, and after it has waited for the slice? The warps "
      "without\n"
      "rows leave the multiplication out, and nothing else.";
  for (Case c : {Case{64, 32, 16}, Case{64, 32, 64}, Case{33, 32, 64}, Case{1, 4, 84}}) {
    c.hint = hint;
    coach.multiply<float, float>(c, gemm);
  }
  Case much{.m = draw.between(17, 64), .n = 4, .k = 4 * draw.between(100, 250), .hint = hint, .drawn = draw.seed()};
  coach.multiply<float, float>(much, gemm);
  for (int i = 0; i < 3; ++i) {
    Case c{.m = draw.length(100), .n = draw.length(40), .k = draw.length(100), .hint = hint, .drawn = draw.seed()};
    c.padding = draw.padding(c.k, 4), c.padding_b = draw.padding(c.n, 4), c.padding_c = draw.padding(c.n);
    coach.multiply<float, float>(c, gemm);
  }
  for (const Case& c :
       {Case{64, 64, 80}, Case{.m = 64 * draw.between(1, 2) - 16, .n = 32 * draw.between(1, 2), .k = 16 * draw.between(3, 6)}}) {
    const double boxes = 2 * tiles(c, 64, 32, 16), blocks = tiles(c, 64, 32, c.k);
    coach.multiply<float, float>(c, gemm)
        .at_least(copies(boxes), 1, "The copy engine brings all of A and B, in boxes of 64 x 16 and 16 x 32.")
        .at_most(copies(boxes), 1, "Each box is copied once for a block.")
        .at_most(copied(boxes / 2 * (64 * 16 + 16 * 32) * 4), 1,
                 "A box has 64 x 16 elements of A, or 16 x 32 of B: what the block multiplies.")
        .at_most(global_loads(1), 0, "The copy engine loads. Threads read what is in shared memory.")
        .at_most(barriers(blocks), 1, kMeets)
        .at_most(&Teamwork::named_of_all, blocks, kMeets)
        .at_most(&Teamwork::named_of_roles, blocks, kMeets)
        .at_least_copies_under_way(3, kAhead);  // of 4, two boxes each
  }

  coach.lesson("steps/16_multicast/README.md and 15_few_rows: blocks of a cluster");
  for (const std::int64_t count : {1, 3}) reverse_segments(coach, count);
  reverse_segments(coach, draw.between(2, 7), draw.seed());
  for (const std::int64_t count : {std::int64_t{4}, draw.between(2, 6)}) {
    const auto blocks = static_cast<double>(2 * count);
    reverse_segments(coach, count)
        .at_least(copies(blocks), 1, "Each block has its half copied by the copy engine.")
        .at_most(copies(blocks), 1, "Each half is copied once: the other block reads it where it is.")
        .at_most(copied(blocks * 128 * 4), 1, "A block copies its own half: the other half is the other block's, which shares it.")
        .at_most(global_loads(1), 0, "What the other block has copied is read from its shared memory.")
        .at_most(&Teamwork::cluster_meetings, blocks * 2,
                 "The blocks meet when the halves are there, and when they have been read.");
  }

  // Three mistakes are to be mended. The counts see to it that nothing was given up for that: no bar for the time.
}

}  // namespace exercise
