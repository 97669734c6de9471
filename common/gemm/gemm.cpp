#include "common/gemm/gemm.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace gemm {
namespace detail {
namespace {

using Wide = __int128;  // strides times sizes may pass 64 bits before they are refused

// An arithmetic progression of `count` element addresses, `step` > 0 bytes apart (or a single one).
struct Line {
  Wide begin;
  std::int64_t count;
  Wide step;
  Wide last() const { return begin + (count - 1) * step; }
};

// A matrix as `lines` lines, `pitch` >= 0 bytes apart. Negative strides are turned around, repeated rows and columns are
// counted once, and the elements of a line are the closer neighbours.
struct Lattice {
  Line line;
  std::int64_t lines;
  Wide pitch;
};

Lattice lattice(const Extent& m) {
  Wide begin = reinterpret_cast<std::intptr_t>(m.data);
  std::int64_t count[2] = {m.rows, m.cols};
  Wide step[2] = {Wide(m.row_stride) * m.element_bytes, Wide(m.col_stride) * m.element_bytes};
  for (int d = 0; d < 2; ++d) {
    if (count[d] == 1) step[d] = 0;
    if (step[d] < 0) begin += step[d] * (count[d] - 1), step[d] = -step[d];
    if (step[d] == 0) count[d] = 1;
  }
  const bool rows_are_lines = count[1] > 1 && (step[1] <= step[0] || count[0] == 1);
  const int inner = rows_are_lines ? 1 : 0, outer = 1 - inner;
  return {{begin, count[inner], step[inner]}, count[outer], step[outer]};
}

Wide floor_div(Wide a, Wide b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// x * a == gcd (mod b), by Euclid.
Wide inverse(Wide a, Wide b, Wide& gcd) {
  Wide x = 1, next_x = 0, r = a, next_r = b;
  while (next_r) {
    const Wide q = r / next_r;
    std::swap(x, next_x), next_x -= q * x;
    std::swap(r, next_r), next_r -= q * r;
  }
  gcd = r;
  return x;
}

// Whether a.begin + i * a.step == b.begin + j * b.step + shift for some i and j in range.
bool meet(const Line& a, const Line& b, Wide shift) {
  const Wide difference = b.begin + shift - a.begin;  // i * a.step - j * b.step == difference
  if (a.count == 1 && b.count == 1) return difference == 0;
  if (a.count == 1) return -difference % b.step == 0 && -difference >= 0 && -difference / b.step < b.count;
  if (b.count == 1) return difference % a.step == 0 && difference >= 0 && difference / a.step < a.count;
  Wide gcd;
  const Wide x = inverse(a.step, b.step, gcd);
  if (difference % gcd != 0) return false;
  // All solutions: i = i0 + t * (b.step / gcd), with j growing by a.step / gcd each time.
  const Wide period = b.step / gcd;
  Wide i = (difference / gcd % period) * (x % period) % period;
  if (i < 0) i += period;
  // The first i that also gives j >= 0.
  const Wide lowest = -floor_div(-std::max<Wide>(0, difference), a.step);  // ceil: i * a.step >= difference
  if (i < lowest) i += -floor_div(-(lowest - i), period) * period;
  if (i >= a.count) return false;
  return (i * a.step - difference) / b.step < b.count;
}

std::string shape(const Extent& m) { return std::to_string(m.rows) + " x " + std::to_string(m.cols); }

void check_operand(const char* name, const Extent& m) {
  const std::string who = std::string("gemm: ") + name;
  if (m.rows < 0 || m.cols < 0) throw Refused(who + " has a negative dimension (" + shape(m) + "); dimensions are 0 or more");
  if (m.rows == 0 || m.cols == 0) return;
  if (!m.data) throw Refused(who + " has elements but its pointer is null; pass device memory");
  if (reinterpret_cast<std::uintptr_t>(m.data) % static_cast<std::uintptr_t>(m.element_bytes))
    throw Refused(who + " is not aligned to its element type; its address must be a multiple of " +
                  std::to_string(m.element_bytes));
  const Lattice l = lattice(m);
  const Wide bytes = l.line.last() - l.line.begin + (l.lines - 1) * l.pitch;
  if (l.line.begin < 0 || bytes > (Wide(1) << 62) || l.line.begin + bytes > (Wide(1) << 62))
    throw Refused(who + " reaches beyond the address space; its strides are too large");
}

}  // namespace

bool overlaps_itself(const Extent& m) {
  if (m.rows <= 0 || m.cols <= 0) return false;
  const auto magnitude = [](std::int64_t x) { return x < 0 ? -Wide(x) : Wide(x); };
  const Wide r = magnitude(m.row_stride), c = magnitude(m.col_stride);
  if (m.rows > 1 && r == 0) return true;
  if (m.cols > 1 && c == 0) return true;
  if (m.rows == 1 || m.cols == 1) return false;
  // (i, j) and (i + di, j + dj) coincide if di * r == dj * c up to sign; the smallest such step is (c / gcd, r / gcd).
  Wide gcd;
  inverse(r, c, gcd);
  return c / gcd < m.rows && r / gcd < m.cols;
}

bool overlap(const Extent& a, const Extent& b) {
  if (a.rows <= 0 || a.cols <= 0 || b.rows <= 0 || b.cols <= 0) return false;
  const Lattice la = lattice(a), lb = lattice(b);
  const Wide length_a = la.line.last() - la.line.begin + a.element_bytes,
             length_b = lb.line.last() - lb.line.begin + b.element_bytes;
  const Wide end_a = la.line.begin + (la.lines - 1) * la.pitch + length_a,
             end_b = lb.line.begin + (lb.lines - 1) * lb.pitch + length_b;
  if (end_a <= lb.line.begin || end_b <= la.line.begin) return false;

  // The ranges overlap, but the elements may interleave. For each line of a, only a few lines of b come near.
  constexpr std::int64_t kPatience = 20'000'000;
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < la.lines; ++i) {
    Line line_a = la.line;
    line_a.begin += i * la.pitch;
    std::int64_t first = 0, last = lb.lines - 1;
    if (lb.pitch > 0) {
      first = static_cast<std::int64_t>(
          std::clamp<Wide>(floor_div(line_a.begin - length_b - lb.line.begin, lb.pitch) + 1, 0, lb.lines));
      last =
          static_cast<std::int64_t>(std::min<Wide>(floor_div(line_a.begin + length_a - 1 - lb.line.begin, lb.pitch), lb.lines - 1));
    }
    for (std::int64_t j = first; j <= last; ++j) {
      if (++pairs > kPatience) return true;  // so tangled that it is safer to refuse
      Line line_b = lb.line;
      line_b.begin += j * lb.pitch;
      // Elements share a byte if their addresses differ by less than the size of the lower one.
      for (std::int64_t shift = 1 - a.element_bytes; shift < b.element_bytes; ++shift)
        if (meet(line_a, line_b, shift)) return true;
    }
  }
  return false;
}

void check(const Extent& a, const Extent& b, const Extent& c) {
  check_operand("A", a);
  check_operand("B", b);
  check_operand("C", c);
  if (a.cols != b.rows || a.rows != c.rows || b.cols != c.cols)
    throw Refused("gemm: shapes do not fit: A is " + shape(a) + ", B is " + shape(b) + ", C is " + shape(c) +
                  "; they must be m x k, k x n and m x n");
  if (overlaps_itself(c)) throw Refused("gemm: elements of C overlap; give C strides that keep its elements apart");
  if (overlap(c, a)) throw Refused("gemm: C overlaps A; write the result to other memory");
  if (overlap(c, b)) throw Refused("gemm: C overlaps B; write the result to other memory");
}

}  // namespace detail

unsigned grid_size(std::int64_t tiles) {
  if (tiles > 0x7fffffff)
    throw Refused("gemm: " + std::to_string(tiles) +
                  " blocks are more than a grid can have (2^31 - 1); use a larger tile or split C");
  return static_cast<unsigned>(tiles);
}

}  // namespace gemm
