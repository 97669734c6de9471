// An exercise's test once more, of the solution's functions in place of the learner's: it says what is timed, and how these
// functions are called. -DCOURSE_TEST="\"/path/test.cpp\"" says which test. What a test includes is read
// before the name changes, for it is the coach's.
#include "common/exercise/coach.h"
#include "common/exercise/posed.h"
#include "common/exercise/witness.h"

namespace solution {
using namespace exercise;
}

#define exercise solution
#include COURSE_TEST
