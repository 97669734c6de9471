#include <doctest/doctest.h>

#include "common/harness/conformance.h"

TEST_CASE("step 01_naive conforms") { harness::check_conformance(harness::this_step()); }
