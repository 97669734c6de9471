// All that a family of instructions needs, in one file that nothing of the interpreter knows.
#include <deque>
#include <mutex>

#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/running/family.h"
#include "common/interpreter/tests/family.h"

namespace family {
namespace {

std::mutex mutex;  // blocks run on several OS threads

struct Mark : interpreter::Family::Record {
  int tag = 0;
};

class Marks final : public interpreter::Family {
 public:
  explicit Marks(interpreter::BlockContext& block) : block_(block) {}
  void begin(unsigned) override {
    marks_.clear();
    seen_ = 0;
  }
  void on_request(unsigned warp, const interpreter::Request& request) override {
    Marked m{static_cast<unsigned>(block_.work.number), warp, request.lanes, {}, ++seen_};
    for (unsigned i = 0; i < request.count; ++i)
      m.tags.push_back(static_cast<const Mark*>(reinterpret_cast<const Record*>(request.addresses[i]))->tag);
    const std::lock_guard lock(mutex);
    marked().push_back(m);
  }
  void add(interpreter::Fiber& fiber, int tag, interpreter::Pc pc) {
    Mark& mark = marks_.emplace_back();
    mark.family = this, mark.tag = tag;
    block_.record(fiber, mark, 4, pc);
  }

 private:
  interpreter::BlockContext& block_;
  std::deque<Mark> marks_;
  unsigned seen_ = 0;
};

}  // namespace

std::vector<Marked>& marked() {
  static std::vector<Marked> all;
  return all;
}

void mark(int tag) {
  const interpreter::Entered in;
  in.block.family<Marks>().add(in.fiber, tag, interpreter::to_pc(__builtin_return_address(0)));
}

}  // namespace family
