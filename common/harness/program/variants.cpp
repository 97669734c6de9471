#include "common/harness/program/variants.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "common/harness/measure/backend.h"

namespace harness {
namespace {

// Each of the step's tiles, with a kernel of its own for the epilogue.
const std::vector<Variant>& unfused_variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> made;
    if (this_step().activation != kActivation<gemm::Identity>)
      for (const Variant& v : this_step().variants) made.push_back(without_fusing(v));
    return made;
  }();
  return all;
}

bool has_types_of(const Variant& v, const Spec& spec) { return v.in == spec.in && v.out == spec.out; }

std::set<std::string> words_of(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The tile that is called so, or the only one that has all these words in its name. @throws BadInput
const Variant& tile_named(const std::string& name, const std::vector<const Variant*>& variants) {
  std::vector<const Variant*> found;
  const std::set<std::string> wanted = words_of(name);
  for (const Variant* v : variants) {
    if (v->tile == name) return *v;
    const std::set<std::string> words = words_of(v->tile);
    if (std::includes(words.begin(), words.end(), wanted.begin(), wanted.end())) found.push_back(v);
  }
  if (found.size() == 1) return *found.front();
  std::string names;
  for (const Variant* v : found.empty() ? variants : found) names += (names.empty() ? "" : "; ") + v->tile;
  throw BadInput("--tile '" + name + "' is " + (found.empty() ? "none of the tiles" : "more than one tile") + ": " + names);
}

// What --activation and --bias ask for; without them, what the step is about.
Epilogue wanted_epilogue(const Arguments& arguments) {
  if (arguments.activation.empty()) return {this_step().activation, arguments.bias};
  const auto activation = activation_named(arguments.activation);
  if (!activation) throw BadInput("--activation " + arguments.activation + ": expected " + names_of_activations());
  return {*activation, arguments.bias};
}

// @throws BadInput with what to do instead
void require_kernel(const Spec& spec) {
  const Step& step = this_step();
  const bool has_types =
      std::any_of(step.variants.begin(), step.variants.end(), [&](const Variant& v) { return has_types_of(v, spec); });
  if (!has_types)
    throw BadInput((step.is_short && !step.variants.empty() ? "this short program" : "this step") +
                   (" has no kernel for " + std::string(name(spec.in))) + "; choose another --dtype");
  if (!variants_for(spec).empty()) return;
  if (step.activation == kActivation<gemm::Identity>)
    throw BadInput("this step fuses nothing; leave out --activation and --bias, or run 07_fused_leaky_relu");
  throw BadInput("a short program has no kernel for this epilogue; leave out --activation and --bias, or add --all-tiles");
}

}  // namespace

std::vector<const Variant*> variants_for(const Spec& spec) {
  std::vector<const Variant*> variants;
  bool all = true;
  for (const Variant& v : this_step().variants) {
    if (!has_types_of(v, spec)) continue;
    if (v.has(spec.epilogue))
      variants.push_back(&v);
    else
      all = false;
  }
  if (!all && (kCanTime || variants.empty()) && !this_step().is_short)
    for (const Variant& v : unfused_variants())
      if (has_types_of(v, spec)) variants.push_back(&v);
  return variants;
}

std::vector<Spec> problems_with_epilogue(const Arguments& arguments) {
  std::vector<Spec> problems = arguments.problems;
  const Epilogue epilogue = wanted_epilogue(arguments);
  for (Spec& spec : problems) {
    spec.epilogue = epilogue;
    require_kernel(spec);
  }
  return problems;
}

std::vector<const Variant*> to_measure(std::vector<const Variant*> variants, const Arguments& arguments) {
  if (!arguments.tile.empty()) return {&tile_named(arguments.tile, variants)};
  if (arguments.first && variants.size() > 1) variants.resize(1);
  return variants;
}

}  // namespace harness
