#include "common/interpreter/running/launch_chain.h"

#include <algorithm>

#include "common/interpreter/debug_info/symbols.h"

namespace interpreter {

std::string LaunchChain::Link::kernel_name() const { return name ? name : function_name(kernel); }

LaunchChain& LaunchChain::instance() {
  static LaunchChain& the_chain = *new LaunchChain;  // never destroyed: destructors of static objects release memory
  return the_chain;
}

// Streams do not wait for each other, nor do dependent launches for other streams'. Where one launch is on another stream than the
// next, nothing is known of the two.
void LaunchChain::begin(const Launch& launch) {
  const bool ended = ended_.exchange(false);
  if (ended || !launch.dependent || launch.stream != stream_) links_.clear();
  stream_ = launch.stream;
}

void LaunchChain::add(const Launch& launch, std::uint64_t number, bool waited) {
  links_.push_back({number, launch.kernel, launch.name, launch.grid, launch.block, waited});
}

const LaunchChain::Link* LaunchChain::find(std::uint64_t number) const {
  if (links_.empty() || number < links_.front().number) return nullptr;
  const auto found = std::lower_bound(links_.begin(), links_.end(), number,
                                      [](const Link& link, std::uint64_t wanted) { return link.number < wanted; });
  return found != links_.end() && found->number == number ? &*found : nullptr;
}

const LaunchChain::Link& LaunchChain::first_awaited() const {
  auto first = links_.end() - 1;
  while (first != links_.begin() && first->waited) --first;
  return *first;
}

void synchronize() { LaunchChain::instance().end(); }

}  // namespace interpreter
