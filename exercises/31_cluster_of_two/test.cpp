#include <string>

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

namespace {

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if ((says("race on sB") || says("race on sA")) && says("who reads what a copy brings has waited"))
    return "Who reads has waited for a phase of `full` that was over too early: each block expects the bytes of A and of B, "
           "whoever "
           "asks for them.";
  if (says("expect_tx on full") && says("one arrival more"))
    return "Each block waits at its own `empty` before each slice, whoever asks for B's box: a box of A comes to that stage, and "
           "what "
           "comes is\nsaid to its `full`.";
  if (says("race on sB") && says("written by the bulk copy issued") && says("then written by the cp.async.bulk"))
    return "Two copies to one place. Do both blocks ask for the same box of B, which comes to both? Or is a stage filled again "
           "before all\nwarps of both blocks have read it, with all of their lanes, and arrived at `empty`?";
  if (says("race on sB") || says("race on sA"))
    return "A box of B comes to both blocks, whoever asks for it. So before anything is copied to a stage, all warps of both "
           "blocks "
           "have read it\nwith all of their lanes, and `empty` counts them all.";
  if (says("deadlock") && says("of empty"))
    return "`empty` of each block has as many arrivals as mbarrier_init says. Each warp arrives at both blocks' barriers. At first "
           "a "
           "stage is empty:\nparity 1 counts as over before the first phase, parity 0 does not.";
  if (says("deadlock") && says("of full"))
    return "`full` of each block expects the bytes of A and of B, whoever asks for them. The mask has a bit for each block to "
           "which a "
           "box comes.";
  return "";
}

Counts multiply(const Coach& coach, Case c) {
  c.meant = meant;
  return coach.multiply<float, float>(c, gemm);
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/16_multicast/README.md, and first.cu beside it");
  // One slice; a stage for each; the first stage again; and what sticks out of C.
  for (const Case& c : {Case{32, 32, 16}, Case{32, 32, 32}, Case{32, 32, 48}, Case{32, 32, 80}}) multiply(coach, c);
  multiply(coach, {.m = 34, .n = 20, .k = 52, .padding = 4});
  Draw& draw = coach.draw();
  for (int i = 0; i < 4; ++i) {
    Case c{.m = draw.length(70), .n = draw.length(70), .k = draw.length(70), .again = i == 0, .drawn = draw.seed()};
    c.padding = draw.padding(c.k, 4), c.padding_b = draw.padding(c.n, 4), c.padding_c = draw.padding(c.n);
    multiply(coach, c);
  }

  Case much{.m = draw.between(17, 32), .n = 4, .k = 4 * draw.between(100, 250), .drawn = draw.seed()};
  multiply(coach, much);

  // Whole tiles, and some that end in the second half of one.
  for (const Case& c :
       {Case{64, 32, 128}, Case{32 - draw.between(1, 15), 64 - 4 * draw.between(1, 3), 16 * draw.between(2, 5) - 4}}) {
    const double clusters = tiles(c, 32, 32, c.k), loads = tiles(c, 32, 32, 16);
    const Counts counts = multiply(coach, c);
    counts.at_least(boxes(3 * loads), 1, "The copy engine brings all of A and B.")
        .at_most(boxes(3 * loads), 1,
                 "For each slice of k, the two blocks of a cluster need two boxes of A and one of B. Who asks for B's box has it "
                 "brought to both:\ncp_async_bulk_tensor_2d_multicast().")
        .at_most(global_loads(1), 0, "Nothing is left for threads to load.")
        .at_most(
            &Teamwork::cluster_meetings, clusters * 2 * 2,
            "The blocks meet at the beginning and at the end. In between, `full` and `empty` are enough: nobody waits for all.")
        .at_least_blocks(static_cast<std::uint64_t>(2 * clusters),
                         "A block has 16 rows and 32 columns of C, and a cluster two blocks.");
    if (c.m % 32) continue;  // warps without rows of C may do less
    const interpreter::Counters sum = counts.total();
    const double of_warp = static_cast<double>(sum.shared_load.bytes + sum.matrix_load.bytes) / (clusters * 2 * 4);
    constexpr double kUneven = 1.3;  // less than what three warps have
    counts
        .at_most(
            &Teamwork::block_meetings, clusters * 2 * 4,
            "A block waits for all of its threads at the beginning, before the barriers are used, and maybe at the end. In the "
            "loop nobody does.")
        .at_most(&Teamwork::named_of_all, clusters * 2 * 4 - static_cast<double>(counts.teamwork().block_meetings),
                 "A named barrier of all threads is a barrier of the block, too. In the loop nobody waits for all.")
        .at_most(&Teamwork::named_of_roles, clusters * 2 * 2,
                 "In the loop who copies and who multiplies meet at full and empty alone, whatever the name of another barrier is.")
        .at_most(&Teamwork::shared_bytes_of_warp, of_warp * kUneven,
                 "Four warps multiply, each a fourth of the block's tile. Which warp reads most of what is multiplied?");
  }

  // The copies are the same in all answers that pass: no bar for the time.
}

}  // namespace exercise
