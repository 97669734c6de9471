#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"
#include "steps/tensor_parallel/loopback.h"

namespace exercise {

// As in gemm.cuh.
struct Block {
  std::int64_t tokens, model, hidden;
  int ranks;
};
struct Range {
  std::int64_t begin = 0, end = 0;
};
struct Shard {
  Range w1_rows, w1_cols, w2_rows, w2_cols;
};
enum class Do : int { kGather, kWaitGather, kMultiplyIn, kMultiplyOut, kExchange, kWaitExchange, kAdd };
struct Op {
  Do what;
  Range rows = {};
  std::int64_t rank = 0;
};
Range share(std::int64_t total, std::int64_t unit, int rank, int ranks);
Shard shard(const Block& b, int rank);
std::vector<Op> plan(const Block& b, int rank);
void multiply(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, float slope);

namespace {

constexpr std::int64_t kUnit = 8;
constexpr float kSlope = 0.5;     // exact for integers
constexpr double kPatience = 20;  // seconds
constexpr std::size_t kMostOps = 1000;

const Asked share(exercise::share);
const Asked shard(exercise::shard);
const Asked plan(exercise::plan);

std::string number(std::int64_t x) { return std::to_string(x); }
std::size_t at(std::int64_t x) { return static_cast<std::size_t>(x); }
std::int64_t size(const Range& r) { return r.end - r.begin; }
bool same(const Range& a, const Range& b) { return a.begin == b.begin && a.end == b.end; }
std::string text(const Range& r) { return number(r.begin) + " to " + number(r.end); }

// A block, and what the answer's ranks have of it.
struct Posed {
  Block block;
  std::int64_t salt = 0;
  std::uint64_t drawn = 0;
  std::vector<Range> tokens, columns = {};  // by rank
  std::vector<std::vector<Op>> plans = {};

  std::string what() const {
    return number(block.tokens) + " tokens x " + number(block.model) + " x " + number(block.hidden) + " hidden columns, " +
           number(block.ranks) + (block.ranks == 1 ? " rank" : " ranks") +
           (drawn ? ", drawn at random: --seed " + std::to_string(drawn) + " draws it again" : "");
  }
  std::string of_rank(std::int64_t rank) const { return "Rank " + number(rank) + " of " + number(block.ranks); }
  // By rank, of tokens; -1: nobody's.
  std::int64_t owner(std::int64_t token) const {
    for (std::size_t rank = 0; rank < tokens.size(); ++rank)
      if (tokens[rank].begin <= token && token < tokens[rank].end) return static_cast<std::int64_t>(rank);
    return -1;
  }
  // Small whole numbers that nobody can guess: all sums are exact.
  int element(std::int64_t matrix, std::int64_t row, std::int64_t col) const {
    return static_cast<int>((row * 2341 + col * 6407 + row * col % 13 * 17 + (salt + matrix) * 131) % 1921 % 5) - 2;
  }
  std::vector<float> values(std::int64_t matrix, const Range& rows, const Range& cols) const {
    std::vector<float> found;
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t col = cols.begin; col < cols.end; ++col) found.push_back(static_cast<float>(element(matrix, row, col)));
    return found;
  }
};

// --- (1), (2): who has what ---

std::vector<Range> shares(const Coach& coach, const Posed& p, std::int64_t total, std::int64_t unit, const std::string& of) {
  std::vector<Range> all;
  const std::int64_t units = (total + unit - 1) / unit;
  std::int64_t next = 0, least = units, most = 0;
  for (int rank = 0; rank < p.block.ranks; ++rank) {
    const Range r = share(total, unit, rank, p.block.ranks);
    const std::string it = "share(" + number(total) + ", " + number(unit) + ", " + number(rank) + ", " + number(p.block.ranks) +
                           ") is " + text(r) + ": ";
    coach.require(0 <= r.begin && r.begin <= r.end && r.end <= total,
                  it + "that does not lie within the " + number(total) + " " + of + ".");
    coach.require(r.begin == next, it + (r.begin > next ? of + " " + text({next, r.begin}) + " are nobody's."
                                                        : of + " " + text({r.begin, next}) + " are another rank's already."));
    coach.require(r.end % unit == 0 || r.end == total, it + "a unit is " + number(unit) + " of them, and no unit is cut.");
    next = r.end;
    const std::int64_t mine = (r.end + unit - 1) / unit - r.begin / unit;
    least = std::min(least, mine), most = std::max(most, mine);
    all.push_back(r);
  }
  coach.require(next == total, "Of " + number(total) + " " + of + ", " + text({next, total}) + " are nobody's: with " +
                                   number(p.block.ranks) + " ranks, share(" + number(total) + ", " + number(unit) + ", " +
                                   number(p.block.ranks - 1) + ", " + number(p.block.ranks) + ") is " + text(all.back()) +
                                   ".\nWhat does not divide is somebody's, too.");
  coach.require(most - least <= 1, "Of " + number(total) + " " + of + " in units of " + number(unit) + ", one of " +
                                       number(p.block.ranks) + " ranks has " + number(most) + " units and another one " +
                                       number(least) +
                                       ".\nAll wait for the one that has most: nobody has more than one unit more than another.");
  return all;
}

void check_shards(const Coach& coach, const Posed& p) {
  const Range model = {0, p.block.model};
  for (int rank = 0; rank < p.block.ranks; ++rank) {
    const Shard s = shard(p.block, rank);
    const Range& mine = p.columns[at(rank)];
    coach.require(same(s.w1_rows, model) && same(s.w1_cols, mine),
                  p.of_rank(rank) + " has rows " + text(s.w1_rows) + " and columns " + text(s.w1_cols) + " of W1, expected rows " +
                      text(model) + " and columns " + text(mine) + " (" + p.what() + ").\n" +
                      (same(s.w1_rows, model)
                           ? "These are whole sums of the hidden layer, and not the ones that share() gives this rank."
                           : "leaky_relu() of a part of a sum is no part of anything: W1 is cut so that a rank has whole sums of "
                             "the hidden layer."));
    coach.require(same(s.w2_rows, mine) && same(s.w2_cols, model),
                  p.of_rank(rank) + " has rows " + text(s.w2_rows) + " and columns " + text(s.w2_cols) + " of W2, expected rows " +
                      text(mine) + " and columns " + text(model) + " (" + p.what() +
                      ").\nOf the hidden layer a rank has its columns of W1 alone. Which rows of W2 are they multiplied by?");
  }
}

// --- (3), (4): when may what be done ---

struct Copy {
  Do begin, wait;
  std::string name, what;
  bool has_begun = false, is_here = false;
  std::int64_t rows_beside = 0;
};

class Reader {
 public:
  Reader(const Coach& coach, const Posed& posed, int rank)
      : coach_(coach), posed_(posed), rank_(rank), mine_(posed.tokens[at(rank)]), first_(at(posed.block.tokens)), second_(first_) {}

  void read(const std::vector<Op>& ops) {
    need(ops.size() <= kMostOps,
         "has a plan of " + std::to_string(ops.size()) + " lines; " + std::to_string(kMostOps) + " are enough");
    for (const Op& op : ops) {
      const bool is_known = op.what >= Do::kGather && op.what <= Do::kAdd;
      need(is_known, "has a line that is none of Do's");
      if (op.what == Do::kMultiplyIn || op.what == Do::kMultiplyOut)
        multiply(op.what == Do::kMultiplyIn, op.rows);
      else if (op.what == Do::kAdd)
        add(op.rank);
      else if (op.what == Do::kGather || op.what == Do::kWaitGather)
        copy(gather_, op.what);
      else
        copy(exchange_, op.what);
    }
    for (const auto* done : {&first_, &second_})
      for (std::int64_t t = 0; t < posed_.block.tokens; ++t)
        need((*done)[at(t)], "never multiplies " + of(t) + " by its shard of " + (done == &first_ ? "W1" : "W2") +
                                 ": of each sum of all tokens it has a part");
    if (posed_.block.ranks == 1) return;
    for (const Copy* each : {&gather_, &exchange_}) need(each->has_begun, "has no " + each->name + ": the other ranks wait for it");
    overlaps(gather_, "My own tokens need nobody: their first product is behind kGather, and in front of kWaitGather");
    overlaps(exchange_,
             "Nobody waits for the parts of my own tokens: the others' are multiplied first, and leave while mine are multiplied");
  }

 private:
  void need(bool holds, const std::string& what) const {
    coach_.require(holds, posed_.of_rank(rank_) + " " + what + ".\nThe block: " + posed_.what() + ". The rank's own tokens are " +
                              text(mine_) + ".");
  }
  std::string of(std::int64_t token) const {
    const std::int64_t owner = posed_.owner(token);
    return "token " + number(token) + ", " + (owner == rank_ ? "its own," : "rank " + number(owner) + "'s,");
  }
  bool is_mine(std::int64_t token) const { return mine_.begin <= token && token < mine_.end; }

  void copy(Copy& c, Do what) {
    if (what == c.wait) {
      need(c.has_begun, "waits for " + c.what + ", but no " + c.name + " stands above: it would wait forever");
      c.is_here = true;
      return;
    }
    need(!c.has_begun, "has a second " + c.name);
    if (c.begin == Do::kExchange) {
      need(gather_.has_begun || posed_.block.ranks == 1,
           "exchanges before it gathers: all ranks copy in the same order, gather first");
      for (std::int64_t t = 0; t < posed_.block.tokens; ++t)
        need(is_mine(t) || second_[at(t)], "sends its part of the sums of " + of(t) +
                                               " and has not multiplied it: its kMultiplyOut has to stand above kExchange");
    }
    c.has_begun = true;
  }
  void multiply(bool is_first, const Range& rows) {
    need(0 <= rows.begin && rows.begin <= rows.end && rows.end <= posed_.block.tokens,
         "multiplies tokens " + text(rows) + ", and there are " + number(posed_.block.tokens) + " of them");
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      if (is_first)
        need(is_mine(t) || gather_.is_here,
             "multiplies X of " + of(t) + " that may not be here yet, a race: kWaitGather has to stand above");
      else
        need(first_[at(t)], "multiplies the hidden layer of " + of(t) + " before it has computed it");
      auto& done = is_first ? first_ : second_;
      need(!done[at(t)], "multiplies " + of(t) + " twice by its shard of " + (is_first ? "W1" : "W2"));
      done[at(t)] = true;
    }
    for (Copy* each : {&gather_, &exchange_})
      if (each->has_begun && !each->is_here) each->rows_beside += size(rows);
  }
  void add(std::int64_t rank) {
    need(0 <= rank && rank < posed_.block.ranks, "adds the part of rank " + number(rank) + ", and there is no such rank");
    if (rank != rank_)
      need(exchange_.is_here,
           "adds rank " + number(rank) + "'s part, that may not be here yet, a race: kWaitExchange has to stand above");
    else
      for (std::int64_t t = mine_.begin; t < mine_.end; ++t)
        need(second_[at(t)], "adds its own part of " + of(t) + " before it has multiplied it");
  }
  void overlaps(const Copy& c, const std::string& why) const {
    need(c.rows_beside >= size(mine_), "multiplies " + number(c.rows_beside) + " rows while " + c.what +
                                           " are on the way, and has " + number(size(mine_)) +
                                           " tokens of its own: nothing hides the copy. " + why);
  }

  const Coach& coach_;
  const Posed& posed_;
  const int rank_;
  const Range mine_;
  std::vector<bool> first_, second_;  // by token: whether that product is there
  Copy gather_ = {Do::kGather, Do::kWaitGather, "kGather", "the others' tokens"};
  Copy exchange_ = {Do::kExchange, Do::kWaitExchange, "kExchange", "the others' parts"};
};

// --- the plans, on threads ---

// A rank's memory. What a copy brings is in its place when the plan has waited for it, and no sooner.
class Rank {
 public:
  Rank(const Posed& p, tensor_parallel::Communicator& c)
      : posed_(p), c_(c), me_(c.rank()), mine_(p.tokens[at(me_)]), shard_(exercise::shard(p.block, me_)) {
    const auto elements = [](std::int64_t rows, std::int64_t cols) { return at(rows * cols); };
    for (const Range& each : p.tokens) piece_ = std::max(piece_, size(each));
    const Block& b = p.block;
    X_ = device::Buffer<float>(elements(b.tokens, b.model), "X");
    put(X_, mine_.begin, p.values(0, mine_, {0, b.model}));
    W1_ = device::Buffer<float>(p.values(1, shard_.w1_rows, shard_.w1_cols), "W1");
    W2_ = device::Buffer<float>(p.values(2, shard_.w2_rows, shard_.w2_cols), "W2");
    hidden_ = device::Buffer<float>(elements(b.tokens, columns()), "hidden");
    part_ = device::Buffer<float>(elements(b.tokens, b.model), "part");
    for (float** each : {&gathered_, &sent_, &received_})
      *each = static_cast<float*>(c.allocate(elements(b.ranks * piece_, b.model) * sizeof(float)));
    y_.assign(elements(size(mine_), b.model), 0.0f);
  }

  // Y of its tokens.
  std::vector<float> run(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      const Range& r = op.rows;
      const std::int64_t model = posed_.block.model, rows = size(r);
      if (op.what == Do::kMultiplyIn)
        exercise::multiply(row_major<const float>(X_, r, model), {W1_.data(), model, columns(), columns(), 1},
                           row_major<float>(hidden_, r, columns()), kSlope);
      else if (op.what == Do::kMultiplyOut && rows > 0)
        exercise::multiply(row_major<const float>(hidden_, r, columns()), {W2_.data(), columns(), model, model, 1},
                           row_major<float>(part_, r, model), 1);
      else if (op.what == Do::kGather)
        gather();
      else if (op.what == Do::kWaitGather)
        arrive();
      else if (op.what == Do::kExchange)
        exchange();
      else if (op.what == Do::kAdd)
        add(op.rank);
    }
    return y_;
  }

 private:
  std::int64_t columns() const { return size(shard_.w1_cols); }
  std::size_t bytes() const { return at(piece_ * posed_.block.model) * sizeof(float); }
  float* piece(float* all, std::int64_t rank) const { return all + rank * piece_ * posed_.block.model; }
  template <class T>
  static Matrix<T> row_major(const device::Buffer<float>& in, const Range& rows, std::int64_t cols) {
    return {in.data() + rows.begin * cols, size(rows), cols, cols, 1};
  }
  void put(device::Buffer<float>& to, std::int64_t row, const std::vector<float>& values) const {
    to.upload(values.data(), values.size(), at(row * posed_.block.model));
  }
  std::vector<float> rows_of(const device::Buffer<float>& from, const Range& rows) const {
    std::vector<float> values(at(size(rows) * posed_.block.model));
    from.download(values.data(), values.size(), at(rows.begin * posed_.block.model));
    return values;
  }
  // Between pieces of equal size, which the communicator copies, and vectors.
  void stage(float* to, const std::vector<float>& values) const {
    device::detail::copy_in(to, values.data(), values.size() * sizeof(float));
  }
  std::vector<float> staged(const float* from, const Range& rows) const {
    std::vector<float> values(at(size(rows) * posed_.block.model));
    device::detail::copy_out(values.data(), from, values.size() * sizeof(float));
    return values;
  }

  void gather() {
    stage(piece(gathered_, me_), rows_of(X_, mine_));
    c_.all_gather(gathered_, bytes(), nullptr);
  }
  void arrive() {
    for (int other = 0; other < posed_.block.ranks; ++other)
      if (other != me_) put(X_, posed_.tokens[at(other)].begin, staged(piece(gathered_, other), posed_.tokens[at(other)]));
  }
  void exchange() {
    for (int other = 0; other < posed_.block.ranks; ++other)
      if (other != me_) stage(piece(sent_, other), rows_of(part_, posed_.tokens[at(other)]));
    c_.all_to_all(sent_, received_, bytes(), nullptr);
  }
  void add(std::int64_t rank) {
    const std::vector<float> part = rank == me_ ? rows_of(part_, mine_) : staged(piece(received_, rank), mine_);
    for (std::size_t i = 0; i < y_.size(); ++i) y_[i] += part[i];
  }

  const Posed& posed_;
  tensor_parallel::Communicator& c_;
  const int me_;
  const Range mine_;
  const Shard shard_;
  std::int64_t piece_ = 0;  // rows, of the largest
  device::Buffer<float> X_, W1_, W2_, hidden_, part_;
  float *gathered_ = nullptr, *sent_ = nullptr, *received_ = nullptr;  // the communicator's
  std::vector<float> y_;
};

std::vector<float> run_plans(const Posed& p) {
  std::vector<std::vector<float>> by_rank(at(p.block.ranks));
  tensor_parallel::run_loopback(p.block.ranks, kPatience, [&](tensor_parallel::Communicator& c) {
    by_rank[at(c.rank())] = Rank(p, c).run(p.plans[at(c.rank())]);
  });
  std::vector<float> all;
  for (const std::vector<float>& each : by_rank) all.insert(all.end(), each.begin(), each.end());
  return all;
}

// What each rank's part of a token's sums is.
std::vector<std::vector<double>> parts_of(const Posed& p, std::int64_t token) {
  std::vector<std::vector<double>> parts;
  for (const Range& columns : p.columns) {
    std::vector<double> part(at(p.block.model));
    for (std::int64_t h = columns.begin; h < columns.end; ++h) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.block.model; ++k) sum += p.element(0, token, k) * p.element(1, k, h);
      for (std::int64_t col = 0; col < p.block.model; ++col) part[at(col)] += (sum < 0 ? sum * kSlope : sum) * p.element(2, h, col);
    }
    parts.push_back(part);
  }
  return parts;
}

void compare(const Posed& p, const std::vector<float>& got) {
  for (std::int64_t token = 0; token < p.block.tokens; ++token) {
    const auto parts = parts_of(p, token);
    const auto is = [&](std::size_t rank, double times) {  // whether this rank's part is in it so many times, and the others' once
      for (std::int64_t col = 0; col < p.block.model; ++col) {
        double expected = 0;
        for (std::size_t other = 0; other < parts.size(); ++other) expected += (other == rank ? times : 1) * parts[other][at(col)];
        if (got.at(at(token * p.block.model + col)) != expected) return false;
      }
      return true;
    };
    if (is(parts.size(), 1)) continue;
    const auto owner = at(p.owner(token));
    std::string why = "Is each rank's part added once, one's own too?";
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const std::string whose =
          rank == owner ? "rank " + std::to_string(rank) + "'s own part" : "the part of rank " + std::to_string(rank);
      if (is(rank, 2)) why = "In them is " + whose + " twice.";
      if (is(rank, 0)) why = "In them " + whose + " is missing.";
    }
    throw NotYet{"The result is wrong: Y of token " + number(token) + ", which is rank " + std::to_string(owner) +
                 "'s, has other sums than expected. " + why};
  }
}

// The product by itself: what is wrong there is no fault of a plan.
void check_multiply(const Coach& coach, float slope) {
  constexpr std::int64_t kM = 5, kN = 9, kK = 7;
  const Posed p = {.block = {}, .salt = coach.draw().between(1, 999), .tokens = {}};
  coach.run("multiply() of 5 x 9 x 7 (m, n, k) by itself, slope " + std::string(slope == 1 ? "1" : "0.5"), [&] {
    const device::Buffer<float> A(p.values(0, {0, kM}, {0, kK}), "A"), B(p.values(1, {0, kK}, {0, kN}), "B"), C(kM * kN, "C");
    const std::vector<float> got = asked([&] {
      exercise::multiply({A.data(), kM, kK, kK, 1}, {B.data(), kK, kN, kN, 1}, {C.data(), kM, kN, kN, 1}, slope);
      device::synchronize();
      return C.download();
    });
    for (std::int64_t i = 0; i < kM * kN; ++i) {
      int sum = 0;
      for (std::int64_t k = 0; k < kK; ++k) sum += p.element(0, i / kN, k) * p.element(1, k, i % kN);
      const float expected = static_cast<float>(sum) * (sum < 0 ? slope : 1);
      if (got.at(at(i)) != expected)
        throw NotYet{"multiply() is wrong, before any plan is run: element (" + number(i / kN) + ", " + number(i % kN) + ") is " +
                     std::to_string(got.at(at(i))) + ", expected " + std::to_string(expected) +
                     ".\nThe file has it ready, and nothing of it is to be changed."};
    }
  });
}

void check_block(const Coach& coach, Posed p) {
  p.tokens = shares(coach, p, p.block.tokens, 1, "tokens");
  p.columns = shares(coach, p, p.block.hidden, kUnit, "hidden columns");
  check_shards(coach, p);
  for (int rank = 0; rank < p.block.ranks; ++rank) {
    p.plans.push_back(plan(p.block, rank));
    Reader(coach, p, rank).read(p.plans.back());
  }
  coach.run(p.what(), [&] { compare(p, asked([&] { return run_plans(p); })); });
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/tensor_parallel/README.md, \"Walk\"");
  for (const float slope : {kSlope, 1.0f}) check_multiply(coach, slope);
  // What divides; what does not; fewer tokens than ranks; fewer units than ranks; next to nothing.
  for (const auto& [tokens, model, hidden] :
       {std::array<std::int64_t, 3>{12, 8, 96}, {13, 7, 85}, {3, 5, 40}, {9, 4, 5}, {1, 1, 1}})
    for (int ranks = 1; ranks <= 4; ++ranks) check_block(coach, {.block = {tokens, model, hidden, ranks}, .tokens = {}});
  Draw& draw = coach.draw();
  for (int i = 0; i < 8; ++i)
    check_block(coach, {.block = {draw.between(1, 40), draw.between(1, 20), draw.between(1, 150), i % 4 + 1},
                        .salt = draw.between(1, 999),
                        .drawn = draw.seed(),
                        .tokens = {}});

  // No clock says here what a plan costs: rows that are multiplied beside a copy are counted in place of it. No bar for the time.
}

}  // namespace exercise
