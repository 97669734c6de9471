// Launches every access pattern once, for ncu to count; with the argument ptx, every pattern of the PTX wrappers.
#include <cstring>

#include "common/interpreter/tests/patterns.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "ptx") == 0)
    patterns::launch_ptx();
  else
    patterns::launch_all();
}
