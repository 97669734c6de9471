// The interpreter's counters against those that ncu read on a GPU, pattern by pattern.
#include <doctest/doctest.h>

#include "common/harness/ncu.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/tests/patterns.h"

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
