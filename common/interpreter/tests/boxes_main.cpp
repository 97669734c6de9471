// Prints the table of where the copy engine puts boxes, one row per box.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "common/interpreter/tests/boxes.h"

int main() {
  try {
    std::puts(boxes::kHeader);
    for (const boxes::Box& box : boxes::all()) std::puts(boxes::row_of(box).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "box_layouts: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
