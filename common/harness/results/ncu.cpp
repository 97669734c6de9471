#include "common/harness/results/ncu.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace harness {
namespace {

// Fields of a CSV line; quoted ones may hold commas, and quotes as "".
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> result(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        result.back() += line[++i];
      else
        quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      result.emplace_back();
    } else {
      result.back() += line[i];
    }
  }
  return result;
}

double value(const NcuRow& ncu, const char* name) {
  const auto found = ncu.find(name);
  return found == ncu.end() ? 0 : found->second;
}

// How far the hardware's figure may be above what the instructions need.
double allowance(const std::string& name, const NcuRow& ncu) {
  constexpr char kStores[] = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
                 kLoads[] = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                 kCopies[] = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum";
  const double copies = value(ncu, "smsp__inst_executed_op_ldgsts.sum");
  // Stores and copies into shared memory wait for each other, and loads for copies that come meanwhile; how often varies from run
  // to run, and the hardware counts it. (sm__sass_ counts what the instructions themselves need.)
  if (name.starts_with("l1tex__data")) {
    if (name.find("_op_st.") != std::string::npos) return 0.1 * value(ncu, kStores);
    if (name.find("_op_ldgsts.") != std::string::npos) return 0.1 * value(ncu, kCopies);
    if (name.find("_op_ld.") != std::string::npos && (copies > 0 || value(ncu, kStores) > 0)) return 0.005 * value(ncu, kLoads);
  }
  // A copy that reads nothing took 4 wavefronts in one kernel and 6 on average in another; one that reads takes 8.
  if (name == kCopies) return 4 * (copies - value(ncu, "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum"));
  return 0;
}

}  // namespace

std::vector<NcuRow> read_ncu_table(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("no table in " + path);
  const std::vector<std::string> header = fields(line);
  std::vector<NcuRow> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> values = fields(line);
    if (values.size() != header.size()) throw std::runtime_error("a row of " + path + " has too few or too many fields");
    NcuRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < header.size(); ++i)
      if (header[i].find("__") != std::string::npos) row[header[i]] = std::stod(values[i]);
  }
  if (rows.empty()) throw std::runtime_error("no rows in " + path);
  return rows;
}

std::vector<std::string> find_ncu_tables(const std::string& prefix) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("docs/results"))
    if (entry.path().extension() == ".csv" && entry.path().parent_path().filename() == "ncu" &&
        entry.path().filename().string().starts_with(prefix))
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string differences(const NcuRow& ncu, const std::map<std::string, double>& interpreter) {
  std::ostringstream text;
  const double dummies = 3 * value(ncu, "smsp__inst_executed_op_ldgsts.sum");
  for (const auto& [name, counted] : ncu) {
    const auto ours = interpreter.find(name);
    if (ours == interpreter.end()) {
      text << name << " is unknown to the interpreter; ";
      continue;
    }
    if (name == "smsp__inst_executed_op_shared_ld.sum" && ours->second <= counted && counted <= ours->second + dummies) continue;
    if (ours->second > counted || ours->second < counted - allowance(name, ncu))
      text << name << ": ncu " << counted << ", interpreter " << ours->second << "; ";
  }
  return text.str();
}

}  // namespace harness
