#include "common/interpreter/checks/bad_indices.h"

#include <cstdlib>

#include "common/interpreter/debug_info/source_text.h"
#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/report/reporter.h"

namespace interpreter {

void BadIndices::note(Fiber& fiber, std::int64_t index, const std::string& array, Location where) {
  check(fiber, nullptr);  // nobody asked for the last one's memory: a local array
  fiber.special = true;
  noted_[fiber.linear].reset(new BadIndex{index, array, std::move(where)});  // clang 14 has no parentheses for aggregates
}

namespace {

// Whether `address` is what array[index] has, if the array of type "float [8][36]" is all of a variable.
bool is_element(std::uintptr_t address, const char* begin, std::size_t bytes, std::int64_t index, const std::string& array) {
  const std::size_t bracket = array.find('[');
  const std::int64_t count = bracket == array.npos ? 0 : std::atoll(array.c_str() + bracket + 1);
  if (count <= 0 || bytes % static_cast<std::size_t>(count) != 0) return false;
  const std::size_t stride = bytes / static_cast<std::size_t>(count);
  return address - (reinterpret_cast<std::uintptr_t>(begin) + static_cast<std::size_t>(index) * stride) < stride;
}

}  // namespace

void BadIndices::report(Fiber& fiber, const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  std::unique_ptr<BadIndex>& noted = noted_[fiber.linear];
  const BadIndex& bad = *noted;
  std::string variable;
  for (const SharedVariable& v : shared_variables()) {
    if (!p || !variable.empty()) break;
    if (is_element(address, reinterpret_cast<const char*>(shared_.statics.begin) + v.offset, v.bytes, bad.index, bad.array))
      variable = v.name;
  }
  // The variable ends before the address, if the index is too large: the one that holds the address may be its neighbour.
  const Variable* v = p && inside(p, image()) ? variable_near(p) : nullptr;
  for (int i = 0; v && i < 8 && variable.empty(); ++i) {
    if (is_element(address, v->begin, v->bytes, bad.index, bad.array)) variable = v->name;
    v = variable_near(v->begin - 1);
  }
  if (p && variable.empty() && --noted->patience > 0) return;
  const auto reported = std::move(noted);
  if (variable.empty()) variable = subscripted(reported->where);
  const std::string what = "index " + std::to_string(reported->index) + " out of bounds of an array of type " + reported->array +
                           (variable.empty() ? "" : ": " + variable);
  const std::string expected = "indices stay inside arrays";
  // Beyond an array in a thread's local memory lies what the program needs to go on.
  constexpr unsigned kWidest = 16;
  if (!p || !shared_.contains(address) || !shared_.contains(address + kWidest - 1))
    reporter_.fail(Check::kMemcheck, what, expected, &fiber, reported->where, variable);
  reporter_.tell(Check::kMemcheck, what, expected, &fiber, reported->where, variable);
}

}  // namespace interpreter
