#include "common/interpreter/source_map.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

extern "C" {
extern char __executable_start, _end;
// Made by the linker for the section that __constant__ puts variables into; absent when there are none.
[[gnu::weak]] extern char __start_gpu_constant, __stop_gpu_constant;
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
  static const char* const kPlumbing[] = {"common/interpreter/language.h",
                                          "common/device/",
                                          "cuda_fp16.h",
                                          "cuda_bf16.h",
                                          "vector_functions.h",
                                          "/c++/",
                                          "cuda_runtime"};
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
};

std::string demangle(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : mangled;
}

Symbols read_symbols() {
  Symbols symbols;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < sizeof(Elf64_Ehdr)) return symbols;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* table = reinterpret_cast<const Elf64_Sym*>(bytes.data() + sections[s].sh_offset);
    const char* names = bytes.data() + sections[sections[s].sh_link].sh_offset;
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof *table; ++i) {
      const char* name = names + table[i].st_name;
      if (ELF64_ST_TYPE(table[i].st_info) == STT_FUNC && table[i].st_value)
        symbols.functions.push_back({table[i].st_value, table[i].st_size, name});
      if (ELF64_ST_TYPE(table[i].st_info) == STT_TLS && std::strncmp(name, "_ZGVZ", 5) == 0)
        symbols.guards.push_back({table[i].st_value, table[i].st_size, "a construction guard"});
      // _ZZ: a local of a function. Its last part is the variable's name.
      if (ELF64_ST_TYPE(table[i].st_info) == STT_TLS && std::strncmp(name, "_ZZ", 3) == 0 &&
          std::strncmp(name, "_ZZN11interpreter", 17) != 0) {
        const std::string full = demangle(name);
        const std::size_t colon = full.rfind("::");
        symbols.shared.push_back({table[i].st_value, table[i].st_size, colon == full.npos ? full : full.substr(colon + 2)});
      }
    }
  }
  std::sort(symbols.functions.begin(), symbols.functions.end(), [](auto& a, auto& b) { return a.value < b.value; });
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

std::string function_name(const void* address) {
  const std::uint64_t offset = to_pc(address);
  const auto& functions = symbols().functions;
  auto after = std::upper_bound(functions.begin(), functions.end(), offset, [](std::uint64_t v, auto& f) { return v < f.value; });
  while (after != functions.begin()) {
    const Symbol& f = *--after;
    if (offset >= f.value && offset < f.value + std::max<std::uint64_t>(f.size, 1)) return without_signature(demangle(f.name));
    if (f.value + (1 << 20) < offset) break;
  }
  return "kernel";
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
