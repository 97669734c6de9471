#include "common/interpreter/report/source_map.h"

#include "common/interpreter/language/language.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

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

}  // namespace

// What follows the course's folder in the path of one of its files; empty for others. The folder is known by what lies in it: names
// like these may stand in anybody's path, and a build may hold objects of another checkout.
static std::string below_course(const std::string& file) {
  const auto exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; };
  static constexpr char kCommon[] = "/common/";
  for (std::size_t at = file.find(kCommon); at != file.npos; at = file.find(kCommon, at + 1))
    if (exists(file.substr(0, at) + "/common/interpreter/interpreter.h") || !exists(file)) return file.substr(at + 1);
  return "";
}

static bool find_plumbing(const std::string& file) {
  const auto lies_in = [](const std::string& path, std::string_view folder) {
    return path.starts_with(folder) && path.substr(folder.size()).starts_with('/');
  };
  static constexpr std::string_view kSystem = COURSE_SYSTEM_HEADERS;  // the compiler's folders and CUDA's, with ':' between
  for (std::size_t begin = 0, end = 0; begin < kSystem.size(); begin = end + 1) {
    end = std::min(kSystem.find(':', begin), kSystem.size());
    if (lies_in(file, kSystem.substr(begin, end - begin))) return true;
  }
  const std::string own = below_course(file);
  if (lies_in(own, "common/interpreter/tests")) return false;
  return lies_in(own, "common/interpreter") || lies_in(own, "common/device") || own == "common/gemm/activation.h" ||
         own == "common/gemm/divisor.h" || own == "common/gemm/matrix.h";
}

bool is_plumbing(const std::string& file) {
  static std::mutex& of_cache = *new std::mutex;
  static std::map<std::string, bool>& cache = *new std::map<std::string, bool>;
  std::lock_guard lock(of_cache);
  const auto [known, is_new] = cache.try_emplace(file);
  if (is_new) known->second = find_plumbing(std::filesystem::path(file).lexically_normal().string());
  return known->second;
}

namespace {

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

Location user_location(Pc pc) {
  std::vector<Location> all = user_frames(pc);
  if (all.empty()) return {};
  if (!all.front().line)  // clang 17 and newer: moved out of a loop, to just before it
    if (std::vector<Location> after = beginning_of(pc); !after.empty()) all = std::move(after);
  Location innermost = all.front();
  if (all.size() > 1) {
    innermost.called_at = all[1].line;
    if (all[1].file != innermost.file) innermost.called_in = all[1].file;
  }
  return innermost;
}

bool same_expression(Pc a, Pc b) {
  const std::vector<Location> frames_a = user_frames(a);
  return !frames_a.empty() && frames_a == user_frames(b);
}

std::vector<Location> beginning_of(Pc pc, Pc end) {
  constexpr Pc kFar = 32;  // bytes; a call and the loads of its arguments
  for (Pc at = pc; at < std::min<Pc>(end, pc + kFar); ++at)
    if (std::vector<Location> places = user_frames(at); !places.empty() && places.front().line) return places;
  return {};
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

// Empty where there is no such line.
static std::string source_text(const std::string& file, int number) {
  std::ifstream source(file);
  std::string line;
  for (int i = 0; i < number; ++i)
    if (!std::getline(source, line)) return "";
  return line;
}

std::string quoted_line(const std::string& file, int line) {
  const std::string text = source_text(file, line);
  if (text.find_first_not_of(" \t\r") == text.npos) return "";
  char number[16];
  std::snprintf(number, sizeof number, "%8d | ", line);
  return number + text;
}

std::string subscripted(const Location& where) {
  const std::string line = source_text(where.file, where.line);
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

// A line of source, as far as the names of what it accesses need it.
class SourceLine {
 public:
  explicit SourceLine(const Location& where) : text_(source_text(where.file, where.line)) {}
  std::size_t size() const { return text_.size(); }
  char operator[](std::size_t i) const { return i < text_.size() ? text_[i] : ' '; }
  bool is_name(std::size_t i) const { return std::isalnum(static_cast<unsigned char>((*this)[i])) || (*this)[i] == '_'; }
  std::size_t end_of_name(std::size_t i) const {
    while (is_name(i)) ++i;
    return i;
  }
  std::size_t skip_spaces(std::size_t i) const {
    while (i < size() && text_[i] == ' ') ++i;
    return i;
  }
  std::size_t skip_spaces_back(std::size_t end) const {
    while (end > 0 && text_[end - 1] == ' ') --end;
    return end;
  }
  // The name that ends there; none of a member.
  std::string name_to(std::size_t end) const {
    std::size_t begin = end;
    while (begin > 0 && is_name(begin - 1)) --begin;
    const bool member = begin > 0 && std::strchr(".>:", text_[begin - 1]);
    return member ? "" : text_.substr(begin, end - begin);
  }
  // The name in front of the brackets that end there.
  std::string array_to(std::size_t end) const {
    if (end == 0 || text_[end - 1] != ']') return "";
    int depth = 0;
    do {
      --end;
      depth += (text_[end] == ']') - (text_[end] == '[');
    } while (end > 0 && (depth > 0 || text_[end - 1] == ']'));
    return depth == 0 ? name_to(end) : "";
  }
  // The name, if the rest of the statement is `name[...]` or `*name`.
  std::string only_access_from(std::size_t begin) const {
    begin = skip_spaces(begin);
    const bool star = (*this)[begin] == '*';
    std::size_t end = end_of_name(begin += star);
    const std::string name = text_.substr(std::min(begin, size()), end - begin);
    if (!star) {
      if ((*this)[end] != '[') return "";
      int depth = 0;
      do {
        depth += ((*this)[end] == '[') - ((*this)[end] == ']');
        ++end;
      } while (end < size() && (depth > 0 || text_[end] == '['));
    }
    return (*this)[skip_spaces(end)] == ';' ? name : "";
  }

 private:
  std::string text_;
};

}  // namespace

// Compilers give a load the place where its expression begins (clang), that of its last bracket, or what it initialises (g++); a
// store that of its assignment.
std::string accessed_name(const Location& where, bool store) {
  const SourceLine line(where);
  const std::size_t at = static_cast<std::size_t>(where.column) - 1;
  if (where.column < 1 || at >= line.size()) return "";
  const bool compound = std::strchr("+-*/%&|^", line[at]) && line[at + 1] == '=';
  if (compound || (line[at] == '=' && line[at + 1] != '=')) {
    if (!store) return line.only_access_from(at + 1 + compound);
    const std::size_t end = line.skip_spaces_back(at);
    if (end > 0 && line[end - 1] == ']') return line.array_to(end);
    const std::string name = line.name_to(end);
    if (name.empty() || end == name.size() || line[end - name.size() - 1] != '*') return "";
    const std::size_t before = line.skip_spaces_back(end - name.size() - 1);
    return before == 0 || std::strchr(";{})", line[before - 1]) ? name : "";  // not the end of a product
  }
  if (store) return "";
  if (line[at] == ']') return line.array_to(at + 1);
  if (line[at] == '*') {
    const std::size_t end = line.end_of_name(at + 1);
    return std::strchr("[(.-:", line[end]) ? "" : line.name_to(end);
  }
  if (!line.is_name(at) || (at > 0 && line.is_name(at - 1))) return "";
  const std::size_t end = line.end_of_name(at);
  if (line[end] == '[') return line.name_to(end);
  const std::size_t next = line.skip_spaces(end);
  return line[next] == '=' && line[next + 1] != '=' ? line.only_access_from(next + 1) : "";
}

std::string accessed_name_in_kernel(Pc pc, bool store) {
  const std::vector<Location> all = user_frames(pc);
  return all.size() == 1 ? accessed_name(all.front(), store) : "";
}

namespace {

// The scopes around `address` among `die` and its siblings, outermost first.
void collect_scopes(Dwarf_Die die, Dwarf_Addr address, std::vector<Dwarf_Die>& scopes) {
  do {
    const int tag = dwarf_tag(&die);
    const bool code = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block;
    if (tag != DW_TAG_namespace && !(code && dwarf_haspc(&die, address) > 0)) continue;
    if (code) scopes.push_back(die);
    Dwarf_Die child;
    if (dwarf_child(&die, &child) == 0) collect_scopes(child, address, scopes);
  } while (dwarf_siblingof(&die, &die) == 0);
}

std::optional<Dwarf_Die> type_of(Dwarf_Die die) {
  Dwarf_Attribute attribute;
  Dwarf_Die type;
  if (!dwarf_attr_integrate(&die, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &type)) return std::nullopt;
  return type;
}
// Without const and its like; of a typedef, what it stands for where that is a pointer.
std::optional<Dwarf_Die> bare(std::optional<Dwarf_Die> type) {
  while (type) {
    const int tag = dwarf_tag(&*type);
    if (tag != DW_TAG_const_type && tag != DW_TAG_volatile_type && tag != DW_TAG_restrict_type && tag != DW_TAG_reference_type)
      break;
    type = type_of(*type);
  }
  return type;
}

constexpr Dwarf_Word kMostBytes = 128;  // of a struct that is looked at

std::optional<Dwarf_Die> without_typedefs(std::optional<Dwarf_Die> type) {
  while ((type = bare(type)) && dwarf_tag(&*type) == DW_TAG_typedef) type = type_of(*type);
  return type;
}

// Marks the bytes that hold values where something of that type stands at `at`.
void cover(std::optional<Dwarf_Die> type, Dwarf_Word at, std::bitset<kMostBytes>& covered) {
  type = without_typedefs(type);
  Dwarf_Word bytes = kMostBytes, of_element = 0;  // who does not know takes all of it
  if (type && dwarf_aggregate_size(&*type, &bytes) != 0) bytes = kMostBytes;
  const int tag = type ? dwarf_tag(&*type) : 0;
  Dwarf_Die member;
  if (tag == DW_TAG_array_type) {
    std::optional<Dwarf_Die> element = without_typedefs(type_of(*type));
    if (element && dwarf_aggregate_size(&*element, &of_element) == 0 && of_element > 0) {
      for (Dwarf_Word i = 0; i < std::min(bytes, kMostBytes) / of_element; ++i) cover(element, at + i * of_element, covered);
      return;
    }
  }
  if (tag != DW_TAG_structure_type && tag != DW_TAG_class_type) {
    for (Dwarf_Word byte = at; byte < std::min(kMostBytes, at + bytes); ++byte) covered.set(byte);
    return;
  }
  if (dwarf_child(&*type, &member) != 0) return;
  do {
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0;
    if (dwarf_tag(&member) != DW_TAG_member && dwarf_tag(&member) != DW_TAG_inheritance) continue;
    if (dwarf_attr_integrate(&member, DW_AT_data_bit_offset, &attribute) && dwarf_formudata(&attribute, &offset) == 0)
      offset /= 8;
    else if (!dwarf_attr_integrate(&member, DW_AT_data_member_location, &attribute) || dwarf_formudata(&attribute, &offset) != 0)
      continue;  // of the class, not of its objects
    cover(type_of(member), at + offset, covered);
  } while (dwarf_siblingof(&member, &member) == 0);
}

// The words of a struct that are none of its members'.
std::uint32_t padding_of(Dwarf_Die type, Dwarf_Word bytes) {
  if (bytes > kMostBytes) return 0;
  std::bitset<kMostBytes> covered;
  cover(type, 0, covered);
  std::uint32_t words = 0;
  for (Dwarf_Word word = 0; word < bytes / 4; ++word)
    if ((covered >> 4 * word & std::bitset<kMostBytes>(15)).none()) words |= 1u << word;
  return words;
}

AccessedThrough read_accessed_through(Pc pc, const std::string& name) {
  Dwarf_Addr bias = 0;
  Dwfl_Module* const module = program();
  Dwarf_Die* const unit = module ? dwfl_module_addrdie(module, pc - 1, &bias) : nullptr;
  Dwarf_Die die;
  if (!unit || dwarf_child(unit, &die) != 0) return {};
  std::vector<Dwarf_Die> scopes;
  collect_scopes(die, pc - 1 - bias, scopes);
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (dwarf_child(&*scope, &die) != 0) continue;
    do {
      const int tag = dwarf_tag(&die);
      Dwarf_Attribute attribute;
      const bool named = (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
                         dwarf_attr_integrate(&die, DW_AT_name, &attribute) && name == dwarf_formstring(&attribute);
      if (!named) continue;
      AccessedThrough result{name};
      std::optional<Dwarf_Die> type = bare(type_of(die));
      if (!type || (dwarf_tag(&*type) != DW_TAG_pointer_type && dwarf_tag(&*type) != DW_TAG_array_type)) return result;
      do type = bare(type_of(*type));  // of rows, the elements
      while (type && dwarf_tag(&*type) == DW_TAG_array_type);
      Dwarf_Word bytes = 0;
      const char* const type_name = type ? dwarf_diename(&*type) : nullptr;
      if (type_name && dwarf_aggregate_size(&*type, &bytes) == 0) result = {name, type_name, bytes, padding_of(*type, bytes)};
      return result;
    } while (dwarf_siblingof(&die, &die) == 0);
  }
  return {};
}

}  // namespace

AccessedThrough accessed_through(Pc pc, bool store) {
  AccessedThrough result;
  std::lock_guard lock(mutex);
  std::thread([&] {  // see user_frames()
    const std::vector<Location> all = frames(pc);
    if (all.empty() || is_plumbing(all.front().file)) return;
    const std::string name = accessed_name(all.front(), store);
    if (!name.empty()) result = read_accessed_through(pc, name);
  })
      .join();
  return result;
}

bool are_padding(Pc pc, unsigned size, std::uint32_t words) {
  static std::mutex& of_cache = *new std::mutex;
  static std::map<Pc, AccessedThrough>& cache = *new std::map<Pc, AccessedThrough>;
  std::lock_guard lock(of_cache);
  const auto [element, is_new] = cache.try_emplace(pc);
  if (is_new) element->second = accessed_through(pc, false);
  for (std::size_t begin = 0; begin + size <= element->second.bytes; begin += size)
    if ((words & ~(element->second.padding >> begin / 4)) == 0) return true;
  return false;
}

namespace {

// A kernel begins with instructions that do nothing. On aarch64, what g++ says of it leaves them out, and one before them (bti).
#if defined(__x86_64__)
constexpr Dwarf_Addr kUndescribed = 0;
#else
constexpr Dwarf_Addr kUndescribed = 24;
#endif

bool find_function(Dwarf_Die die, Dwarf_Addr begin, Dwarf_Die& found) {
  do {
    const int tag = dwarf_tag(&die);
    Dwarf_Addr low = 0;
    if (tag == DW_TAG_subprogram && dwarf_lowpc(&die, &low) == 0 && low - begin <= kUndescribed) return found = die, true;
    Dwarf_Die child;
    if (tag == DW_TAG_namespace && dwarf_child(&die, &child) == 0 && find_function(child, begin, found)) return true;
  } while (dwarf_siblingof(&die, &die) == 0);
  return false;
}

std::vector<Parameter> read_parameters(Pc pc) {
  std::vector<Parameter> result;
  Dwarf_Addr bias = 0;
  Dwfl_Module* const module = program();
  Dwarf_Die* const unit = module ? dwfl_module_addrdie(module, pc + kUndescribed, &bias) : nullptr;
  Dwarf_Die die, function;
  if (!unit || dwarf_child(unit, &die) != 0 || !find_function(die, pc - bias, function) || dwarf_child(&function, &die) != 0)
    return result;
  do {
    if (dwarf_tag(&die) != DW_TAG_formal_parameter) continue;
    Parameter& parameter = result.emplace_back();
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(&die, DW_AT_name, &attribute)) parameter.name = dwarf_formstring(&attribute);
    Dwarf_Die type = die;
    for (int tag = DW_TAG_const_type; tag == DW_TAG_const_type || tag == DW_TAG_volatile_type || tag == DW_TAG_typedef;) {
      Dwarf_Die of;
      if (!dwarf_attr_integrate(&type, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &of)) break;
      type = of;
      tag = dwarf_tag(&type);
      parameter.is_restrict = tag == DW_TAG_restrict_type;
    }
  } while (dwarf_siblingof(&die, &die) == 0);
  return result;
}

}  // namespace

std::vector<Parameter> parameters(const void* function) {
  std::vector<Parameter> result;
  std::lock_guard lock(mutex);
  std::thread([&] { result = read_parameters(to_pc(function)); }).join();  // see user_frames()
  return result;
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

namespace {

// Addresses of the variables that were declared with just the alignment of __device__. That of an address may be chance.
void collect_device_variables(Dwarf_Die die, std::vector<const char*>& found) {
  do {
    const int tag = dwarf_tag(&die);
    Dwarf_Attribute attribute;
    Dwarf_Word alignment = 0;
    Dwarf_Op* place = nullptr;
    std::size_t operations = 0;
    if (tag == DW_TAG_variable && dwarf_attr_integrate(&die, DW_AT_alignment, &attribute) &&
        dwarf_formudata(&attribute, &alignment) == 0 && alignment == INTERPRETER_DEVICE_ALIGNMENT &&
        dwarf_attr_integrate(&die, DW_AT_location, &attribute) && dwarf_getlocation(&attribute, &place, &operations) == 0 &&
        operations == 1 && place[0].atom == DW_OP_addr)
      found.push_back(reinterpret_cast<const char*>(place[0].number + image_bias));
    Dwarf_Die child;
    if (tag == DW_TAG_namespace && dwarf_child(&die, &child) == 0) collect_device_variables(child, found);
  } while (dwarf_siblingof(&die, &die) == 0);
}

std::vector<const char*> read_device_variables() {
  std::vector<const char*> found;
  Dwfl_Module* const module = program();
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = nullptr;
  while (module && (unit = dwfl_module_nextcu(module, unit, &bias))) {
    Dwarf_Die first;
    if (dwarf_child(unit, &first) == 0) collect_device_variables(first, found);
  }
  return found;
}

}  // namespace

bool is_for_kernels_alone(const Variable& v) {
  if (v.begin >= constant_memory().begin && v.begin < constant_memory().end) return true;
  if (reinterpret_cast<std::uintptr_t>(v.begin) % INTERPRETER_DEVICE_ALIGNMENT != 0) return false;
  static const std::vector<const char*>& all = *[] {
    std::lock_guard lock(mutex);
    auto* const found = new std::vector<const char*>;
    std::thread([&] { *found = read_device_variables(); }).join();  // see user_frames()
    return found;
  }();
  return std::find(all.begin(), all.end(), v.begin) != all.end();
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
