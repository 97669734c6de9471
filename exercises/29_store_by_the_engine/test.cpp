#include <string>

#include "common/exercise/coach.h"

namespace exercise {

void outer(Matrix<const float> a, Matrix<const float> b, Matrix<float> C);

namespace {

Figure boxes_stored(double of) {
  return {"boxes that the copy engine stores, as a multiple of what is needed",
          [](const interpreter::Counters& c) { return static_cast<double>(c.bulk_write.requests); },
          [of](const interpreter::Counters&) { return of; }};
}
Figure plain_stores() {
  return {"stores of a warp to global memory",
          [](const interpreter::Counters& c) { return static_cast<double>(c.global_store.requests + c.global_atomic.requests); },
          [](const interpreter::Counters&) { return 1.0; }};
}

constexpr const char* kBarriers =
    "Two barriers for each panel are enough, whatever their names are: the place is free, and the panel is complete.";

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("race on C"))
    return "One thread asks for each store, by one instruction. Is a panel asked for by several threads, or twice?";
  if (says("thread ends while its"))
    return "One thread asks for each store. Its groups are its own: it commits them, and waits for them before it ends.";
  if (says("what cp.async.bulk.tensor reads was written"))
    return "A place is written again when the engine has read it. Only the thread that asked for the store can wait for that, for "
           "groups\n"
           "are each thread's own. With two places, how many of its groups may then still be under way? And a barrier tells the "
           "others.";
  if (says("then read by the cp.async.bulk")) return "The panel is stored when all threads have written their parts of it.";
  return "";
}

// Rows of C are multiples of 16 bytes.
Case product(std::int64_t m, std::int64_t fours, std::int64_t padding = 0) {
  return {.m = m,
          .n = 4 * fours,
          .k = 1,
          .hint =
              "Does one thread have the engine store each panel? Panel p begins at x = p * kPanel, y = row_0, and x is the column. "
              "It is stored from the place in which it was computed.",
          .padding_c = 4 * padding,
          .meant = meant};
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/12_persistent/README.md, and first_store.cu beside it");
  const auto multiply = [&](const Case& c) { return coach.multiply<float, float>(c, outer); };
  // One panel; two, each in a place of its own; three, so that a place is used again; and what sticks out of C.
  for (const Case& c : {product(16, 8), product(16, 16), product(16, 24), product(40, 50), product(1, 1), product(33, 31, 2)})
    multiply(c);
  Draw& draw = coach.draw();
  for (int i = 0; i < 3; ++i) {
    Case c = product(draw.length(60), draw.length(75), draw.between(0, 3));
    c.drawn = draw.seed();
    multiply(c);
  }
  coach.multiply_far_rows<float, float>(product(3, 10), outer);

  for (const Case& c : {product(32, 80), product(draw.between(17, 60), draw.between(50, 100))}) {
    const double strips = tiles(c, 16, c.n, 1), panels = tiles(c, 16, 32, 1);
    const Counts counts = multiply(c);
    counts.at_least(boxes_stored(panels), 1, "The copy engine stores each panel. Threads only write it to shared memory.")
        .at_most(boxes_stored(panels), 1, "One instruction of one thread stores a whole panel, once.")
        .at_most(plain_stores(), 0, "C comes from the engine alone.")
        .at_most(barriers(2 * panels + strips), 1, kBarriers)
        .at_most(&Teamwork::named, 2 * panels + strips - static_cast<double>(counts.teamwork().block_meetings), kBarriers);
#ifdef COURSE_ON_INTERPRETER
    const interpreter::KernelProfile& launch = counts.launches(1, "One kernel stores all panels.").front();
    const std::uint64_t place = 16 * 32 * sizeof(float), shared = launch.static_shared_bytes + launch.dynamic_shared_bytes;
    coach.require(launch.grid.x * launch.grid.y * launch.grid.z == strips,
                  "A block stores all panels of a strip of 16 rows: " + std::to_string(static_cast<int>(strips)) + " blocks for " +
                      std::to_string(c.m) +
                      " rows. Yours are others.\nWith a panel for each block, nothing is "
                      "computed while the engine stores.");
    coach.require(shared >= 2 * place,
                  "The block has one place for panels. So nobody can compute a panel while the engine reads the one before.\n"
                  "Two places take turns.");
    coach.require(shared <= 4 * place, "The block has " + std::to_string(shared) +
                                           " bytes of shared memory. Two places for panels, " + std::to_string(2 * place) +
                                           " bytes,\nare enough: when the engine has read one, it is used again.");
#endif
    counts.at_most(&Teamwork::stored_again, 0,
                   "Two places take turns: a panel is stored from another place than the one before, which the engine may still "
                   "read.");
  }

  Case wide = product(draw.between(1, 4), draw.between(300, 800));
  wide.drawn = draw.seed();
  multiply(wide);

  // The engine's part is the same in all answers that pass, and the interpreter knows no time: no bar for it.
}

}  // namespace exercise
