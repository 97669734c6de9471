// Launches every access pattern once, for ncu to count.
#include "common/interpreter/tests/patterns.h"

int main() { patterns::launch_all(); }
