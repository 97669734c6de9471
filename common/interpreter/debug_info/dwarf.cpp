#include "common/interpreter/debug_info/dwarf.h"

#include <dwarf.h>

#include <cstddef>
#include <mutex>

namespace interpreter {

std::mutex libdw_mutex;

namespace {

char* no_debuginfo_path = nullptr;
const Dwfl_Callbacks kCallbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address,
                                   &no_debuginfo_path};

}  // namespace

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

namespace {

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

}  // namespace

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

}  // namespace interpreter
