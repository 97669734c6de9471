/// @file
/// What a whole CUDA program may use that g++ and CUDA's headers do not give it: launches, the typed half of the runtime's
/// functions.
///
/// tools/interpret includes it in front of a user's file, in which it has replaced each `kernel<<<configuration>>>(arguments)`.
#pragma once

#include <math.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <tuple>
#include <type_traits>
#include <utility>

// Not common/device/device.cuh, which includes these: a program may have a namespace 'device' of its own.
#include "common/interpreter/cuda_runtime/inline_ptx.h"
#include "common/interpreter/cuda_runtime/labels.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/language/language.h"

// In the device's view of a program, g++ keeps kernels and what calls them even where the host's code is dead that launches them:
// for the host's view launches them, too.
#ifdef COURSE_DEVICE_VIEW
#undef __global__  // language.h's with one word more
#define __global__ __attribute__((used, flatten, noipa, patchable_function_entry(5, 0)))
#define INTERPRETER_KEPT __attribute__((used))
#else
#define INTERPRETER_KEPT
#endif

namespace interpreter {
const void* in_devices_view(const void* p);  // debug_info/symbols.h
}

namespace interpreter::cuda_runtime {

/// What stands between `<<<` and `>>>`.
struct Configuration {
  Configuration(dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr)
      : grid(grid), block(block), shared_bytes(shared_bytes), stream(stream) {}
  explicit Configuration(const cudaLaunchConfig_t& config);
  dim3 grid, block;
  std::size_t shared_bytes;
  dim3 cluster = {1, 1, 1};  // in blocks
  bool cooperative = false;
  bool dependent = false;  // may begin before the launch before it has ended
  cudaStream_t stream = nullptr;
};

/// Runs a launch. A configuration that CUDA refuses is an error code and a line on stderr; a failed check prints its report and
/// ends the program with exit code 1; a failed assert prints it too and is the error of all later calls.
cudaError_t start(const Launch& launch, bool cooperative = false);

/// What `__cluster_dims__` says of the kernel that calls it; tools/interpret writes it at the kernel's beginning. A launch that has
/// no clusters begins again with these.
void in_clusters_of(dim3 cluster);

/// Tells of a parameter of the kernel that calls it that is a tensor map, but no `__grid_constant__`: the copy engine cannot read
/// it.
void without_grid_constant(const void* tensor_map);

/// Makes a kernel known by its address, for cudaLaunchKernel.
void register_kernel(const void* kernel, cudaError_t (*starter)(const void* kernel, const Configuration&, void** arguments));

/// Takes --order, --as and --count of the command from the environment. Before main(), for device memory is as large as the GPU's.
bool load_settings();
inline const bool settings_are_loaded = load_settings();

/// The kernel, or what calls it, of the device's view where tools/interpret has compiled a program for host and device apart.
template <class F>
F* in_devices_view(F* f) {
  return reinterpret_cast<F*>(const_cast<void*>(interpreter::in_devices_view(reinterpret_cast<const void*>(f))));
}

/// A kernel that is one function: its parameters take the arguments as in a call.
template <class... Parameters>
cudaError_t start_function(const Configuration& c, void (*kernel)(Parameters...), std::tuple<Parameters...>&& arguments) {
  struct Closure {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  } closure{in_devices_view(kernel), std::move(arguments)};
  Launch launch{reinterpret_cast<const void*>(closure.kernel),
                c.grid,
                c.block,
                c.shared_bytes,
                [](const void* p) {
                  const Closure& mine = *static_cast<const Closure*>(p);
                  std::apply(mine.kernel, mine.arguments);
                },
                &closure,
                sizeof closure,
                nullptr,
                true,
                pointers_among(closure.arguments),
                c.cluster,
                c.dependent,
                c.stream};
  return start(launch, c.cooperative);
}

/// A kernel that only a call can choose: a template whose arguments are deduced, one of several of the same name.
/// @param call calls it with the arguments that it is given
/// @param name for reports, where the kernel's address is not known  @param kernel its address, or null
template <class Call, class... Arguments>
INTERPRETER_KEPT cudaError_t start_call(const Configuration& c, const char* name, const void* kernel, const Call& call,
                                        std::tuple<Arguments...>&& arguments) {
  struct Closure {
    const Call& call;
    std::tuple<Arguments...> arguments;
  } closure{call, std::move(arguments)};
  Launch launch{reinterpret_cast<const void*>(&start_call<Call, Arguments...>),
                c.grid,
                c.block,
                c.shared_bytes,
                [](const void* p) {
                  const Closure& mine = *static_cast<const Closure*>(p);
                  std::apply([&](const Arguments&... copies) { mine.call(Arguments(copies)...); }, mine.arguments);
                },
                &closure,
                sizeof closure};
  launch.invoke = in_devices_view(launch.invoke);
  launch.cluster = c.cluster, launch.dependent = c.dependent, launch.stream = c.stream;
  if (kernel)
    launch.kernel = interpreter::in_devices_view(kernel);
  else
    launch.name = name, launch.kernel_is_known = false;
  return start(launch, c.cooperative);
}

template <class Call, class Address>
struct CallLauncher {
  Configuration configuration;
  const char* name;
  Call call;
  Address address;
  template <class... Arguments>
  void operator()(Arguments&&... arguments) const {
    std::tuple<std::decay_t<Arguments>...> copies(std::forward<Arguments>(arguments)...);
    // Where the arguments are of the parameters' types, the function has an address, and reports know its full name.
    if constexpr (requires(void (*f)(std::decay_t<Arguments>...)) { address(f); }) {
      void (*kernel)(std::decay_t<Arguments>...) = nullptr;
      address(kernel);
      start_function(configuration, kernel, std::move(copies));
    } else {
      start_call(configuration, name, nullptr, call, std::move(copies));
    }
  }
};

/// `k<1>` of a `template <int n, class T = float>` is a function without a call; but a call deduces T, and may choose another one.
/// @tparam Parameters of the one without a call
template <class Address, class... Parameters>
struct DeducedFrom {
  template <class Argument, class Parameter>
  using Deduced = std::conditional_t<std::is_pointer_v<std::decay_t<Argument>> && std::is_pointer_v<Parameter> &&
                                         std::is_const_v<std::remove_pointer_t<Parameter>>,
                                     const std::remove_pointer_t<std::decay_t<Argument>>*, std::decay_t<Argument>>;
  template <bool... kDeduced>
  struct Where {
    template <class... Arguments>
    static constexpr bool kHasKernel =
        requires(const Address& address, void (*f)(std::conditional_t<kDeduced, Deduced<Arguments, Parameters>, Parameters>...)) {
      address(f);
    };
  };
  /// Whether there is a kernel that takes the arguments, or some of them, as they are where `Parameters` would convert them.
  template <class... Arguments>
  static consteval bool is_another() {
    if constexpr (sizeof...(Arguments) != sizeof...(Parameters)) {
      return sizeof...(Arguments) > sizeof...(Parameters);
    } else if constexpr ((std::is_same_v<Deduced<Arguments, Parameters>, Parameters> && ...)) {
      return false;
    } else {
      constexpr auto kOneOf = []<std::size_t... i>(std::index_sequence<i...>) {
        const auto only = []<std::size_t chosen>(std::integral_constant<std::size_t, chosen>) {
          return !std::is_same_v<Deduced<std::tuple_element_t<chosen, std::tuple<Arguments...>>,
                                         std::tuple_element_t<chosen, std::tuple<Parameters...>>>,
                                 std::tuple_element_t<chosen, std::tuple<Parameters...>>> &&
                 Where<(i == chosen)...>::template kHasKernel<Arguments...>;
        };
        return (only(std::integral_constant<std::size_t, i>()) || ...);
      };
      return Where<(sizeof(Arguments) > 0)...>::template kHasKernel<Arguments...> ||
             Where<!(std::is_arithmetic_v<std::decay_t<Arguments>> &&
                     std::is_arithmetic_v<Parameters>)...>::template kHasKernel<Arguments...> ||
             kOneOf(std::index_sequence_for<Arguments...>());
    }
  }
};

template <class Call, class Address, class... Parameters>
struct FunctionLauncher {
  Configuration configuration;
  const char* name;
  void (*kernel)(Parameters...);
  Call call;
  Address address;
  void operator()(Parameters... arguments) const {
    start_function(configuration, kernel, std::tuple<Parameters...>(std::forward<Parameters>(arguments)...));
  }
  /// Fewer arguments than parameters: the others have defaults, which only a call knows.
  template <class... Arguments>
  requires(sizeof...(Arguments) < sizeof...(Parameters)) void operator()(Arguments&&... arguments) const {
    start_call(configuration, name, reinterpret_cast<const void*>(kernel), call,
               std::tuple<std::decay_t<Arguments>...>(std::forward<Arguments>(arguments)...));
  }
  template <class... Arguments>
  requires(DeducedFrom<Address, Parameters...>::template is_another<Arguments...>()) void operator()(
      Arguments&&... arguments) const {
    CallLauncher<Call, Address>{configuration, name, call, address}(std::forward<Arguments>(arguments)...);
  }
};

/// One `kernel<<<configuration>>>(arguments)`. tools/interpret writes, with the user's own tokens,
///
///     [&](auto course_launch) {
///       if constexpr (requires { course_launch.function(kernel); }) return course_launch.function(kernel, CALL, ADDRESS);
///       else return course_launch.call(CALL, ADDRESS);
///     }(LaunchSyntax("kernel", Configuration(configuration)))(arguments)
///
/// where CALL is a lambda that calls the kernel and ADDRESS one that assigns it to a pointer to a function of some type, if it has
/// it, so that both the conversions of a function call and the deduction of a template's arguments are the compiler's own.
struct LaunchSyntax {
  LaunchSyntax(const char* name, Configuration configuration) : name(name), configuration(configuration) {}
  const char* name;
  Configuration configuration;

  template <class... Parameters>
  static void function(void (*kernel)(Parameters...));
  template <class... Parameters, class Call, class Address>
  FunctionLauncher<Call, Address, Parameters...> function(void (*kernel)(Parameters...), Call call, Address address) const {
    return {configuration, name, kernel, call, address};
  }
  template <class Call, class Address>
  CallLauncher<Call, Address> call(Call call, Address address) const {
    return {configuration, name, call, address};
  }
};

/// For macros that hold `<<<configuration>>>` alone: `kernel ^ Deferred(configuration)(arguments)` launches.
template <class... Arguments>
struct DeferredCall {
  Configuration configuration;
  std::tuple<Arguments...> arguments;
};
struct Deferred {
  explicit Deferred(Configuration configuration) : configuration(configuration) {}
  template <class... Arguments>
  DeferredCall<std::decay_t<Arguments>...> operator()(Arguments&&... arguments) const {
    return {configuration, {std::forward<Arguments>(arguments)...}};
  }
  Configuration configuration;
};
template <class... Parameters, class... Arguments>
void operator^(void (*kernel)(Parameters...), DeferredCall<Arguments...> call) {
  start_function(call.configuration, kernel, std::tuple<Parameters...>(std::move(call.arguments)));
}

/// cudaLaunchKernel and its like with the kernel's type: arguments come as an array of pointers to them.
template <class... Parameters>
cudaError_t start_with_pointers(const Configuration& c, void (*kernel)(Parameters...), void** arguments) {
  const auto take = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::tuple<Parameters...>(*static_cast<std::remove_reference_t<Parameters>*>(arguments[i])...);
  };
  return start_function(c, kernel, take(std::index_sequence_for<Parameters...>()));
}

/// For kernels that are no templates: their address alone is then enough. tools/interpret writes one for each.
template <auto kernel>
bool make_known() {
  register_kernel(reinterpret_cast<const void*>(kernel),
                  [](const void*, const Configuration& c, void** arguments) { return start_with_pointers(c, kernel, arguments); });
  return true;
}

/// The same of what a template makes, where the program turns its address into a pointer to void. Anything else stays what it is.
template <class... Parameters>
auto known(void (*kernel)(Parameters...)) {
  register_kernel(reinterpret_cast<const void*>(kernel), [](const void* address, const Configuration& c, void** arguments) {
    return start_with_pointers(c, reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(address)), arguments);
  });
  return kernel;
}
template <class T>
T known(T value) {
  return value;
}

/// Whether `bytes` from `offset` on lie in a variable of `size` bytes. If not, `call` has failed.
bool lie_in_symbol(const char* call, std::size_t bytes, std::size_t offset, std::size_t size);

/// Text of a call's arguments, as the type of an argument of its own.
struct Text {
  const char* text;
};

}  // namespace interpreter::cuda_runtime

// ------------------------------------------------------------------- what cuda_runtime.h gives to nvcc alone: typed functions
template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes = 0,
                             cudaStream_t stream = nullptr) {
  return interpreter::cuda_runtime::start_with_pointers({grid, block, shared_bytes, stream}, kernel, arguments);
}
template <class... Parameters, class... Arguments>
requires true cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                                             Arguments&&... arguments) {
  return interpreter::cuda_runtime::start_function(interpreter::cuda_runtime::Configuration(*config), kernel,
                                                   std::tuple<Parameters...>(std::forward<Arguments>(arguments)...));
}
template <class... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  interpreter::cuda_runtime::Configuration configuration(grid, block, shared_bytes, stream);
  configuration.cooperative = true;
  return interpreter::cuda_runtime::start_with_pointers(configuration, kernel, arguments);
}

template <class T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  if (!interpreter::cuda_runtime::lie_in_symbol("cudaMemcpyToSymbol", bytes, offset, sizeof symbol)) return cudaErrorInvalidValue;
  return ::cudaMemcpyToSymbol(static_cast<const void*>(&symbol), from, bytes, offset, kind);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                                    cudaStream_t stream = nullptr) {
  if (!interpreter::cuda_runtime::lie_in_symbol("cudaMemcpyToSymbolAsync", bytes, offset, sizeof symbol))
    return cudaErrorInvalidValue;
  return ::cudaMemcpyToSymbolAsync(static_cast<const void*>(&symbol), from, bytes, offset, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  if (!interpreter::cuda_runtime::lie_in_symbol("cudaMemcpyFromSymbol", bytes, offset, sizeof symbol)) return cudaErrorInvalidValue;
  return ::cudaMemcpyFromSymbol(to, static_cast<const void*>(&symbol), bytes, offset, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream = nullptr) {
  if (!interpreter::cuda_runtime::lie_in_symbol("cudaMemcpyFromSymbolAsync", bytes, offset, sizeof symbol))
    return cudaErrorInvalidValue;
  return ::cudaMemcpyFromSymbolAsync(to, static_cast<const void*>(&symbol), bytes, offset, kind, stream);
}
template <class T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  return ::cudaGetSymbolAddress(address, static_cast<const void*>(&symbol));
}
template <class T>
cudaError_t cudaGetSymbolSize(std::size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}
template <class T>
cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class T>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* kernel) {
  return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class T>
cudaError_t cudaFuncSetCacheConfig(T* kernel, cudaFuncCache config) {
  return ::cudaFuncSetCacheConfig(reinterpret_cast<const void*>(kernel), config);
}

// Reports call an allocation by the variable that receives it. A macro alone knows its name; as an argument more, it leaves
// `::cudaMalloc(...)` and pointers to the function alone.
template <class T>
cudaError_t cudaMalloc(T** p, std::size_t bytes, interpreter::cuda_runtime::Text text) {
  interpreter::cuda_runtime::label_next_allocation(text.text);
  return ::cudaMalloc(reinterpret_cast<void**>(p), bytes);
}
template <class T, class... Flags>
cudaError_t cudaMallocManaged(T** p, std::size_t bytes, interpreter::cuda_runtime::Text text) {
  interpreter::cuda_runtime::label_next_allocation(text.text);
  return ::cudaMallocManaged(reinterpret_cast<void**>(p), bytes, cudaMemAttachGlobal);
}
template <class T>
cudaError_t cudaMallocManaged(T** p, std::size_t bytes, unsigned, interpreter::cuda_runtime::Text text) {
  return cudaMallocManaged(p, bytes, text);
}
template <class T>
cudaError_t cudaMallocAsync(T** p, std::size_t bytes, cudaStream_t stream, interpreter::cuda_runtime::Text text) {
  interpreter::cuda_runtime::label_next_allocation(text.text);
  return ::cudaMallocAsync(reinterpret_cast<void**>(p), bytes, stream);
}
template <class T>
cudaError_t cudaMallocAsync(T** p, std::size_t bytes, cudaMemPool_t, cudaStream_t stream, interpreter::cuda_runtime::Text text) {
  return cudaMallocAsync(p, bytes, stream, text);
}
template <class T>
cudaError_t cudaMallocPitch(T** p, std::size_t* pitch, std::size_t width, std::size_t height,
                            interpreter::cuda_runtime::Text text) {
  interpreter::cuda_runtime::label_next_allocation(text.text);
  return ::cudaMallocPitch(reinterpret_cast<void**>(p), pitch, width, height);
}
#define cudaMalloc(...) cudaMalloc(__VA_ARGS__, ::interpreter::cuda_runtime::Text{#__VA_ARGS__})
#define cudaMallocManaged(...) cudaMallocManaged(__VA_ARGS__, ::interpreter::cuda_runtime::Text{#__VA_ARGS__})
#define cudaMallocAsync(...) cudaMallocAsync(__VA_ARGS__, ::interpreter::cuda_runtime::Text{#__VA_ARGS__})
#define cudaMallocPitch(...) cudaMallocPitch(__VA_ARGS__, ::interpreter::cuda_runtime::Text{#__VA_ARGS__})

// ----------------------------------------------------------------------------- words that tools/interpret puts for CUDA's own
// Each is as long as the word that it stands for, so that columns stay. CUDA's headers must not see the words themselves.
#define COURSE_CUDA 1                           // __CUDACC__, in the user's own files
#define COURSE__ 1                              // __NVCC__
#define COURSE_ARCH_D 900                       // __CUDA_ARCH__ in device code; in host code it has no value
#define COURSE_ARCH_FEAT_SM90_ALL 1             // __CUDA_ARCH_FEAT_SM90_ALL, the same
#define CUDANOINLINE __attribute__((noinline))  // __noinline__: libstdc++ has an attribute of this name
