#include <string>

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C);

namespace {

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("is touched while"))
    return "The sums are wgmma's until wait_group<0>: only then they are all there, and the thread's to store.";
  if (says("setmaxnreg"))
    return "setmaxnreg is executed by all four warps of a warpgroup, before one thread is picked. The one that copies gives back\n"
           "what the others get, and does not go on to their part.";
  if (says("race on dynamic") && says("read by thread"))
    return "A stage goes back when nobody reads it any more. The product that was issued last is still under way: wait_group<1>\n"
           "says only that the one before is over. And no product is issued before the phase of `full` in which its tile comes.";
  if (says("for phase 0 of full (byte 0 of 24), which lacks 0 bytes"))
    return "Has any copy been started? The thread that copies is one of the last warpgroup: who is picked there?";
  if (says("expect_tx on full") || says("then written by the cp.async.bulk.tensor"))
    return "One thread of the last warpgroup copies: each tile has one arrival at `full`, and each of its panels is copied once.";
  if (says("of which not all")) return "Before a tile is multiplied, its warpgroup waits at full[place.stage] for place.phase.";
  return "`full` gets one arrival for each tile, and the engine's bytes. `empty` gets one of everybody who reads the stage, both\n"
         "warpgroups: as many as mbarrier_init() says. The thread that copies waits for it, and nobody else.";
}

Counts multiply(const Coach& coach, Case c) {
  c.meant = meant;
  c.hint =
      "Does one thread copy all tiles, does each of the other warpgroups multiply all of them, and are the products over when rC "
      "is\n"
      "stored?";
  return coach.multiply<__half, float>(c, gemm);
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/11_warp_specialized/README.md, \"Walk\"");
  // k from one tile to more than twice the ring.
  for (const std::int64_t k : {64, 256}) multiply(coach, {128, 64, k});
  for (const Case& c : {Case{136, 72, 40}, Case{1, 8, 136}}) multiply(coach, c);
  Draw& draw = coach.draw();
  Case random{draw.between(1, 200), draw.between(1, 100), draw.between(200, 500)};
  random.padding = draw.padding(random.k, 8), random.padding_b = draw.padding(random.n, 8), random.drawn = draw.seed();
  multiply(coach, random);
  Case much{8, 8, 8 * draw.between(120, 250)};
  much.drawn = draw.seed();
  multiply(coach, much);

  Case drawn{128, 64, 64 * draw.between(3, 5)};  // in all orders, for how much is under way depends on them
  drawn.what = "drawn at random: --seed " + std::to_string(draw.seed()) + " draws it again";
  for (const Case& c : {Case{128, 64, 192}, Case{128, 64, 448}, drawn}) {
    const double steps = tiles(c, 128, 64, 64);
    multiply(coach, c)
        .at_least(wgmma(8 * steps), 1, "The products come from wgmma: two warpgroups, four slices of each tile.")
        .at_most(wgmma(8 * steps), 1, "Each slice is multiplied once by each warpgroup. Does the one that copies multiply, too?")
        .at_least(boxes(3 * steps), 1, "Tiles come by the copy engine.")
        .at_most(boxes(3 * steps), 1, "Each panel is copied once, by one thread.")
        .at_most(asked(steps), 0, "No thread loads elements of A or B: the engine brings them.")
        .at_most(shared_loads(steps), 0, "No thread reads the panels: wgmma does, out of shared memory.")
        .at_most(barriers(static_cast<double>(c.m / 128 * c.n / 64)), 1,
                 "Warps with different roles meet at full and empty alone. __syncthreads() would have them wait for each other.")
        .at_most(&Teamwork::named_of_roles, 0,
                 "Warps with different roles meet at full and empty alone, whatever the name of another barrier is.")
        .at_least_registers(
            232,
            "A block has what its launch took: 384 threads with 168 registers are 64,512. The warpgroup that copies keeps 40 or "
            "less, by\nsetmaxnreg_dec, and each of the 256 threads that multiply gets its share of the rest, by setmaxnreg_inc.")
        .at_least_copies_each_time(
            4,  // panels: a whole tile's, and the one that begins
            "Copies run ahead at each tile, not at the first ones alone. The thread that copies waits for an empty stage, and who\n"
            "multiplies gives it back when the products of the tile before are over.")
        .at_least_groups_under_way(2, "When a tile's products have been started, those of the tile before need not be over.")
        .at_most_lonely_products(
            2 * static_cast<std::uint64_t>(c.m / 128 * c.n / 64),
            "Both warpgroups, at each tile but the first, start its products while those of the tile before are under way.\n"
            "Which wait in the loop is for all of them?")
        .at_most_mbarriers(6, "Three stages have three `full` and three `empty`. The roles meet there, and nowhere else.");
  }
  // Toy sizes: how fast it is, lesson 11 measures. There is no bar for the time.
}

}  // namespace exercise
