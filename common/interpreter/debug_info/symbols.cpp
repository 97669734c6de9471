#include "common/interpreter/debug_info/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string_view>

#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/language/language.h"

extern "C" {
extern char __executable_start, _end;
// Made by the linker for the section that __constant__ puts variables into; absent when there are none.
[[gnu::weak]] extern char __start_gpu_constant, __stop_gpu_constant;
// The same for the addresses of all functions that are declared __global__, or, with __launch_bounds__, of the no-operations in
// front.
[[gnu::weak]] extern const void* const __start___patchable_function_entries[];
[[gnu::weak]] extern const void* const __stop___patchable_function_entries[];
// In the host's view of a program that tools/interpret has compiled for both.
[[gnu::weak]] extern const bool course_has_two_views;
}

namespace interpreter {
namespace {

struct Symbol {
  std::uint64_t value, size;
  std::string name;  // mangled
};
struct Symbols {
  std::vector<Symbol> functions;  // by value
  std::vector<SharedVariable> shared, guards;
  std::vector<Variable> variables;  // by address
  struct InBothViews {
    const char *host, *device;
    std::size_t bytes;
    bool is_variable;
  };
  std::vector<InBothViews> in_both_views;  // by the host's address
};

// tools/interpret puts this in front of the names of what the device's view of a program defines.
constexpr std::string_view kOfDevice = "course_device_";

std::string demangle(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;  // a plain name may be a type's code: "c" is that of char
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : mangled;
}

// "f(int)::s" -> "s"
std::string last_part(const std::string& name) {
  const std::size_t colon = name.rfind("::");
  return colon == name.npos ? name : name.substr(colon + 2);
}

Symbols read_symbols() {
  Symbols symbols;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < sizeof(Elf64_Ehdr)) return symbols;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header->e_shoff);
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(bytes.data() + header->e_phoff);
  std::uint64_t initialised_tls = 0;
  struct OfBoth {
    std::vector<Symbols::InBothViews> host;
    const char* device = nullptr;
  };
  std::map<std::string, OfBoth> of_both;
  for (int s = 0; s < header->e_phnum; ++s)
    if (segments[s].p_type == PT_TLS) initialised_tls = segments[s].p_filesz;
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* table = reinterpret_cast<const Elf64_Sym*>(bytes.data() + sections[s].sh_offset);
    const char* names = bytes.data() + sections[sections[s].sh_link].sh_offset;
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof *table; ++i) {
      const char* name = names + table[i].st_name;
      const int type = ELF64_ST_TYPE(table[i].st_info);
      const char* const address = reinterpret_cast<const char*>(table[i].st_value + image_bias);
      const bool of_device = std::string_view(name).starts_with(kOfDevice);
      if (of_device) name += kOfDevice.size();
      if (&course_has_two_views && table[i].st_size && (type == STT_FUNC || type == STT_OBJECT)) {
        if (of_device)
          of_both[name].device = address;
        else
          of_both[name].host.push_back({address, nullptr, table[i].st_size, type == STT_OBJECT});
      }
      if (type == STT_FUNC && table[i].st_value) symbols.functions.push_back({table[i].st_value, table[i].st_size, name});
      if (type == STT_OBJECT && table[i].st_size) symbols.variables.push_back({address, table[i].st_size, name});
      if (type != STT_TLS || !table[i].st_size) continue;  // aarch64 has marks among them
      const std::string_view mangled = name;
      if (mangled.starts_with("_ZGV") || mangled == "__tls_guard")
        symbols.guards.push_back({table[i].st_value, table[i].st_size, "a construction guard"});
      else if (!mangled.starts_with("_ZN11interpreter") && !mangled.starts_with("_ZZN11interpreter") &&
               table[i].st_value >= initialised_tls)  // __shared__ variables have no initial value
        symbols.shared.push_back({table[i].st_value, table[i].st_size, last_part(demangle(name))});
    }
  }
  for (auto& [name, of] : of_both)
    for (Symbols::InBothViews& each : of.host)
      if ((each.device = of.device)) symbols.in_both_views.push_back(each);
  std::sort(symbols.in_both_views.begin(), symbols.in_both_views.end(), [](auto& a, auto& b) { return a.host < b.host; });
  std::sort(symbols.functions.begin(), symbols.functions.end(), [](auto& a, auto& b) { return a.value < b.value; });
  std::sort(symbols.variables.begin(), symbols.variables.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::sort(symbols.shared.begin(), symbols.shared.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
  return symbols;
}

const Symbols& symbols() {
  static const Symbols& the_symbols = *new Symbols(read_symbols());
  return the_symbols;
}

// "void f<T>(int)" -> "f<T>": the parameter list starts at the last top-level parenthesis.
std::string without_signature(const std::string& name) {
  static const std::string kAnonymous = "(anonymous namespace)";
  int depth = 0;
  std::size_t end = name.size(), begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, kAnonymous.size(), kAnonymous) == 0) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if (depth == 0 && name[i] == '(') {
      end = i;
      break;
    }
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (depth == 0 && name[i] == ' ') begin = i + 1;
  }
  return name.substr(begin, end - begin);
}

}  // namespace

const std::uintptr_t image_bias = [] {
  std::uintptr_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the first is the program itself
      },
      &bias);
  return bias;
}();

namespace {

const Symbol* function_at(const void* address) {
  const std::uint64_t offset = to_pc(address);
  const auto& functions = symbols().functions;
  auto after = std::upper_bound(functions.begin(), functions.end(), offset, [](std::uint64_t v, auto& f) { return v < f.value; });
  while (after != functions.begin()) {
    const Symbol& f = *--after;
    if (offset >= f.value && offset < f.value + std::max<std::uint64_t>(f.size, 1)) return &f;
    if (f.value + (1 << 20) < offset) break;
  }
  return nullptr;
}

}  // namespace

std::string function_name(const void* address) {
  const Symbol* const f = function_at(address);
  return f ? without_signature(demangle(f->name)) : "kernel";
}

const void* function_begin(const void* address) {
  const Symbol* const f = function_at(address);
  return f ? reinterpret_cast<const void*>(f->value + image_bias) : nullptr;
}

const void* in_devices_view(const void* p) {
  if (!&course_has_two_views) return p;
  static const std::vector<Symbols::InBothViews>& all = *[] {
    const auto is_zero = [](const char* bytes, std::size_t count) {
      return std::all_of(bytes, bytes + count, [](char c) { return !c; });
    };
    // The host's view has run what initialises variables by code.
    for (const Symbols::InBothViews& each : symbols().in_both_views)
      if (each.is_variable && inside(each.device, variables()) && is_zero(each.device, each.bytes) &&
          !is_zero(each.host, each.bytes) && reinterpret_cast<std::uintptr_t>(each.host) % INTERPRETER_DEVICE_ALIGNMENT == 0)
        std::memcpy(const_cast<char*>(each.device), each.host, each.bytes);
    return &symbols().in_both_views;
  }();
  const char* const at = static_cast<const char*>(p);
  const auto after = std::upper_bound(all.begin(), all.end(), at, [](const char* at, auto& each) { return at < each.host; });
  if (after != all.begin() && at < (after - 1)->host + (after - 1)->bytes) return (after - 1)->device + (at - (after - 1)->host);
  const auto is_devices = [&](auto& each) { return at >= each.device && at < each.device + each.bytes; };
  return std::any_of(all.begin(), all.end(), is_devices) ? p : nullptr;
}

namespace {

#ifdef __clang__
bool is_of_host(const Variable&) { return false; }
#else
// Pages that nobody can write any more once the program runs: tables of virtual functions, constants that hold addresses.
Range relocated_constants() {
  Range range;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            *static_cast<Range*>(out) = {begin, begin + info->dlpi_phdr[i].p_memsz};
          }
        return 1;  // the first is the program itself
      },
      &range);
  return range;
}

// See INTERPRETER_DEVICE_ALIGNMENT. `v` has its mangled name.
bool is_of_host(const Variable& v) {
  static const Range constants = relocated_constants();
  const auto within = [&](const Range& range) { return v.begin >= range.begin && v.begin < range.end; };
  // Static variables of functions (_ZZ) need no __device__; others that the compiler makes (_ZG, _ZT) have none.
  const bool nameless = v.name.starts_with("_ZZ") || v.name.starts_with("_ZG") || v.name.starts_with("_ZT");
  return within(variables()) && !within(constant_memory()) && !within(constants) && !nameless &&
         reinterpret_cast<std::uintptr_t>(v.begin) % INTERPRETER_DEVICE_ALIGNMENT != 0;
}
#endif

}  // namespace

std::optional<unsigned> kernel_bound(const void* function) {
  if (!function) return std::nullopt;
#if defined(__x86_64__)
  constexpr unsigned char kNop[] = {0x90};
#else
  constexpr unsigned char kNop[] = {0x1f, 0x20, 0x03, 0xd5};
#endif
  constexpr int kNops = 5;
  constexpr std::ptrdiff_t kSize = sizeof kNop, kMostThreads = 1024;
  const auto* const begin = static_cast<const unsigned char*>(function);
  const auto is_nop = [&](const unsigned char* at) { return std::equal(kNop, kNop + kSize, at); };
  std::ptrdiff_t before = 0;
  while (before < kMostThreads && is_nop(begin - (before + 1) * kSize)) ++before;
  for (auto record = __start___patchable_function_entries; record < __stop___patchable_function_entries; ++record) {
    const auto* const noted = static_cast<const unsigned char*>(*record);
    if (noted == begin || noted == begin + 4)
      return 0;  // an instruction that marks the target of a jump (endbr64, bti) may come first
    if (noted < begin && begin - noted <= before * kSize) return static_cast<unsigned>((begin - noted) / kSize);
  }
  // g++ 12 loses records of templates that are in several files. What the records are of is still there.
  for (const unsigned char* entry : {begin, begin + 4}) {
    int nops = 0;
    while (nops < kNops && is_nop(entry + nops * kSize)) ++nops;
    if (nops == kNops) return 0;
  }
  constexpr std::ptrdiff_t kPadding = 16;  // functions are aligned to so many bytes
  if (before * kSize >= kPadding) return static_cast<unsigned>(before);
  return std::nullopt;
}

const Variable* variable_near(const void* p) {
  // A pointer: of a reference g++ 13 thinks that it dangles.
  static const std::vector<Variable>& all = *[] {
    auto* const named = new std::vector<Variable>(symbols().variables);
    for (Variable& v : *named) {
      const bool own = v.name.find("11interpreter") != v.name.npos;  // means nothing to whoever wrote the kernel
      v.of_host = !own && is_of_host(v);
      v.name = own ? "" : last_part(demangle(v.name));
    }
    return named;
  }();
  const auto after = std::upper_bound(all.begin(), all.end(), p, [](const void* p, const Variable& v) { return p < v.begin; });
  return after == all.begin() ? nullptr : &*(after - 1);
}

const std::vector<SharedVariable>& shared_variables() { return symbols().shared; }
const std::vector<SharedVariable>& construction_guards() { return symbols().guards; }

Range image() { return {&__executable_start, &_end}; }

Range variables() {
  static const Range range = [] {
    Range writable;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W)) continue;
            const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
            *static_cast<Range*>(out) = {begin, begin + segment.p_memsz};
          }
          return 1;
        },
        &writable);
    return writable;
  }();
  return range;
}

Range constant_memory() { return {&__start_gpu_constant, &__stop_gpu_constant}; }

Range calling_thread_tls() {
  Range range;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data) {
            const char* begin = static_cast<const char*>(info->dlpi_tls_data);
            *static_cast<Range*>(out) = {begin, begin + info->dlpi_phdr[i].p_memsz};
          }
        return 1;  // the first is the program itself
      },
      &range);
  return range;
}

}  // namespace interpreter
