#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

void window(Matrix<const float> A, int row, int col, Matrix<float> W);

namespace {

struct View {
  std::int64_t rows, cols, padding;  // of A
  int row, col;                      // of A, where W begins
  std::int64_t w_rows, w_cols;
};

// Says where it comes from, and is never 0.
float element(std::int64_t row, std::int64_t col) { return static_cast<float>(1 + row * 1000 + col); }

std::string pair(const char* name, std::int64_t row, std::int64_t col) {
  return std::string(name) + "[" + std::to_string(row) + ", " + std::to_string(col) + "]";
}
std::string what_is(const View& v, float x) {
  const auto i = static_cast<std::int64_t>(x) - 1;
  if (x == 0) return "0";
  return i >= 0 && i / 1000 < v.rows && i % 1000 < v.cols && x == element(i / 1000, i % 1000) ? pair("A", i / 1000, i % 1000)
                                                                                              : "no element of A";
}

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  // Where all bytes are missing, nothing has been copied: that is another mistake.
  if (says("deadlock") && says("bytes and 0 of 1 arrivals") && !says("lacks 0 bytes") && !says("lacks 1024 bytes"))
    return "The map's box brought fewer bytes than expect_tx says. 8 rows of 32 elements are 1024 bytes: what does the map say of\n"
           "the box?";
  if (says("out of bounds") && says("the tensor that the map describes"))
    return "The map counts elements, not bytes, its row_stride, too: A.row_stride leads from one row to the next.";
  return "";
}

Counts look(const Coach& coach, const View& v, bool drawn = false) {
  const std::string what = "A is " + std::to_string(v.rows) + " x " + std::to_string(v.cols) + " in f32, rows " +
                           std::to_string(v.padding) + " elements longer than what they hold; W is " + std::to_string(v.w_rows) +
                           " x " + std::to_string(v.w_cols) + " and begins at (" + std::to_string(v.row) + ", " +
                           std::to_string(v.col) + ") of A" +
                           (drawn ? ", drawn at random: --seed " + std::to_string(coach.draw().seed()) + " draws it again" : "");
  return coach.run(what, [&] {
    const std::int64_t stride = v.cols + v.padding;
    std::vector<float> values(static_cast<std::size_t>(v.rows * stride), -1e6f);  // between rows stands what is not A's
    for (std::int64_t r = 0; r < v.rows; ++r)
      for (std::int64_t c = 0; c < v.cols; ++c) values[static_cast<std::size_t>(r * stride + c)] = element(r, c);
    const device::Buffer<float> a(values, "A");
    const device::Buffer<float> w(std::vector<float>(static_cast<std::size_t>(v.w_rows * v.w_cols), -1), "W");
    const auto call = [&] {
      window({a.data(), v.rows, v.cols, stride, 1}, v.row, v.col, {w.data(), v.w_rows, v.w_cols, v.w_cols, 1});
      device::synchronize();
      return w.download();
    };
    const std::vector<float> got = explained(meant, [&] { return asked(call); });
    for (std::int64_t r = 0; r < v.w_rows; ++r)
      for (std::int64_t c = 0; c < v.w_cols; ++c) {
        const std::int64_t row = v.row + r, col = v.col + c;
        const bool is_inside = row >= 0 && row < v.rows && col >= 0 && col < v.cols;
        const float x = got.at(static_cast<std::size_t>(r * v.w_cols + c));
        if (x == (is_inside ? element(row, col) : 0)) continue;
        throw NotYet{
            "The result is wrong: " + pair("W", r, c) + " is " + what_is(v, x) + ", expected " +
            (is_inside ? pair("A", row, col) : "0, for " + pair("A", row, col) + " does not exist") +
            ".\nThe engine takes x first, the column, then y, the row. The map says which elements exist, how far apart rows "
            "are,\nand how many rows and columns a box has."};
      }
  });
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/09_tma/README.md, \"Walk\": panel_map and what follows, and common/device/tensor_map.h");
  look(coach, {8, 32, 0, 0, 0, 8, 32});       // A is one box
  look(coach, {24, 96, 0, 8, 32, 8, 32});     // one box of several
  look(coach, {24, 96, 4, 12, 32, 16, 64});   // rows are longer
  look(coach, {13, 44, 8, 3, 12, 24, 64});    // beyond A's end
  look(coach, {13, 44, 0, -5, -12, 24, 64});  // before its begin
  look(coach, {5, 4, 0, 64, 64, 8, 32});      // nothing of A
  look(coach, {1, 300, 0, 0, 100, 1, 150});   // a single row
  look(coach, {300, 1, 3, 100, 0, 150, 1});   // a single column
  Draw& draw = coach.draw();
  for (int i = 0; i < 4; ++i) {
    View v{draw.between(1, 60), draw.between(1, 150), 0, 0, 0, draw.between(1, 40), draw.between(1, 100)};
    v.padding = (4 - v.cols % 4) % 4 + 4 * draw.between(0, 2);
    v.row = static_cast<int>(draw.between(-10, v.rows)), v.col = 4 * static_cast<int>(draw.between(-5, v.cols / 4));
    const auto boxes_of_w = static_cast<double>((v.w_rows + 7) / 8 * ((v.w_cols + 31) / 32));
    look(coach, v, true)
        .at_least(boxes(boxes_of_w), 1, "A box comes by the copy engine: cp_async_bulk_tensor_2d, by one thread.")
        .at_most(boxes(boxes_of_w), 1, "One instruction copies a whole box. Which thread starts it, and how often?")
        .at_most(asked(4 * boxes_of_w), 0, "No thread loads elements of A: it asks the engine for a box.")
        .at_most(shared_stores(boxes_of_w), 0, "No thread writes to the box: the engine brings the zeros beyond A's edges, too.");
  }
  // A box alone is nothing that could be fast: there is no bar for the time.
}

}  // namespace exercise
