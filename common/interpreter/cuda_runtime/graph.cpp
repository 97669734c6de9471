// CUDA graphs. A node's work is what the call would have done that it stands for, so checks and counters are the same. Nodes run
// one after the other, each behind those that it depends on: one of the orders that CUDA allows.
#include "common/interpreter/cuda_runtime/graph.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/interpreter/cuda_runtime/program.h"
#include "common/interpreter/cuda_runtime/state.h"

#undef gridDim
#undef blockDim

// CUDA's own names for what its handles point to.
struct CUgraphNode_st {
  CUgraph_st* graph;
  cudaGraphNodeType type;
  interpreter::cuda_runtime::Work work;
  std::vector<CUgraphNode_st*> after = {};      // the nodes that it depends on
  const CUgraphNode_st* original = nullptr;     // of which it is a clone
  const void* function = nullptr;               // of a kernel
  std::shared_ptr<CUgraph_st> child = nullptr;  // of a node that is a graph
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // as they were made
};
struct CUgraphExec_st {
  struct Step {
    const CUgraphNode_st* node;  // which may be gone
    cudaGraphNodeType type;
    const void* function;
    interpreter::cuda_runtime::Work work;
    bool is_enabled = true;
  };
  std::vector<Step> steps;  // in an order that the dependencies allow
  unsigned long long flags = 0;
};

namespace interpreter::cuda_runtime {
namespace {

using Node = CUgraphNode_st;

// A graph that streams are being captured for.
struct Capture {
  CUgraph_st* graph;
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  unsigned long long id;
  std::thread::id thread;
  bool is_spoilt = false;
};
struct Captured {
  Capture* capture;
  std::vector<Node*> behind;  // what comes next in the stream depends on these; of an event, who waits for it
};
struct Captures {
  std::mutex mutex;
  std::map<Capture*, std::unique_ptr<Capture>> all;
  std::map<cudaStream_t, Captured> streams;
  std::map<cudaEvent_t, Captured> events;
  std::map<const void*, std::size_t> memory;  // bytes by address
  unsigned long long next_id = 1;
};
Captures& captures() {
  static Captures& the_captures = *new Captures;  // never destroyed: destructors of static objects free memory
  return the_captures;
}
std::atomic<int> under_way = 0;  // captures: most programs have none, and ask for nothing more

bool is_legacy(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

Node* add(CUgraph_st* graph, cudaGraphNodeType type, Work work, std::vector<Node*> after) {
  graph->nodes.push_back(std::make_unique<Node>(Node{graph, type, std::move(work), std::move(after)}));
  return graph->nodes.back().get();
}

void add_each(std::vector<Node*>& to, const std::vector<Node*>& more) {
  for (Node* const node : more)
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
}

// What a call of the program's adds: its dependencies are to be nodes of the same graph.
cudaError_t add_node(const char* call, cudaGraphNode_t* result, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                     cudaGraphNodeType type, Work work) {
  if (!result || !graph || (count && !after)) return failed(call, cudaErrorInvalidValue, "a pointer is null");
  std::vector<Node*> dependencies(after, after + count);
  for (const Node* const node : dependencies)
    if (!node || node->graph != graph) return failed(call, cudaErrorInvalidValue, "a dependency is no node of this graph");
  *result = add(graph, type, std::move(work), std::move(dependencies));
  return cudaSuccess;
}

// The nodes, each behind those that it depends on; fewer than there are if some wait for each other.
std::vector<Node*> in_order(const CUgraph_st& graph) {
  std::vector<Node*> order;
  std::set<const Node*> done;
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& node : graph.nodes)
      if (!done.contains(node.get()) &&
          std::all_of(node->after.begin(), node->after.end(), [&](Node* n) { return done.contains(n); })) {
        order.push_back(node.get());
        done.insert(node.get());
        moved = true;
      }
  }
  return order;
}

std::unique_ptr<CUgraph_st> clone(const CUgraph_st& graph) {
  auto copy = std::make_unique<CUgraph_st>();
  std::map<const Node*, Node*> copies;
  for (const auto& node : graph.nodes) {
    copy->nodes.push_back(std::make_unique<Node>(*node));
    copies[node.get()] = copy->nodes.back().get();
    copy->nodes.back()->graph = copy.get();
    copy->nodes.back()->original = node.get();
  }
  for (const auto& node : copy->nodes)
    for (Node*& after : node->after) after = copies.at(after);
  return copy;
}

cudaError_t run(const std::vector<CUgraphExec_st::Step>& steps, cudaStream_t stream) {
  for (const CUgraphExec_st::Step& step : steps)
    if (step.is_enabled)
      if (const cudaError_t error = step.work(stream); error != cudaSuccess) return error;
  return cudaSuccess;
}

std::vector<CUgraphExec_st::Step> steps_of(const CUgraph_st& graph) {
  std::vector<CUgraphExec_st::Step> steps;
  for (const Node* const node : in_order(graph)) steps.push_back({node, node->type, node->function, node->work});
  return steps;
}

// The step of an executable graph that was made of `node`.
CUgraphExec_st::Step* step_of(cudaGraphExec_t executable, const Node* node) {
  if (!executable || !node) return nullptr;
  for (CUgraphExec_st::Step& step : executable->steps)
    if (step.node == node) return &step;
  return nullptr;
}

cudaError_t change(const char* call, cudaGraphExec_t executable, const Node* node, cudaGraphNodeType type, Work work) {
  CUgraphExec_st::Step* const step = step_of(executable, node);
  if (!step || step->type != type)
    return failed(call, cudaErrorInvalidValue, "the node is none of the graph that the executable one was made of");
  step->work = std::move(work);
  return cudaSuccess;
}
cudaError_t change(const char* call, Node* node, cudaGraphNodeType type, Work work) {
  if (!node || node->type != type) return failed(call, cudaErrorInvalidValue, "it is no node of this type");
  node->work = std::move(work);
  return cudaSuccess;
}

// Work of each kind. What it needs is copied: the program may change its variables meanwhile.
cudaError_t of_kernel(const char* call, const cudaKernelNodeParams* p, Work& work, const void*& function) {
  if (!p || !p->func) return failed(call, cudaErrorInvalidValue, "there is no kernel");
  if (p->extra) return failed(call, cudaErrorNotSupported, "arguments by 'extra': give kernelParams");
  KeptLaunch kept;
  const Configuration configuration(p->gridDim, p->blockDim, p->sharedMemBytes);
  const cudaError_t error = keep_instead([&] { return start_by_address(call, p->func, configuration, p->kernelParams); }, kept);
  if (error != cudaSuccess) return error;
  work = [kept](cudaStream_t stream) { return start(kept, stream); };
  function = p->func;
  return cudaSuccess;
}
Work of_copy(const cudaMemcpy3DParms& p) {
  return [p](cudaStream_t) { return copy_box("a graph's copy", p); };
}
Work of_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return [=](cudaStream_t) { return copy_bytes("a graph's copy", to, from, bytes, kind); };
}
Work of_fill(const cudaMemsetParams& p) {
  return [p](cudaStream_t) { return fill_elements("a graph's fill", p); };
}
Work of_function(cudaHostFn_t function, void* data) {
  return [=](cudaStream_t) {
    synchronize();
    function(data);
    return cudaSuccess;
  };
}

// How many there are, and as many of them as there is room for: what CUDA's lists do.
template <class T>
cudaError_t list(const std::vector<T>& all, T* to, std::size_t* count) {
  if (!count) return cudaErrorInvalidValue;
  if (to)
    for (std::size_t i = 0; i < *count; ++i) to[i] = i < all.size() ? all[i] : nullptr;
  *count = to ? std::min(*count, all.size()) : all.size();
  return cudaSuccess;
}

thread_local KeptLaunch* kept_instead = nullptr;

// mutex held
void spoil_all() {
  for (auto& [capture, owner] : captures().all) capture->is_spoilt = true;
}

}  // namespace

bool is_captured(cudaStream_t stream) {
  if (!under_way) return false;
  Captures& c = captures();
  std::lock_guard lock(c.mutex);
  return c.streams.contains(stream);
}

bool captured(cudaStream_t stream, cudaGraphNodeType type, Work work) {
  if (!under_way) return false;
  Captures& c = captures();
  std::lock_guard lock(c.mutex);
  const auto found = c.streams.find(stream);
  if (found == c.streams.end()) return false;
  Captured& mine = found->second;
  mine.behind = {add(mine.capture->graph, type, std::move(work), mine.behind)};
  return true;
}

cudaError_t forbidden(const char* call, cudaStream_t stream, bool waits) {
  if (!under_way) return cudaSuccess;
  Captures& c = captures();
  std::unique_lock lock(c.mutex);
  const auto found = c.streams.find(stream);
  if (found != c.streams.end() && waits) {
    found->second.capture->is_spoilt = true;
    lock.unlock();
    return failed(call, cudaErrorStreamCaptureUnsupported, "the stream is being captured: what it would wait for is not done yet");
  }
  if (found != c.streams.end() || !is_legacy(stream)) return cudaSuccess;
  const auto blocks = [](const auto& each) {
    unsigned flags = 0;
    return cudaStreamGetFlags(each.first, &flags) == cudaSuccess && !(flags & cudaStreamNonBlocking);
  };
  if (std::none_of(c.streams.begin(), c.streams.end(), blocks)) return cudaSuccess;
  spoil_all();
  lock.unlock();
  return failed(call, cudaErrorStreamCaptureImplicit, "the default stream waits for all others, and one of them is being captured");
}

cudaError_t forbidden(const char* call) {
  if (!under_way) return cudaSuccess;
  Captures& c = captures();
  std::unique_lock lock(c.mutex);
  bool is_allowed = true;
  for (auto& [capture, owner] : c.all)
    if (capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && capture->thread == std::this_thread::get_id()))
      is_allowed = false, capture->is_spoilt = true;
  lock.unlock();
  return is_allowed ? cudaSuccess : failed(call, cudaErrorStreamCaptureUnsupported, "a stream is being captured");
}

bool captured_record(cudaEvent_t event, cudaStream_t stream) {
  if (!under_way) return false;  // the end of a capture forgets its events
  Captures& c = captures();
  std::lock_guard lock(c.mutex);
  const auto found = c.streams.find(stream);
  c.events.erase(event);
  if (found == c.streams.end()) return false;
  c.events[event] = found->second;
  return true;
}

bool is_captured(cudaEvent_t event) {
  if (!under_way) return false;
  std::lock_guard lock(captures().mutex);
  return captures().events.contains(event);
}

bool captured_wait(cudaStream_t stream, cudaEvent_t event, cudaError_t& error) {
  error = cudaSuccess;
  if (!under_way) return false;
  Captures& c = captures();
  std::unique_lock lock(c.mutex);
  const auto of_event = c.events.find(event);
  const auto of_stream = c.streams.find(stream);
  if (of_event == c.events.end()) {
    if (of_stream == c.streams.end()) return false;
    of_stream->second.capture->is_spoilt = true;
    lock.unlock();
    error =
        failed("cudaStreamWaitEvent", cudaErrorStreamCaptureIsolation, "the event was not recorded in a stream that is captured");
    return true;
  }
  if (of_stream == c.streams.end()) {
    c.streams[stream] = of_event->second;
  } else if (of_stream->second.capture != of_event->second.capture) {
    of_stream->second.capture->is_spoilt = of_event->second.capture->is_spoilt = true;
    lock.unlock();
    error = failed("cudaStreamWaitEvent", cudaErrorStreamCaptureMerge, "stream and event belong to two captures");
  } else {
    add_each(of_stream->second.behind, of_event->second.behind);
  }
  return true;
}

bool is_of_graph(const void* p) {
  std::lock_guard lock(captures().mutex);
  return captures().memory.contains(p);
}
void give_to_graph(const void* p, std::size_t bytes) {
  std::lock_guard lock(captures().mutex);
  captures().memory[p] = bytes;
}

KeptLaunch keep(const Launch& launch, bool cooperative) {
  constexpr std::size_t kAlignment = 256;  // more than any argument's
  const std::size_t bytes = (launch.closure_bytes + kAlignment - 1) / kAlignment * kAlignment;
  KeptLaunch kept{launch, cooperative, std::shared_ptr<void>(std::aligned_alloc(kAlignment, bytes), std::free)};
  std::memcpy(kept.closure.get(), launch.closure, launch.closure_bytes);
  kept.launch.closure = kept.closure.get();
  return kept;
}

cudaError_t start(const KeptLaunch& kept, cudaStream_t stream) {
  Launch launch = kept.launch;
  launch.stream = stream;
  return start(launch, kept.cooperative);
}

cudaError_t keep_instead(const std::function<cudaError_t()>& call, KeptLaunch& kept) {
  kept_instead = &kept;
  const cudaError_t error = call();
  kept_instead = nullptr;
  return error;
}

bool is_kept(const Launch& launch, bool cooperative, cudaError_t& error) {
  error = cudaSuccess;
  if (kept_instead) {
    *kept_instead = keep(launch, cooperative);
    return true;
  }
  if (!under_way) return false;
  const auto stream = static_cast<cudaStream_t>(const_cast<void*>(launch.stream));
  if (is_captured(stream))
    return captured(stream, cudaGraphNodeTypeKernel,
                    [kept = keep(launch, cooperative)](cudaStream_t into) { return start(kept, into); });
  error = forbidden("a launch", stream, false);
  return error != cudaSuccess;
}

}  // namespace interpreter::cuda_runtime

using namespace interpreter::cuda_runtime;

extern "C" {

// ------------------------------------------------------------------------------------------------------------- capture
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (is_legacy(stream))
    return failed("cudaStreamBeginCapture", cudaErrorStreamCaptureUnsupported, "the default stream cannot be captured: create one");
  Captures& c = captures();
  std::unique_lock lock(c.mutex);
  if (c.streams.contains(stream)) {
    lock.unlock();
    return failed("cudaStreamBeginCapture", cudaErrorIllegalState, "the stream is being captured");
  }
  auto capture = std::make_unique<Capture>(Capture{new CUgraph_st, stream, mode, c.next_id++, std::this_thread::get_id()});
  c.streams[stream] = {capture.get(), {}};
  Capture* const key = capture.get();
  c.all[key] = std::move(capture);
  ++under_way;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (graph) *graph = nullptr;
  Captures& c = captures();
  std::unique_lock lock(c.mutex);
  const auto found = c.streams.find(stream);
  if (found == c.streams.end() || found->second.capture->origin != stream) {
    lock.unlock();
    return failed("cudaStreamEndCapture", found == c.streams.end() ? cudaErrorIllegalState : cudaErrorStreamCaptureUnmatched,
                  "no capture has begun in this stream");
  }
  Capture* const capture = found->second.capture;
  // Whatever other streams have done is to come before the end.
  std::set<const Node*> joined;
  std::vector<Node*> next = found->second.behind;
  while (!next.empty()) {
    const Node* const node = next.back();
    next.pop_back();
    if (joined.insert(node).second) next.insert(next.end(), node->after.begin(), node->after.end());
  }
  std::unique_ptr<CUgraph_st> result(capture->graph);
  const bool is_spoilt = capture->is_spoilt, is_unjoined = joined.size() < result->nodes.size();
  std::erase_if(c.streams, [&](const auto& each) { return each.second.capture == capture; });
  std::erase_if(c.events, [&](const auto& each) { return each.second.capture == capture; });
  c.all.erase(capture);
  --under_way;
  lock.unlock();
  if (is_spoilt)
    return failed("cudaStreamEndCapture", cudaErrorStreamCaptureInvalidated, "a call before was not allowed meanwhile");
  if (is_unjoined)
    return failed("cudaStreamEndCapture", cudaErrorStreamCaptureUnjoined,
                  "another stream has work in it that the first one does not wait for: cudaEventRecord, then cudaStreamWaitEvent");
  if (graph) *graph = result.release();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  std::lock_guard lock(captures().mutex);
  const auto found = captures().streams.find(stream);
  *status = found == captures().streams.end()  ? cudaStreamCaptureStatusNone
            : found->second.capture->is_spoilt ? cudaStreamCaptureStatusInvalidated
                                               : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode mine = cudaStreamCaptureModeGlobal;
  std::swap(mine, *mode);
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------------------- nodes
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph) return failed("cudaGraphDestroy", cudaErrorInvalidValue, "the graph is null");
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t* result, cudaGraph_t graph) {
  if (!result || !graph) return failed("cudaGraphClone", cudaErrorInvalidValue, "a pointer is null");
  *result = clone(*graph).release();
  return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                   const cudaKernelNodeParams* p) {
  Work work;
  const void* function = nullptr;
  if (const cudaError_t error = of_kernel("cudaGraphAddKernelNode", p, work, function); error != cudaSuccess) return error;
  const cudaError_t error = add_node("cudaGraphAddKernelNode", node, graph, after, count, cudaGraphNodeTypeKernel, std::move(work));
  if (error == cudaSuccess) (*node)->function = function;
  return error;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  Work work;
  const void* function = nullptr;
  if (const cudaError_t error = of_kernel("cudaGraphKernelNodeSetParams", p, work, function); error != cudaSuccess) return error;
  const cudaError_t error = change("cudaGraphKernelNodeSetParams", node, cudaGraphNodeTypeKernel, std::move(work));
  if (error == cudaSuccess) node->function = function;
  return error;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  Work work;
  const void* function = nullptr;
  if (const cudaError_t error = of_kernel("cudaGraphExecKernelNodeSetParams", p, work, function); error != cudaSuccess)
    return error;
  return change("cudaGraphExecKernelNodeSetParams", executable, node, cudaGraphNodeTypeKernel, std::move(work));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                   const cudaMemcpy3DParms* p) {
  return add_node("cudaGraphAddMemcpyNode", node, graph, after, count, cudaGraphNodeTypeMemcpy, of_copy(*p));
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return change("cudaGraphMemcpyNodeSetParams", node, cudaGraphNodeTypeMemcpy, of_copy(*p));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return change("cudaGraphExecMemcpyNodeSetParams", executable, node, cudaGraphNodeTypeMemcpy, of_copy(*p));
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                     void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return add_node("cudaGraphAddMemcpyNode1D", node, graph, after, count, cudaGraphNodeTypeMemcpy, of_copy(to, from, bytes, kind));
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, std::size_t bytes,
                                           cudaMemcpyKind kind) {
  return change("cudaGraphMemcpyNodeSetParams1D", node, cudaGraphNodeTypeMemcpy, of_copy(to, from, bytes, kind));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to, const void* from,
                                               std::size_t bytes, cudaMemcpyKind kind) {
  return change("cudaGraphExecMemcpyNodeSetParams1D", executable, node, cudaGraphNodeTypeMemcpy, of_copy(to, from, bytes, kind));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                   const cudaMemsetParams* p) {
  return add_node("cudaGraphAddMemsetNode", node, graph, after, count, cudaGraphNodeTypeMemset, of_fill(*p));
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* p) {
  return change("cudaGraphMemsetNodeSetParams", node, cudaGraphNodeTypeMemset, of_fill(*p));
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemsetParams* p) {
  return change("cudaGraphExecMemsetNodeSetParams", executable, node, cudaGraphNodeTypeMemset, of_fill(*p));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                 const cudaHostNodeParams* p) {
  return add_node("cudaGraphAddHostNode", node, graph, after, count, cudaGraphNodeTypeHost, of_function(p->fn, p->userData));
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return change("cudaGraphHostNodeSetParams", node, cudaGraphNodeTypeHost, of_function(p->fn, p->userData));
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return change("cudaGraphExecHostNodeSetParams", executable, node, cudaGraphNodeTypeHost, of_function(p->fn, p->userData));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count) {
  return add_node("cudaGraphAddEmptyNode", node, graph, after, count, cudaGraphNodeTypeEmpty,
                  [](cudaStream_t) { return cudaSuccess; });
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                       cudaGraph_t child) {
  if (!child) return failed("cudaGraphAddChildGraphNode", cudaErrorInvalidValue, "the graph is null");
  const std::shared_ptr<CUgraph_st> copy = clone(*child);
  const cudaError_t error = add_node("cudaGraphAddChildGraphNode", node, graph, after, count, cudaGraphNodeTypeGraph,
                                     [copy](cudaStream_t stream) { return run(steps_of(*copy), stream); });
  if (error == cudaSuccess) (*node)->child = copy;
  return error;
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  if (!node || !node->child) return failed("cudaGraphChildGraphNodeGetGraph", cudaErrorInvalidValue, "the node is no graph");
  *graph = node->child.get();
  return cudaSuccess;
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                        cudaEvent_t event) {
  return add_node("cudaGraphAddEventRecordNode", node, graph, after, count, cudaGraphNodeTypeEventRecord,
                  [event](cudaStream_t stream) { return cudaEventRecord(event, stream); });
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                      cudaEvent_t event) {
  return add_node("cudaGraphAddEventWaitNode", node, graph, after, count, cudaGraphNodeTypeWaitEvent,
                  [event](cudaStream_t stream) { return cudaStreamWaitEvent(stream, event, 0); });
}
// The address is the same in each launch, so the memory is there from now on.
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                     cudaMemAllocNodeParams* p) {
  if (const cudaError_t error = cudaMalloc(&p->dptr, p->bytesize); error != cudaSuccess) return error;
  give_to_graph(p->dptr, p->bytesize);
  return add_node("cudaGraphAddMemAllocNode", node, graph, after, count, cudaGraphNodeTypeMemAlloc,
                  [](cudaStream_t) { return cudaSuccess; });
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                                    void*) {
  return add_node("cudaGraphAddMemFreeNode", node, graph, after, count, cudaGraphNodeTypeMemFree,
                  [](cudaStream_t) { return cudaSuccess; });
}
#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, const cudaGraphEdgeData*,
                             std::size_t count, cudaGraphNodeParams* p) {
  switch (p->type) {
    case cudaGraphNodeTypeKernel: {
      const cudaKernelNodeParams kernel{p->kernel.func,           p->kernel.gridDim,      p->kernel.blockDim,
                                        p->kernel.sharedMemBytes, p->kernel.kernelParams, p->kernel.extra};
      return cudaGraphAddKernelNode(node, graph, after, count, &kernel);
    }
    case cudaGraphNodeTypeMemcpy: return cudaGraphAddMemcpyNode(node, graph, after, count, &p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParams fill{p->memset.dst,         p->memset.pitch, p->memset.value,
                                  p->memset.elementSize, p->memset.width, p->memset.height};
      return cudaGraphAddMemsetNode(node, graph, after, count, &fill);
    }
    case cudaGraphNodeTypeHost: {
      const cudaHostNodeParams host{p->host.fn, p->host.userData};
      return cudaGraphAddHostNode(node, graph, after, count, &host);
    }
    case cudaGraphNodeTypeGraph: return cudaGraphAddChildGraphNode(node, graph, after, count, p->graph.graph);
    case cudaGraphNodeTypeEmpty: return cudaGraphAddEmptyNode(node, graph, after, count);
    case cudaGraphNodeTypeMemAlloc: {
      cudaMemAllocNodeParams memory{};
      memory.bytesize = p->alloc.bytesize;
      const cudaError_t error = cudaGraphAddMemAllocNode(node, graph, after, count, &memory);
      p->alloc.dptr = memory.dptr;
      return error;
    }
    case cudaGraphNodeTypeMemFree: return cudaGraphAddMemFreeNode(node, graph, after, count, p->free.dptr);
    default: return failed("cudaGraphAddNode", cudaErrorNotSupported, "the interpreter has no nodes of this type");
  }
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, std::size_t count) {
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, std::size_t count) {
#endif
  for (std::size_t i = 0; i < count; ++i) {
    if (!from[i] || !to[i] || from[i]->graph != graph || to[i]->graph != graph)
      return failed("cudaGraphAddDependencies", cudaErrorInvalidValue, "a node is none of this graph");
    add_each(to[i]->after, {from[i]});
  }
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node->type;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* result, cudaGraphNode_t original, cudaGraph_t graph) {
  for (const auto& node : graph->nodes)
    if (node->original == original) return *result = node.get(), cudaSuccess;
  return failed("cudaGraphNodeFindInClone", cudaErrorInvalidValue, "the graph has no clone of the node");
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  std::vector<Node*> all;
  for (const auto& node : graph->nodes) all.push_back(node.get());
  return list(all, nodes, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  std::vector<Node*> roots;
  for (const auto& node : graph->nodes)
    if (node->after.empty()) roots.push_back(node.get());
  return list(roots, nodes, count);
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  if (!node) return failed("cudaGraphDestroyNode", cudaErrorInvalidValue, "the node is null");
  CUgraph_st& graph = *node->graph;
  for (const auto& each : graph.nodes) std::erase(each->after, node);
  std::erase_if(graph.nodes, [&](const auto& each) { return each.get() == node; });
  return cudaSuccess;
}

// All of it is there from the node's making on: what is used and what is reserved is the same.
cudaError_t cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType, void* value) {
  std::lock_guard lock(captures().mutex);
  std::size_t bytes = 0;
  for (const auto& [p, size] : captures().memory) bytes += size;
  *static_cast<std::size_t*>(value) = bytes;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) { return cudaSuccess; }
cudaError_t cudaDeviceGraphMemTrim(int) { return cudaSuccess; }

// ------------------------------------------------------------------------------------------------------------- launches
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* result, cudaGraph_t graph, unsigned long long flags) {
  if (!result || !graph) return failed("cudaGraphInstantiate", cudaErrorInvalidValue, "a pointer is null");
  auto executable = std::make_unique<CUgraphExec_st>();
  executable->steps = steps_of(*graph);
  executable->flags = flags;
  if (executable->steps.size() < graph->nodes.size())
    return failed("cudaGraphInstantiate", cudaErrorInvalidValue, "nodes depend on each other in a circle");
  *result = executable.release();
  return cudaSuccess;
}
#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* result, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(result, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* result, cudaGraph_t graph, cudaGraphInstantiateParams* p) {
  const cudaError_t error = cudaGraphInstantiateWithFlags(result, graph, p->flags);
  p->errNode_out = nullptr;
  p->result_out = error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
  return error;
}
// The same nodes in the same order, with what they do now.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  const std::vector<CUgraphExec_st::Step> steps = steps_of(*graph);
  const bool fits = std::equal(steps.begin(), steps.end(), executable->steps.begin(), executable->steps.end(),
                               [](const auto& a, const auto& b) { return a.type == b.type; });
  if (info) {
    *info = {};
    info->result = fits ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  }
  if (!fits) return failed("cudaGraphExecUpdate", cudaErrorGraphExecUpdateFailure, "the graph has other nodes");
  executable->steps = steps;
  return cudaSuccess;
}
#endif
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
  *flags = executable->flags;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned is_enabled) {
  CUgraphExec_st::Step* const step = step_of(executable, node);
  if (!step)
    return failed("cudaGraphNodeSetEnabled", cudaErrorInvalidValue,
                  "the node is none of the graph that the executable one was made of");
  step->is_enabled = is_enabled != 0;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (!executable) return failed("cudaGraphLaunch", cudaErrorInvalidValue, "the executable graph is null");
  const auto steps = executable->steps;
  if (captured(stream, cudaGraphNodeTypeGraph, [steps](cudaStream_t into) { return run(steps, into); })) return cudaSuccess;
  if (const cudaError_t error = forbidden("cudaGraphLaunch", stream, false); error != cudaSuccess) return error;
  return run(steps, stream);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (!executable) return failed("cudaGraphExecDestroy", cudaErrorInvalidValue, "the executable graph is null");
  delete executable;
  return cudaSuccess;
}

}  // extern "C"
