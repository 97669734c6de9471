#include <string>

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C);

namespace {

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("it is in no group yet"))
    return "A wait waits for groups, and a product is in none before wgmma_commit_group(): once for each tile, behind its "
           "products.";
  if (says("is touched while"))
    return "The sums are wgmma's until wait_group<0>: only then they are all there, and the thread's to store.";
  if (says("without a wgmma.fence")) return "The threads have set rC to 0. wgmma_fence() comes between that and the first product.";
  if (says("deadlock") && says("__syncthreads"))
    return "__syncthreads() waits for the thread that copies, too. In the loop, full and empty are enough.";
  return "A stage goes back once for each tile, by one lane of each of the four warps, when the tile's products are over. When a "
         "wait "
         "leaves\none group under way, those of the tile before are, and those of this tile are not.";
}

Counts multiply(const Coach& coach, Case c) {
  c.hint = "Are all four slices of every tile multiplied, and are the products over when rC is stored?";
  c.meant = meant;
  return coach.multiply<__half, float>(c, gemm);
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/10_wgmma/README.md, \"Walk\": the main loop");
  // k from one tile to more than twice the ring.
  for (const std::int64_t k : {64, 128, 192, 256}) multiply(coach, {64, 64, k});
  for (const Case& c : {Case{72, 136, 40}, Case{1, 8, 200}, Case{8, 72, 136}}) multiply(coach, c);
  Draw& draw = coach.draw();
  Case random{draw.between(1, 100), draw.between(1, 100), draw.between(200, 500)};
  random.padding = draw.padding(random.k, 8), random.padding_b = draw.padding(random.n, 8), random.drawn = draw.seed();
  multiply(coach, random);
  Case much{8, 8, 8 * draw.between(120, 250)};
  much.drawn = draw.seed();
  multiply(coach, much);

  Case drawn{128, 64, 64 * draw.between(3, 6)};  // in all orders, for how much is under way depends on them
  drawn.what = "drawn at random: --seed " + std::to_string(draw.seed()) + " draws it again";
  for (const Case& c : {Case{128, 64, 128}, Case{64, 64, 448}, drawn}) {
    const double panels = tiles(c, 64, 64, 64);
    multiply(coach, c)
        .at_least(wgmma(4 * panels), 1, "The products come from wgmma: four slices of each tile.")
        .at_most(wgmma(4 * panels), 1, "Each slice is multiplied once.")
        .at_least(boxes(2 * panels), 1, "Tiles come by the copy engine.")
        .at_most(boxes(2 * panels), 1, "Each panel is copied once.")
        .at_most(asked(panels), 0, "No thread loads elements of A or B: the engine brings them.")
        .at_most(shared_loads(panels), 0, "No thread reads the panels: wgmma does, out of shared memory.")
        .at_most(barriers(static_cast<double>(c.m / 64 * c.n / 64)), 1,
                 "After the barriers have been made, full and empty are enough: no __syncthreads() in the loop.")
        .at_most(&Teamwork::named_of_roles, 0,
                 "Who copies and those who use what comes meet at full and empty alone, whatever the name of another barrier is.")
        .at_least_groups_under_way(
            2,
            "When a tile's products have been started, those of the tile before need not be over. What does the wait "
            "in the loop\nwait for? wgmma_wait_group<0> waits for the products that were just started, too, and the "
            "tensor cores stand still until the\nnext ones come.")
        .at_most_lonely_products(
            static_cast<std::uint64_t>(c.m / 64 * c.n / 64),
            "At each tile but the first, the products of the tile before are still under way when the first of this one starts.\n"
            "Which wait in the loop is for all of them?")
        .at_least_copies_each_time(3,  // panels: a whole tile's, and the one that begins
                                   "A stage goes back as soon as the products of the tile before are over: when this tile's have "
                                   "been started. Given back a\n"
                                   "tile later, or after the loop, it lets fewer copies run ahead.");
  }
  // Toy sizes: how fast it is, lesson 10 measures. There is no bar for the time.
}

}  // namespace exercise
