#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

int place_of(int row, int byte, int width);
void transpose(Matrix<const std::uint16_t> A, Matrix<std::uint16_t> T, int width);

namespace {

constexpr std::int64_t kRows = 64, kMost = 256;  // of a panel; rows and columns of A, so that an element says where it is from

std::uint16_t element(std::int64_t row, std::int64_t col) { return static_cast<std::uint16_t>(row * kMost + col); }
std::string pair(const char* name, std::int64_t row, std::int64_t col) {
  return std::string(name) + "[" + std::to_string(row) + ", " + std::to_string(col) + "]";
}

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("misaligned") && says("sPanel"))
    return "place_of() counts bytes. An element has 2 of them: column col begins at byte 2 * col.";
  if (says("out of bounds") && says("sPanel"))
    return "A panel has 64 rows of `width` bytes. Is place_of() asked for a row of the panel, and for a byte of that row?";
  if (says("out of bounds")) return "T has a row for each column of A: element (row, col) of A is element (col, row) of T.";
  return "";
}

// Every piece of 16 bytes, and a byte within some.
void require_places(const Coach& coach, int width) {
  const int chunks = width / 16;
  const std::string rows = width == 128 ? "each row has places of its own, and row 8 those of row 0 again"
                           : width == 64
                               ? "two rows are 128 bytes, and have the same places; rows 8 and 9 those of rows 0 and 1 again"
                               : "four rows are 128 bytes, and have the same places; row 8 has those of row 0 again";
  for (int row = 0; row < kRows; ++row)
    for (int byte = row * 5 % 16; byte < width; byte += 16) {
      const int expected = row * width + (byte / 16 ^ row * width / 128 % chunks) * 16 + byte % 16;
      const int got = Asked(place_of)(row, byte, width);
      coach.require(got == expected,
                    "place_of(" + std::to_string(row) + ", " + std::to_string(byte) + ", " + std::to_string(width) + ") is " +
                        std::to_string(got) + ", expected " + std::to_string(expected) + ": row " + std::to_string(row) +
                        " begins at byte " + std::to_string(row * width) + ", and its piece " + std::to_string(byte / 16) +
                        " of 16 bytes\nlies at place " + std::to_string((expected - row * width) / 16) + " of " +
                        std::to_string(chunks) + ". In a swizzle " + std::to_string(width) + " bytes wide " + rows + ".");
    }
}

Counts transposed(const Coach& coach, std::int64_t rows, std::int64_t cols, int width, std::int64_t padding = 0,
                  bool drawn = false) {
  const std::string what = "A is " + std::to_string(rows) + " x " + std::to_string(cols) + ", swizzle of " + std::to_string(width) +
                           " bytes" +
                           (padding ? ", rows " + std::to_string(padding) + " elements longer than what they hold" : "") +
                           (drawn ? ", drawn at random: --seed " + std::to_string(coach.draw().seed()) + " draws it again" : "");
  return coach.run(what, [&] {
    const std::int64_t stride = cols + padding;
    std::vector<std::uint16_t> values(static_cast<std::size_t>(rows * stride), 0xffff);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) values[static_cast<std::size_t>(r * stride + c)] = element(r, c);
    const device::Buffer<std::uint16_t> a(values, "A");
    const device::Buffer<std::uint16_t> t(std::vector<std::uint16_t>(static_cast<std::size_t>(rows * cols), 0xffff), "T");
    const std::vector<std::uint16_t> got = explained(meant, [&] {
      return asked([&] {
        transpose({a.data(), rows, cols, stride, 1}, {t.data(), cols, rows, rows, 1}, width);
        device::synchronize();
        return t.download();
      });
    });
    for (std::int64_t c = 0; c < cols; ++c)
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::uint16_t x = got.at(static_cast<std::size_t>(c * rows + r));
        if (x == element(r, c)) continue;
        const std::int64_t of_row = x / kMost, of_col = x % kMost;
        const std::string is = "The result is wrong: " + pair("T", c, r) + " is " +
                               (of_row < rows && of_col < cols ? pair("A", of_row, of_col) : "no element of A") + ", expected " +
                               pair("A", r, c) + ".\n";
        if (of_row == c && of_col == r)
          throw NotYet{is + "T is the transpose: element (row, col) of A becomes element (col, row) of T."};
        throw NotYet{
            is +
            "The engine writes where the bits of the address in shared memory say: a panel that begins at a multiple of 1024 "
            "bytes, and\na map with the swizzle that place_of() knows. Is it read there?"};
      }
  });
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/09_tma/README.md, \"Walk\": copy_panels, and common/device/tensor_map.h, \"Swizzle\"");
  for (const int width : {128, 64, 32}) require_places(coach, width);
  for (const int width : {128, 64, 32}) {
    transposed(coach, 64, width / 2, width);
    transposed(coach, 70, 72, width, 8);
    transposed(coach, 1, 200, width);
    transposed(coach, 200, 3, width, 5);
  }
  Draw& draw = coach.draw();
  for (const int width : {128, 64, 32}) {
    const std::int64_t rows = draw.between(33, 200), cols = draw.between(1, 200);
    const std::int64_t across = width / 2, panels = (rows + kRows - 1) / kRows * ((cols + across - 1) / across);
    const double warps = static_cast<double>(cols * ((rows + 31) / 32));  // that have 32 elements of T to store
    transposed(coach, rows, cols, width, (8 - cols % 8) % 8, true)
        .at_least(boxes(static_cast<double>(panels)), 1,
                  "A panel comes by the copy engine: 64 rows, as wide as the swizzle that the call asks for.")
        .at_most(boxes(static_cast<double>(panels)), 1, "A panel is one box, and is copied once.")
        .at_most(asked(2.0 * static_cast<double>(rows * cols)), 0, "No thread loads elements of A: the engine brings them.")
        .at_most(shared_asked(2.0 * static_cast<double>(rows * cols)), 1, "Each element is read once.")
        .at_most(shared_loads(warps), 2,  // lanes of a warp need not come from a wait together
                 "The lanes of a warp read together, 32 elements of a column.")
        .at_most(shared_stores(warps), 0, "No thread writes to shared memory: the engine has swizzled already.")
        .at_most(wavefronts_of_ideal(), 4,
                 "32 rows of a column lie in 8 groups of 4 banks, so 4 of them meet. Without a swizzle rows of 128 bytes have them "
                 "all in "
                 "one\nbank. Which swizzle has the map?")
        .at_most(stores_asked(2.0 * static_cast<double>(rows * cols)), 1, "Each element of T is stored once.")
        .at_most(sectors_per_store(), 5, "The lanes of a warp have neighbours in a row of T.");
  }
  // Which byte lies where is all that this is about: there is no bar for the time.
}

}  // namespace exercise
