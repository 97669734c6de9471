#include <doctest/doctest.h>

#include "common/harness/conformance.h"

TEST_CASE("step 02_tiled conforms") { harness::check_conformance(harness::this_step()); }
