// The interpreter against a GPU: its counters against those that ncu read, pattern by pattern, and the results of the PTX wrappers.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/harness/results/ncu.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/tests/boxes.h"
#include "common/interpreter/tests/hopper_patterns.h"
#include "common/interpreter/tests/mma_forms.h"
#include "common/interpreter/tests/patterns.h"
#include "common/interpreter/tests/ptx_cases.h"
#include "common/interpreter/tests/wgmma_cases.h"

TEST_CASE("each access pattern counts as it did under ncu") {
  interpreter::clear_profiles();
  interpreter::options().initcheck = false;  // some patterns read shared memory that nobody has written: only addresses matter
  patterns::launch_all();
  interpreter::options().initcheck = true;
  const auto& profiles = interpreter::profiles();
  const auto& all = patterns::all();
  REQUIRE(profiles.size() == all.size());
  const auto tables = harness::find_ncu_tables("patterns");
  REQUIRE(!tables.empty());
  for (const std::string& path : tables) {
    const auto rows = harness::read_ncu_table(path);
    REQUIRE(rows.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::map<std::string, double> counted;
      for (const auto& metric : interpreter::metrics(profiles[i].total)) counted[metric.name] = metric.value;
      // The kernel around a pattern of one operation may be compiled differently; the pattern's own operation is what counts.
      harness::NcuRow row = rows[i];
      const std::string own =
          std::string(all[i].space == 's' ? "shared" : "global") + (all[i].operation == 'l' ? "_op_ld" : "_op_st");
      std::erase_if(row, [&](const auto& metric) {
        return metric.first.find(own) == std::string::npos &&
               metric.first.find("op_" + own.substr(0, 6) + own.substr(9)) == std::string::npos;
      });
      REQUIRE(row.size() >= 2);
      INFO(path << ", pattern " << i << ": " << all[i].what << ", " << all[i].size << " bytes, " << all[i].space
                << all[i].operation);
      CHECK(harness::differences(row, counted) == "");
    }
  }
}

// ncu's table of the PTX patterns also counts what is around a pattern's own instruction.
bool belongs(const std::string& metric, char operation) {
  const auto has = [&](const char* part) { return metric.find(part) != std::string::npos; };
  if (operation == 't') return has("_hmma");
  if (operation == 'm') return has("_ldsm") || has("mem_shared_op_ld.");
  return has("_ldgsts") || has("global_op_ld.") || metric == "smsp__inst_executed_op_shared_ld.sum";
}

TEST_CASE("each instruction of the PTX wrappers counts as it did under ncu") {
  const std::string sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
  const std::string copied_sectors = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum";
  interpreter::clear_profiles();
  interpreter::options().initcheck = false;  // some patterns read shared memory that nobody has written: only addresses matter
  patterns::launch_ptx();
  interpreter::options().initcheck = true;
  const auto& profiles = interpreter::profiles();
  const auto& all = patterns::ptx();
  REQUIRE(profiles.size() == all.size());
  const auto tables = harness::find_ncu_tables("ptx_patterns");
  REQUIRE(!tables.empty());
  for (const std::string& path : tables) {
    const auto rows = harness::read_ncu_table(path);
    REQUIRE(rows.size() == all.size());
    int disagreeing = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const patterns::PtxPattern& p = all[i];
      std::map<std::string, double> counted;
      for (const auto& metric : interpreter::metrics(profiles[i].total)) counted[metric.name] = metric.value;
      harness::NcuRow row = rows[i];
      std::erase_if(row, [&](const auto& metric) { return !belongs(metric.first, p.operation); });
      REQUIRE(!row.empty());
      INFO(path << ", pattern " << i << ": " << p.what << ", size " << p.size << ", " << p.operation);
      // Where the sources of 16-byte copies straddle lines in another way than the destinations, the hardware's counter of sectors
      // stays below that of the instructions, and below the sectors that there are. The interpreter has that of the instructions.
      if ((p.operation == 'g' || p.operation == 's' || p.operation == 'b') && row[sectors] != row[copied_sectors]) {
        CHECK(p.operation == 'g');
        CHECK(p.size == 16);
        CHECK(row[sectors] < row[copied_sectors]);
        ++disagreeing;
        row.erase(sectors);
      }
      CHECK(harness::differences(row, counted) == "");
    }
    CHECK(disagreeing <= 5);
  }
}

// Each row of results against those of the same name, in the same order, of every GPU that has the table ptx/NAME.
void check_results(const std::string& name, const std::vector<ptx_cases::Result>& results) {
  for (const auto& folder : std::filesystem::directory_iterator("docs/results")) {
    const std::filesystem::path path = folder.path() / "ptx" / name;
    if (!std::filesystem::exists(path)) continue;
    std::ifstream file(path);
    std::string row;
    std::getline(file, row);
    CHECK(row == ptx_cases::kHeader);
    for (const ptx_cases::Result& result : results) {
      INFO(path.string() << ": " << result.name);
      REQUIRE(std::getline(file, row));
      CHECK(ptx_cases::to_row(result) == row);
    }
    CHECK_FALSE(std::getline(file, row));
  }
}

bool is_hopper(const std::string& metric) {
  return metric.find("_op_tma_") != std::string::npos || metric.find("shared_op_gmma.") != std::string::npos ||
         metric == "smsp__sass_inst_executed_op_shared_gmma.sum" || metric == "l1tex__lsuin_requests_op_gmma.sum";
}
bool is_stmatrix(const std::string& metric) {
  return metric.find("_op_shared_stsm.") != std::string::npos || metric.find("_shared_op_st.") != std::string::npos;
}

// ncu's table has other metrics besides, to know what else an instruction costs.
TEST_CASE("each of Hopper's instructions counts as it did under ncu") {
  interpreter::clear_profiles();
  interpreter::options().initcheck = false;  // what they copy and multiply nobody has written
  for (const hopper_patterns::Pattern& pattern : hopper_patterns::all()) {
    INFO(pattern.what);
    CHECK_NOTHROW(pattern.launch());
  }
  interpreter::options().initcheck = true;
  const auto& profiles = interpreter::profiles();
  const auto& all = hopper_patterns::all();
  REQUIRE(profiles.size() == all.size());
  const auto tables = harness::find_ncu_tables("hopper_patterns");
  bool has_all = false;
  for (const std::string& path : tables) {
    const auto rows = harness::read_ncu_table(path);
    REQUIRE(rows.size() <= all.size());  // later patterns may be missing on one GPU
    has_all |= rows.size() == all.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::map<std::string, double> counted;
      for (const auto& metric : interpreter::metrics(profiles[i].total)) counted[metric.name] = metric.value;
      harness::NcuRow row = rows[i];
      const bool stores = all[i].what.starts_with("stmatrix");  // others store too, mbarriers for one
      std::erase_if(row, [&](const auto& metric) { return !is_hopper(metric.first) && !(stores && is_stmatrix(metric.first)); });
      REQUIRE(row.size() == (stores ? 11 : 8));
      INFO(path << ", pattern " << i << ": " << all[i].what);
      CHECK(harness::differences(row, counted) == "");
    }
  }
  CHECK(has_all);
}

TEST_CASE("the PTX wrappers' results are those of a GPU, bit by bit") {
  REQUIRE(std::filesystem::exists("docs/results/h200/ptx/results.csv"));
  check_results("results.csv", ptx_cases::run());
}

TEST_CASE("wgmma's results are the tensor core model's, and those of a GPU, bit by bit") {
  REQUIRE(std::filesystem::exists("docs/results/h200/ptx/wgmma.csv"));
  std::vector<ptx_cases::Result> results;
  for (wgmma_cases::Case& one : wgmma_cases::run(true)) {
    INFO(one.result.name);
    CHECK(one.result.words == one.model);
    results.push_back(std::move(one.result));
  }
  check_results("wgmma.csv", results);
}

TEST_CASE("the copy engine puts boxes where a GPU does, those narrower than the swizzle too") {
  std::ifstream file("docs/results/h200/ptx/boxes.csv");
  std::string row;
  REQUIRE(std::getline(file, row));
  CHECK(row == boxes::kHeader);
  for (const boxes::Box& box : boxes::all()) {
    REQUIRE(std::getline(file, row));
    std::string own = boxes::row_of(box);
    INFO(row << "\ninterpreter:\n" << own);
    // The GPU was asked about other numbers of bytes too: those that are no more than the box's are over.
    if (own.find("refused") == std::string::npos) {
      const std::vector<int> tried = boxes::tried_bytes(box);
      const std::string first = "," + std::to_string(tried[0]);
      std::string completed;
      for (const int bytes : tried)
        if (bytes == tried[0] || bytes == 0) completed += (completed.empty() ? "," : " ") + std::to_string(bytes);
      const std::size_t at = own.find(first + ",");
      REQUIRE(at != std::string::npos);
      own.replace(at, first.size(), completed);
    }
    CHECK(own == row);
  }
  CHECK_FALSE(std::getline(file, row));
}

TEST_CASE("the tensor core model gives the results of a GPU for every form of mma and wgmma, bit by bit") {
  REQUIRE(std::filesystem::exists("docs/results/h200/ptx/mma_forms.csv"));
  std::vector<ptx_cases::Result> results;
  for (const mma_forms::Form& form : mma_forms::all()) {
    const std::vector<mma_forms::Problem> problems = mma_forms::problems(form);
    std::vector<std::vector<std::uint64_t>> d;
    for (const mma_forms::Problem& problem : problems) d.push_back(mma_forms::by_model(form, problem));
    for (ptx_cases::Result& result : mma_forms::results(form, problems, d)) results.push_back(std::move(result));
  }
  check_results("mma_forms.csv", results);
}
