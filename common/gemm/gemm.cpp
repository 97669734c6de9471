#include "common/gemm/gemm.h"

#include <algorithm>
#include <string>
#include <vector>

namespace gemm {
namespace detail {
namespace {

using Wide = __int128;  // strides times sizes may pass 64 bits before they are refused

// An index i, 0 <= i < count, that moves an address by i * step bytes.
struct Index {
  Wide step, count;
  Wide length() const { return (count - 1) * step; }
};
using Indices = std::vector<Index>;

// The addresses of a matrix: begin + i * step for its two indices. Negative strides are turned around, repeated rows and columns
// are counted once.
struct Lattice {
  Wide begin;
  Index rows, cols;
  Wide length() const { return rows.length() + cols.length(); }
};

Lattice lattice(const Extent& m) {
  Wide begin = reinterpret_cast<std::intptr_t>(m.data);
  const auto index = [&](std::int64_t count, std::int64_t stride) {
    const Wide step = count == 1 ? 0 : Wide(stride) * m.element_bytes;
    if (step < 0) begin += step * (count - 1);
    return Index{step < 0 ? -step : step, step == 0 ? 1 : count};
  };
  const Index rows = index(m.rows, m.row_stride), cols = index(m.cols, m.col_stride);
  return {begin, rows, cols};
}

Wide floor_div(Wide a, Wide b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
Wide ceil_div(Wide a, Wide b) { return -floor_div(-a, b); }
Wide gcd(Wide a, Wide b) { return b == 0 ? a : gcd(b, a % b); }

// The least x >= 0 for which a * x modulo m lies in [low, high], with 0 <= low <= high < m; or -1. By Euclid: if no multiple of a
// lies in between, then x * a passes m y times, and it is y that is looked for, modulo a.
Wide first_in_range(Wide a, Wide m, Wide low, Wide high) {
  a %= m;
  if (low == 0) return 0;
  if (a == 0) return -1;
  const Wide x = ceil_div(low, a);
  if (x * a <= high) return x;
  const auto negated = [a](Wide value) { return (a - value % a) % a; };
  const Wide y = first_in_range(m, a, negated(high), negated(low));
  return y < 0 ? -1 : ceil_div(low + m * y, a);
}

// Whether low <= i * p.step + j * q.step < low + width for some i and j. Takes as long as Euclid's algorithm.
bool two_hit(const Index& p, const Index& q, Wide low, Wide width) {
  // With j counted down from its end, i * p.step - low is j * q.step and less than `width` more; so j grows with i.
  low -= q.length();
  const Wide first = std::max<Wide>(0, ceil_div(low, p.step));
  const Wide last = std::min(p.count - 1, floor_div(q.step * q.count - 1 + low, p.step));
  if (first > last) return false;
  // (p.step * (first + x) - low) modulo q.step has to be less than `width`.
  const Wide rest = (p.step * first - low) % q.step;
  if (rest < width) return true;
  const Wide x = first_in_range(p.step, q.step, q.step - rest, q.step - rest + width - 1);
  return x >= 0 && x <= last - first;
}

constexpr int kPatience = 2'000;  // calls of hit(): two milliseconds

// Whether the indices can be chosen so that low <= the sum of all i * step < low + width.
bool hit(Indices indices, Wide low, Wide width, int& patience) {
  if (--patience < 0) return true;  // so tangled that it is safer to refuse
  std::sort(indices.begin(), indices.end(), [](const Index& a, const Index& b) { return a.step < b.step; });
  for (std::size_t i = 0; i < indices.size();) {
    // Steps that leave no gap make the target wider.
    if (indices[i].step <= width) {
      low -= indices[i].length(), width += indices[i].length();
      indices.erase(indices.begin() + i), i = 0;
      continue;
    }
    // A step that is a multiple of a smaller one, and no longer than all of its steps: both together are one index.
    const auto continues = [&](const Index& next) {
      return next.step % indices[i].step == 0 && next.step <= indices[i].step * indices[i].count;
    };
    const auto next = std::find_if(indices.begin() + i + 1, indices.end(), continues);
    if (next == indices.end()) {
      ++i;
      continue;
    }
    indices[i].count += next->length() / indices[i].step;
    indices.erase(next), i = 0;
  }
  Wide common = 0, length = 0;
  for (const Index& index : indices) {
    common = gcd(common, index.step);
    length += index.length();
  }
  if (low > length || low + width <= 0) return false;
  if (indices.empty()) return true;
  if (ceil_div(low, common) * common >= low + width) return false;  // as in interleaved columns
  if (indices.size() <= 2) return two_hit(indices.size() == 2 ? indices[1] : Index{1, 1}, indices[0], low, width);
  // The one with the fewest values that the others can make up for.
  const auto first = [&](const Index& i) { return std::max<Wide>(0, ceil_div(low - (length - i.length()), i.step)); };
  const auto last = [&](const Index& i) { return std::min(i.count - 1, floor_div(low + width - 1, i.step)); };
  const auto fewest = std::min_element(indices.begin(), indices.end(),
                                       [&](const Index& a, const Index& b) { return last(a) - first(a) < last(b) - first(b); });
  Indices others = indices;
  others.erase(others.begin() + (fewest - indices.begin()));
  for (Wide x = first(*fewest); x <= last(*fewest); ++x)
    if (hit(others, low - x * fewest->step, width, patience)) return true;
  return false;
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
  const Wide bytes = l.length();
  if (l.begin < 0 || bytes > (Wide(1) << 62) || l.begin + bytes > (Wide(1) << 62))
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
  const Wide common = gcd(r, c);
  return c / common < m.rows && r / common < m.cols;
}

bool overlap(const Extent& a, const Extent& b) {
  if (a.rows <= 0 || a.cols <= 0 || b.rows <= 0 || b.cols <= 0) return false;
  const Lattice la = lattice(a), lb = lattice(b);
  // With b's indices counted down from its last element, two elements share a byte if what the four indices add up to lies in a
  // range.
  int patience = kPatience;
  return hit({la.rows, la.cols, lb.rows, lb.cols}, lb.begin + lb.length() - la.begin - (a.element_bytes - 1),
             a.element_bytes + b.element_bytes - 1, patience);
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
