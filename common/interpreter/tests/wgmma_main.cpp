// Runs every case of wgmma and prints the table of their results; says on stderr which are not what the interpreter's model of
// tensor cores says. With a file name, also writes all words there.
#include <cstdio>

#include "common/interpreter/tests/wgmma_cases.h"

int main(int argc, char** argv) {
  const auto cases = wgmma_cases::run(true);
  std::puts(ptx_cases::kHeader);
  std::size_t differing = 0;
  for (const auto& [result, model] : cases) {
    std::puts(ptx_cases::to_row(result).c_str());
    std::size_t words = 0, first = 0;
    for (std::size_t i = result.words.size(); i-- > 0;)
      if (result.words[i] != model[i]) ++words, first = i;
    if (words)
      std::fprintf(stderr, "%s: %zu of %zu words differ from the model; the first is word %zu, %08x instead of %08x\n",
                   result.name.c_str(), words, result.words.size(), first, static_cast<unsigned>(result.words[first]),
                   static_cast<unsigned>(model[first]));
    differing += words != 0;
  }
  std::fprintf(stderr, "%zu of %zu cases differ from the model\n", differing, cases.size());
  if (argc < 2) return 0;
  std::FILE* const file = std::fopen(argv[1], "wb");
  if (!file) return 1;
  bool written = true;
  for (const auto& one : cases)
    written &= std::fwrite(one.result.words.data(), 4, one.result.words.size(), file) == one.result.words.size();
  return std::fclose(file) == 0 && written ? 0 : 1;
}
