#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C);

namespace {

constexpr const char* kParts =
    "Each tile of k belongs to one part: part p begins where part p - 1 ends, and the last one ends with k. Is every part added, "
    "all\n"
    "in float, and rounded to f16 once?";

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("out of bounds") || says("misaligned"))
    return "A part of k begins at a multiple of kBlockK, and no part goes beyond the end of k: k_end is A.cols at most.";
  if (says("uninitialised") && says("sums"))
    return "`sums` has a place for each part. Does a block write each, and are no others read?";
  return "";
}

Case with_hint(Case c) {
  if (c.hint.empty()) c.hint = kParts;
  c.meant = meant;
  return c;
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/06_autotune/README.md, \"Picture\", and steps/03_tensor_core/README.md");
  // Rows of A and columns of B begin at multiples of 8 elements: k and the padding together are one.
  for (const Case& c : {Case{32, 64, 64, "nt"}, Case{40, 72, 328, "nt"}, Case{16, 33, 1000, "nt"}, Case{3, 5, 1544, "nt"},
                        Case{1, 70, 777, "nt", 7}, Case{37, 1, 515, "nt", 5}, Case{3, 5, 9, "nt", 7}})
    coach.multiply<__half, __half>(with_hint(c), gemm);

  for (const Case& c : coach.drawn({.layout = "nt", .aligned_a = 8, .aligned_b = 8}))
    coach.multiply<__half, __half>(with_hint(c), gemm);
  coach.multiply_far_rows<__half, __half>(Case{3, 3, 9, "nt", 7}, gemm);
  Case many = {coach.draw().between(1, 20), coach.draw().between(1, 40), 8 * coach.draw().between(32 * 17, 32 * 40),
               "nt"};  // parts
  many.drawn = coach.draw().seed();
  coach.multiply<__half, __half>(with_hint(many), gemm);

  // Each product occurs twice, the second time with the other sign, so C is 0. What parts lose is left.
  constexpr int64_t kK = 1024, kHalf = kK / 2;
  const auto number = [](int64_t k) { return k < kHalf ? k : (5 * k + 3) % kHalf; };
  const auto sign = [](int64_t k) { return k < kHalf ? 1 : -1; };
  const Case zero = {
      .m = 32,
      .n = 64,
      .k = kK,
      .layout = "nt",
      .a = [=](int64_t row, int64_t k) { return 1 + static_cast<double>((number(k) * 37 + row * 101) % 1021) / 1024; },
      .b = [=](int64_t k, int64_t col) { return sign(k) * (1 + static_cast<double>((number(k) * 53 + col * 97) % 1019) / 1024); },
      .what = "512 products with plus, the same 512 with minus",
      .hint =
          "The sum grows to about 1000 on its way. A __half has 11 bits: near 1000 the next one is 0.5 away. A float is 0.00006\n"
          "away. What is rounded to 16 bits before the sum is complete? And who says in which order parts are added?",
      .same_bits = true};
  constexpr int kCut = 4, kTiles = 1;
  const Counts counts = coach.multiply<__half, __half>(zero, gemm);
  const double operands = (32 + 64) * kK * 2, sums = kCut * 32 * 64 * 4, tickets = kCut * 32 * 2;  // who is the last to come
  counts
      .at_most(loaded(operands + sums + tickets), 1,
               "Together the blocks of a tile load its rows of A and its columns of B once, and each part of a sum is loaded once. "
               "Which\n"
               "part of k does each block need?")
      .at_most(mma(32 / 16 * 64 / 8 * kK / 16), 1, "32 x 64 x 1024 are 2 x 8 x 64 pieces of 16 x 8 x 16. One mma.sync is enough.")
      .at_least(mma(32 / 16 * 64 / 8 * kK / 16), 1, "32 x 64 x 1024 are 2 x 8 x 64 pieces of 16 x 8 x 16, one mma.sync each.");
  for (const interpreter::KernelProfile& launch : counts.launches())
    if (launch.total.mma > 0)
      coach.require(
          launch.grid.x * launch.grid.y * launch.grid.z >= kTiles * kCut,
          "The kernel that multiplies has " + std::to_string(launch.grid.x * launch.grid.y * launch.grid.z) +
              " blocks for 32 x 64 x 1024. C is one tile, but k is long enough for four parts:\nfour blocks, on four SMs, "
              "at the same time.");

  Case drawn = {32 * coach.draw().between(1, 2), 64 * coach.draw().between(1, 2), 256 * coach.draw().between(2, 7), "nt"};
  drawn.drawn = coach.draw().seed();
  Case ragged = drawn;
  ragged.m += coach.draw().between(17, 31), ragged.n += coach.draw().between(33, 63);
  for (const Case& c : {zero, drawn, ragged}) {
    const std::int64_t steps = c.k / 64, parts = c.k / 256;
    coach.multiply<__half, __half>(with_hint(c), gemm)
        .at_most(mma(tiles(c, 32, 64, 64) * 64), 1, are_pieces(c) + "One mma.sync is enough.")
        .at_most_mma_of("block", static_cast<std::uint64_t>((steps + parts - 1) / parts * 64),
                        "k is cut into " + std::to_string(parts) + " parts. Which block multiplies more than one of them?");
    coach.require_tensor_core<__half, __half>(c, gemm);
  }

  const char* const slow =
      "Into how many parts is k cut, and what does it cost to add them? More parts than SMs can take help nobody.";
  coach.multiply_on_gpu<__half, __half>({.m = 16, .n = 4096, .k = 11008, .layout = "nt", .slow = slow}, gemm);
  coach.multiply_on_gpu<__half, __half>({.m = 4096, .n = 4096, .k = 11008, .layout = "nt", .slow = slow}, gemm);
}

}  // namespace exercise
