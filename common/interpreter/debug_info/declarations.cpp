#include "common/interpreter/debug_info/declarations.h"

#include <dwarf.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "common/interpreter/debug_info/dwarf.h"
#include "common/interpreter/debug_info/source_text.h"
#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/language/language.h"

namespace interpreter {

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
  std::lock_guard lock(libdw_mutex);
  std::thread([&] {  // see program()
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
  std::lock_guard lock(libdw_mutex);
  std::thread([&] { result = read_parameters(to_pc(function)); }).join();  // see program()
  return result;
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
    std::lock_guard lock(libdw_mutex);
    auto* const found = new std::vector<const char*>;
    std::thread([&] { *found = read_device_variables(); }).join();  // see program()
    return found;
  }();
  return std::find(all.begin(), all.end(), v.begin) != all.end();
}

}  // namespace interpreter
