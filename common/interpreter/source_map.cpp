#include "common/interpreter/source_map.h"

#include "common/interpreter/language.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

extern "C" {
extern char __executable_start, _end;
// Made by the linker for the section that __constant__ puts variables into; absent when there are none.
[[gnu::weak]] extern char __start_gpu_constant, __stop_gpu_constant;
// The same for the addresses of all functions that are declared __global__, or, with __launch_bounds__, of the no-operations in
// front.
[[gnu::weak]] extern const void* const __start___patchable_function_entries[];
[[gnu::weak]] extern const void* const __stop___patchable_function_entries[];
}

namespace interpreter {
namespace {

std::mutex mutex;

// ---- debug information ----------------------------------------------------------------------------------------------
char* no_debuginfo_path = nullptr;
const Dwfl_Callbacks kCallbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address,
                                   &no_debuginfo_path};

Dwfl_Module* program() {
  static Dwfl_Module* const module = [] {
    Dwfl* dwfl = dwfl_begin(&kCallbacks);
    dwfl_report_begin(dwfl);
    // add_p_vaddr: the base is where the image's address 0 was loaded.
    Dwfl_Module* m = dwfl_report_elf(dwfl, "program", "/proc/self/exe", -1, 0, true);
    dwfl_report_end(dwfl, nullptr, nullptr);
    return m;
  }();
  return module;
}

// The inlined calls around `address` among `die` and its siblings, outermost first. (dwarf_getscopes() does the same, but elfutils
// 0.188 finds nothing in what clang writes.)
void collect_inlined_calls(Dwarf_Die die, Dwarf_Addr address, std::vector<Dwarf_Die>& calls) {
  do {
    const int tag = dwarf_tag(&die);
    const bool code = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block;
    if (tag != DW_TAG_namespace && !(code && dwarf_haspc(&die, address) > 0)) continue;
    if (tag == DW_TAG_inlined_subroutine) calls.push_back(die);
    Dwarf_Die child;
    if (dwarf_child(&die, &child) == 0) collect_inlined_calls(child, address, calls);
  } while (dwarf_siblingof(&die, &die) == 0);
}

// Frames of an instruction, innermost first: where it stands, then where each inlined function was called.
std::vector<Location> frames(Pc pc) {
  std::vector<Location> result;
  Dwfl_Module* module = program();
  if (!module) return result;
  const Dwarf_Addr address = pc - 1;  // a return address belongs to the call before it
  if (Dwfl_Line* line = dwfl_module_getsrc(module, address)) {
    Location here;
    const char* file = dwfl_lineinfo(line, nullptr, &here.line, &here.column, nullptr, nullptr);
    if (file) here.file = file;
    result.push_back(here);
  }
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(module, address, &bias);
  if (!unit) return result;
  Dwarf_Files* files = nullptr;
  std::size_t file_count = 0;
  dwarf_getsrcfiles(unit, &files, &file_count);
  std::vector<Dwarf_Die> calls;
  Dwarf_Die first;
  if (dwarf_child(unit, &first) == 0) collect_inlined_calls(first, address - bias, calls);
  for (auto die = calls.rbegin(); die != calls.rend(); ++die) {
    const auto number = [&](unsigned name) {
      Dwarf_Attribute attribute;
      Dwarf_Word value = 0;
      if (dwarf_attr(&*die, name, &attribute)) dwarf_formudata(&attribute, &value);
      return value;
    };
    Location call;
    if (const char* file = dwarf_filesrc(files, number(DW_AT_call_file), nullptr, nullptr)) call.file = file;
    call.line = static_cast<int>(number(DW_AT_call_line));
    call.column = static_cast<int>(number(DW_AT_call_column));
    result.push_back(call);
  }
  return result;
}

// Files whose lines mean nothing to whoever wrote the kernel.
bool is_plumbing(const std::string& file) {
  // The course's own; the system's, the compiler's and CUDA's.
  static const char* const kPlumbing[] = {"common/device/",
                                          "/usr/include/",
                                          "/usr/lib",
                                          "/c++/",
                                          "/include/cuda_fp16",
                                          "/include/cuda_bf16",
                                          "/include/cuda_runtime",
                                          "/include/crt/",
                                          "/include/vector_functions",
                                          "/include/cooperative_groups"};
  if (file.find("common/interpreter/") != file.npos && file.find("common/interpreter/tests/") == file.npos) return true;
  return std::any_of(std::begin(kPlumbing), std::end(kPlumbing),
                     [&](const char* part) { return file.find(part) != std::string::npos; });
}

// The frames from the first that a user wrote outwards.
std::vector<Location> user_frames(Pc pc) {
  static std::map<Pc, std::vector<Location>>& cache = *new std::map<Pc, std::vector<Location>>;
  std::lock_guard lock(mutex);
  const auto found = cache.find(pc);
  if (found != cache.end()) return found->second;
  // libdw puts some 300 KB on its stack for a large line table: more than a CUDA thread's or a signal handler's.
  std::vector<Location> all;
  std::thread([&] { all = frames(pc); }).join();
  const auto first = std::find_if(all.begin(), all.end(), [](const Location& l) { return l.line > 0 && !is_plumbing(l.file); });
  if (first != all.end()) all.erase(all.begin(), first);
  return cache[pc] = all;
}

// ---- symbols --------------------------------------------------------------------------------------------------------
struct Symbol {
  std::uint64_t value, size;
  std::string name;  // mangled
};
struct Symbols {
  std::vector<Symbol> functions;  // by value
  std::vector<SharedVariable> shared, guards;
  std::vector<Variable> variables;  // by address
};

std::string demangle(const std::string& mangled) {
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
  for (int s = 0; s < header->e_phnum; ++s)
    if (segments[s].p_type == PT_TLS) initialised_tls = segments[s].p_filesz;
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* table = reinterpret_cast<const Elf64_Sym*>(bytes.data() + sections[s].sh_offset);
    const char* names = bytes.data() + sections[sections[s].sh_link].sh_offset;
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof *table; ++i) {
      const char* name = names + table[i].st_name;
      if (ELF64_ST_TYPE(table[i].st_info) == STT_FUNC && table[i].st_value)
        symbols.functions.push_back({table[i].st_value, table[i].st_size, name});
      if (ELF64_ST_TYPE(table[i].st_info) == STT_OBJECT && table[i].st_size)
        symbols.variables.push_back({reinterpret_cast<const char*>(table[i].st_value + image_bias), table[i].st_size, name});
      if (ELF64_ST_TYPE(table[i].st_info) != STT_TLS) continue;
      const std::string_view mangled = name;
      if (mangled.starts_with("_ZGV") || mangled == "__tls_guard")
        symbols.guards.push_back({table[i].st_value, table[i].st_size, "a construction guard"});
      else if (!mangled.starts_with("_ZN11interpreter") && !mangled.starts_with("_ZZN11interpreter") &&
               table[i].st_value >= initialised_tls)  // __shared__ variables have no initial value
        symbols.shared.push_back({table[i].st_value, table[i].st_size, last_part(demangle(name))});
    }
  }
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

Location user_location(Pc pc) {
  const std::vector<Location> all = user_frames(pc);
  return all.empty() ? Location{} : all.front();
}

bool same_expression(Pc a, Pc b) {
  const std::vector<Location> frames_a = user_frames(a);
  return !frames_a.empty() && frames_a == user_frames(b);
}

std::pair<Location, Location> where_calls_differ(Pc a, Pc b) {
  const std::vector<Location> frames_a = user_frames(a), frames_b = user_frames(b);
  auto x = frames_a.rbegin(), y = frames_b.rbegin();
  for (; x != frames_a.rend() && y != frames_b.rend(); ++x, ++y)
    if (!(*x == *y)) return {*x, *y};
  return {};
}

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

std::string subscripted(const Location& where) {
  std::ifstream source(where.file);
  std::string line;
  for (int i = 0; i < where.line; ++i)
    if (!std::getline(source, line)) return "";
  std::size_t at = std::min(line.size(), static_cast<std::size_t>(std::max(where.column, 1)));
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (at > 0 && line[at - 1] != ']') {
    const std::size_t bracket = line.find('[', at);
    if (bracket == line.npos) return "";
    at = bracket;
  }
  const auto skip_spaces = [&] {
    while (at > 0 && line[at - 1] == ' ') --at;
  };
  while (at > 0 && line[at - 1] == ']') {  // at the end of a subscript: to its begin
    int depth = 0;
    do {
      --at;
      depth += (line[at] == ']') - (line[at] == '[');
    } while (at > 0 && depth > 0);
  }
  skip_spaces();
  const std::size_t end = at;
  while (at > 0 && is_name(line[at - 1])) --at;
  return line.substr(at, end - at);
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
  constexpr int kNops = 5;
#else
  constexpr unsigned char kNop[] = {0x1f, 0x20, 0x03, 0xd5};
  constexpr int kNops = 2;
#endif
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
  static const std::vector<Variable>& all = []() -> auto& {
    auto& named = *new std::vector<Variable>(symbols().variables);
    for (Variable& v : named) {
      const bool own = v.name.find("11interpreter") != v.name.npos;  // means nothing to whoever wrote the kernel
      v.of_host = !own && is_of_host(v);
      v.name = own ? "" : last_part(demangle(v.name));
    }
    return named;
  }
  ();
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
