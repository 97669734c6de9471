// The interpreter's texts: error reports and counter tables.
#include <cstdio>
#include <sstream>

#include "common/interpreter/report/diagnosis.h"

namespace interpreter {
namespace {

std::string ratio(std::uint64_t a, std::uint64_t b) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", b ? double(a) / double(b) : 0.0);
  return text;
}

void add_rows(std::ostringstream& out, const std::string& where, const Counters& c) {
  char row[256];
  const auto global = [&](const char* what, const Counters::Global& g) {
    if (!g.requests) return;
    std::snprintf(row, sizeof row, "  %-28s %-14s %12llu %12llu sectors     %6s sectors/request\n", where.c_str(), what,
                  static_cast<unsigned long long>(g.requests), static_cast<unsigned long long>(g.sectors),
                  ratio(g.sectors, g.requests).c_str());
    out << row;
  };
  const auto shared = [&](const char* what, const Counters::Shared& s) {
    if (!s.requests) return;
    std::snprintf(row, sizeof row, "  %-28s %-14s %12llu %12llu wavefronts  %6s of ideal\n", where.c_str(), what,
                  static_cast<unsigned long long>(s.requests), static_cast<unsigned long long>(s.wavefronts),
                  ratio(s.wavefronts, s.ideal_wavefronts).c_str());
    out << row;
  };
  global("global load", c.global_load), global("global store", c.global_store), global("global atomic", c.global_atomic);
  shared("shared load", c.shared_load), shared("shared store", c.shared_store), shared("shared atomic", c.shared_atomic);
  global("cp.async read", c.copy_read), shared("cp.async write", c.copy_write), shared("ldmatrix", c.matrix_load);
  shared("stmatrix", c.matrix_store);
  const auto number = [&](const char* what, std::uint64_t n) {
    if (!n) return;
    std::snprintf(row, sizeof row, "  %-28s %-14s %12llu\n", where.c_str(), what, static_cast<unsigned long long>(n));
    out << row;
  };
  number("mma", c.mma);
  global("bulk read", c.bulk_read), number("only zeros", c.bulk_zeros), global("bulk write", c.bulk_write);
  shared("wgmma", c.wgmma);
}

}  // namespace

const char* name(Check check) {
  switch (check) {
    case Check::kLaunch: return "launch";
    case Check::kMemcheck: return "memcheck";
    case Check::kRacecheck: return "racecheck";
    case Check::kInitcheck: return "initcheck";
    case Check::kSynccheck: return "synccheck";
    case Check::kStackOverflow: return "stack overflow";
    case Check::kException: return "exception";
    case Check::kEndless: return "endless kernel";
  }
  return "?";
}

std::string Diagnosis::text() const {
  std::ostringstream out;
  out << "interpreter: " << name(check) << ": " << what;
  if (line) out << "\n  at       " << file << ':' << line;
  if (const std::string quoted = quoted_line(file, line); !quoted.empty()) out << '\n' << quoted;
  if (called_at && (called_at != line || !called_in.empty()))
    out << "\n  called   at " << (called_in.empty() ? file : called_in) << ':' << called_at;
  if (!kernel.empty()) out << "\n  kernel   " << kernel;
  if (warp >= 0)
    out << "\n  thread   " << to_text(thread) << " of block " << to_text(block) << ", warp " << warp << " lane " << lane;
  if (!variable.empty()) out << "\n  variable " << variable;
  out << "\n  expected " << expected;
  return out.str();
}

std::string to_text(const KernelProfile& p) {
  std::ostringstream out;
  out << p.kernel << "<<<" << to_text(uint3{p.grid.x, p.grid.y, p.grid.z}) << ", "
      << to_text(uint3{p.block.x, p.block.y, p.block.z}) << ", " << p.dynamic_shared_bytes << " B dynamic + "
      << p.static_shared_bytes << " B static shared>>>\n";
  for (const LineProfile& l : p.lines) {
    const std::size_t slash = l.file.rfind('/');
    const std::size_t parent = slash == std::string::npos || slash == 0 ? std::string::npos : l.file.rfind('/', slash - 1);
    add_rows(out, (parent == std::string::npos ? l.file : l.file.substr(parent + 1)) + ":" + std::to_string(l.line), l.counters);
  }
  add_rows(out, "total", p.total);
  if (p.l2.reads) {
    char row[300];
    const auto count = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    std::snprintf(
        row, sizeof row,
        "  L2 model: %llu sectors asked for, %llu read (lts__t_sectors_srcunit_tex_op_read), hit rate %.1f %%, %llu through the "
        "fabric; DRAM %.2f MB read, %.2f MB written, %.2f MB left to write\n",
        count(p.l2.requested), count(p.l2.reads), 100 * p.l2.hit_rate(), count(p.l2.fabric_reads),
        double(p.l2.dram_read_bytes) / 1e6, double(p.l2.dram_write_bytes) / 1e6, double(p.l2.dirty_bytes) / 1e6);
    out << row;
  }
  return out.str();
}

}  // namespace interpreter
