#include "common/harness/ncu.h"

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

// Stores and copies into shared memory wait for each other; how often varies from run to run, and the hardware counts it. Of these
// counters, the wavefronts of the same kind; 0 for all others. (sm__sass_ counts what the instructions themselves need.)
double arbitrated_wavefronts(const std::string& name, const NcuRow& ncu) {
  if (!name.starts_with("l1tex__data")) return 0;
  for (const auto& [kind, wavefronts] :
       {std::pair("_op_st.", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
        std::pair("_op_ldgsts.", "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum")})
    if (name.find(kind) != std::string::npos) return ncu.contains(wavefronts) ? ncu.at(wavefronts) : 0;
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
  const auto copies = ncu.find("smsp__inst_executed_op_ldgsts.sum");
  const double dummies = copies == ncu.end() ? 0 : 3 * copies->second;
  for (const auto& [name, counted] : ncu) {
    const auto ours = interpreter.find(name);
    if (ours == interpreter.end()) {
      text << name << " is unknown to the interpreter; ";
      continue;
    }
    const double slack = 0.1 * arbitrated_wavefronts(name, ncu);
    if (name == "smsp__inst_executed_op_shared_ld.sum" && ours->second <= counted && counted <= ours->second + dummies) continue;
    if (ours->second > counted || ours->second < counted - slack)
      text << name << ": ncu " << counted << ", interpreter " << ours->second << "; ";
  }
  return text.str();
}

}  // namespace harness
