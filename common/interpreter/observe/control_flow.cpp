#include "common/interpreter/observe/control_flow.h"

#include <algorithm>
#include <map>

namespace interpreter {
namespace {

using Graph = std::vector<std::vector<std::uint32_t>>;

// Strongly connected components of the part of the graph for which `inside` holds, in topological order (Tarjan).
class Components {
 public:
  Components(const Graph& graph, const std::vector<std::uint32_t>& nodes) : graph_(graph), state_(graph.size()) {
    for (const std::uint32_t n : nodes) state_[n].inside = true;
    for (const std::uint32_t n : nodes)
      if (!state_[n].index) visit(n);
    std::reverse(components.begin(), components.end());
  }

  std::vector<std::vector<std::uint32_t>> components;  // within one, in the order in which the search met them: its head first

 private:
  struct State {
    bool inside = false, on_stack = false;
    std::uint32_t index = 0, low = 0;
  };

  void visit(std::uint32_t n) {
    state_[n].index = state_[n].low = ++count_;
    state_[n].on_stack = true;
    stack_.push_back(n);
    for (const std::uint32_t s : graph_[n]) {
      if (!state_[s].inside) continue;
      if (!state_[s].index) {
        visit(s);
        state_[n].low = std::min(state_[n].low, state_[s].low);
      } else if (state_[s].on_stack) {
        state_[n].low = std::min(state_[n].low, state_[s].index);
      }
    }
    if (state_[n].low != state_[n].index) return;
    const auto first = std::find(stack_.begin(), stack_.end(), n);
    components.emplace_back(first, stack_.end());
    for (auto i = first; i != stack_.end(); ++i) state_[*i].on_stack = false;
    stack_.erase(first, stack_.end());
  }

  const Graph& graph_;
  std::vector<State> state_;
  std::vector<std::uint32_t> stack_;
  std::uint32_t count_ = 0;
};

// `nodes` in weak topological order; the first node is where control enters. `loops` gets, inner ones
// first, where in `result` each loop begins and where what follows it does.
void order(const Graph& graph, const std::vector<std::uint32_t>& nodes, std::vector<std::uint32_t>& result,
           std::vector<std::pair<std::uint32_t, std::uint32_t>>& loops) {
  for (std::vector<std::uint32_t>& component : Components(graph, nodes).components) {
    const auto begin = static_cast<std::uint32_t>(result.size());
    result.push_back(component.front());
    if (component.size() == 1) continue;
    // A loop: without its head, what remains is ordered in the same way.
    component.erase(component.begin());
    order(graph, component, result, loops);
    loops.emplace_back(begin, static_cast<std::uint32_t>(result.size()));
  }
}

}  // namespace

ControlFlow::ControlFlow() : entry_(make({}, block_at(0), 0)) {}

std::vector<ControlFlow::Loop> ControlFlow::loops_around(std::uint32_t block, const std::vector<std::uint32_t>& node_of) const {
  Graph graph(successors_.size());
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t from = 0; from < successors_.size(); ++from) {
    if (node_of[from] == from) nodes.push_back(from);
    for (const std::uint32_t to : successors_[from]) graph[node_of[from]].push_back(node_of[to]);
  }
  const std::uint32_t node = node_of[block];
  const auto is_loop = [&](const std::vector<std::uint32_t>& component) {
    const auto& ways = graph[component.front()];
    return component.size() > 1 || std::find(ways.begin(), ways.end(), component.front()) != ways.end();
  };
  std::vector<Loop> loops;
  for (;;) {
    std::vector<std::uint32_t> around;
    for (auto& component : Components(graph, nodes).components)
      if (std::find(component.begin(), component.end(), node) != component.end()) around = std::move(component);
    if (around.empty() || !is_loop(around) || around.front() == node) return loops;
    Loop loop{around.front(), std::vector<bool>(graph.size()), std::vector<bool>(graph.size())};
    for (const std::uint32_t n : around) loop.inside[n] = true;
    around.erase(around.begin());
    nodes = around;
    // What can be reached without the head, in no inner loop.
    std::vector<std::uint32_t> reached{node};
    while (!reached.empty()) {
      const std::uint32_t from = reached.back();
      reached.pop_back();
      for (const std::uint32_t to : graph[from]) {
        if (!loop.inside[to] || to == loop.head || loop.after[to]) continue;
        loop.after[to] = true;
        reached.push_back(to);
      }
    }
    for (const auto& component : Components(graph, nodes).components)
      if (is_loop(component))
        for (const std::uint32_t n : component) loop.after[n] = false;
    loop.after[node] = false;
    loops.push_back(std::move(loop));
  }
}

void ControlFlow::unite_copies(std::vector<std::uint32_t>& node_of) const {
  std::map<std::vector<Location>, std::uint32_t> node_at;
  constexpr Pc kCall = 4;  // bytes, at least, of the next block's call that brings it here
  for (auto at = block_at_.begin(); at != block_at_.end(); ++at) {
    const auto [pc, block] = *at;
    const auto next = std::next(at);
    const std::vector<Location> place = next == block_at_.end() ? beginning_of(pc) : beginning_of(pc, next->first - kCall);
    if (!place.empty()) node_of[block] = node_of[node_at.try_emplace(place, block).first->second];
  }
}

std::uint32_t ControlFlow::block_at(Pc pc) {
  const auto [at, is_new] = block_at_.try_emplace(pc, static_cast<std::uint32_t>(successors_.size()));
  if (is_new) successors_.emplace_back();
  return at->second;
}

ControlFlow::Path* ControlFlow::make(std::vector<std::uint32_t> blocks, std::uint32_t last, Pc pc) {
  Path*& path = path_of_[{blocks, last}];
  if (path) return path;
  Path& made = paths_.emplace_back();
  path = &made;
  made.pc = pc, made.block = last;
  made.id = static_cast<std::uint32_t>(paths_.size() - 1);
  made.blocks = std::move(blocks);
  made.restart = made.blocks.empty() ? &made : make({}, last, pc);
  return &made;
}

ControlFlow::Path* ControlFlow::extend(Path* path, Pc pc) {
  const std::uint32_t block = block_at(pc);
  std::vector<std::uint32_t>& ways = successors_[path->block];
  if (std::find(ways.begin(), ways.end(), block) == ways.end()) {
    ways.push_back(block);
    ++version_;
  }
  std::vector<std::uint32_t> blocks = path->blocks;
  const auto at = std::lower_bound(blocks.begin(), blocks.end(), block);
  if (at == blocks.end() || *at != block) blocks.insert(at, block);
  Path* const extended = make(std::move(blocks), block, pc);
  Path*& slot = path->next[path->next[0] ? 1 : 0];
  slot = extended;
  return extended;
}

void ControlFlow::put_in_order() {
  std::vector<std::uint32_t> nodes(successors_.size()), sorted;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) nodes[i] = i;  // the entry is block 0
  loops_.clear();
  order(successors_, nodes, sorted, loops_);
  positions_.resize(nodes.size());
  for (std::uint32_t i = 0; i < sorted.size(); ++i) positions_[sorted[i]] = i + 1;
  ordered_version_ = version_;
}

const ControlFlow::Path& ControlFlow::located(std::uint32_t id) {
  Path& path = paths_[id];
  if (path.version == version_) return path;
  if (ordered_version_ != version_) put_in_order();
  path.version = version_;
  path.position = positions_[path.block];
  path.gate = 0;
  for (const std::uint32_t block : path.blocks)
    if (positions_[block] > path.position) path.gate = std::max(path.gate, end_of_loop(path.position, positions_[block]));
  return path;
}

std::uint32_t ControlFlow::end_of_loop(std::uint32_t first, std::uint32_t second) const {
  for (const auto& [begin, end] : loops_)
    if (begin < first && second <= end) return end;
  return second;
}

}  // namespace interpreter
