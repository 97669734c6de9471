#include "common/interpreter/running/grid_barrier.h"

#include "common/interpreter/interpreter.h"

namespace interpreter {
namespace {
unsigned* word = nullptr;  // one launch runs at a time
}

GridBarrier::ForOneLaunch::ForOneLaunch(bool cooperative) {
  if (!cooperative) return;
  word = static_cast<unsigned*>(allocate(sizeof *word, "the grid's barrier"));
  fill(word, 0, sizeof *word);
}
GridBarrier::ForOneLaunch::~ForOneLaunch() {
  if (word) release(word);
  word = nullptr;
}

unsigned* grid_barrier_word() noexcept { return word; }

}  // namespace interpreter
