// Runs every case of the PTX wrappers and prints the table of their results; with a file name, also writes all words there.
#include <cstdio>

#include "common/interpreter/tests/ptx_cases.h"

int main(int argc, char** argv) {
  const auto results = ptx_cases::run();
  std::puts(ptx_cases::kHeader);
  for (const auto& result : results) std::puts(ptx_cases::to_row(result).c_str());
  if (argc < 2) return 0;
  std::FILE* const file = std::fopen(argv[1], "wb");
  if (!file) return 1;
  bool written = true;
  for (const auto& result : results)
    written &= std::fwrite(result.words.data(), 4, result.words.size(), file) == result.words.size();
  return std::fclose(file) == 0 && written ? 0 : 1;
}
