/// @file
/// Cases for the functions of common/device/ptx.cuh whose results are known from a GPU: run by the same code on the GPU, which
/// records, and on the interpreter, which compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptx_cases {

/// What one case gave.
struct Result {
  std::string name;                  ///< "mma f16 denormals"
  std::vector<std::uint32_t> words;  ///< bit patterns of the results, all of them
  std::size_t shown;                 ///< how many of them, from the first on, a table holds; of the others it holds the hash
};

/// All cases, in the order of a table's rows.
std::vector<Result> run();

/// A table's row: the name, the number of words, their hash, the words that are shown; hexadecimal.
std::string to_row(const Result& result);
inline constexpr const char* kHeader = "case,words,hash,first words";

/// Operands of a multiplication with k = 16: a row by row, b column by column, c row by row; a and b are bits of __half or
/// __nv_bfloat16.
struct MmaOperands {
  std::vector<std::uint16_t> a, b;
  std::vector<float> c;
};
constexpr int kMmaFamilies = 12;
const char* mma_family_name(int family);
/// Random operands of rows x columns, the same on every machine. @param half of __half, else of __nv_bfloat16
MmaOperands mma_operands(bool half, int family, int number, int rows = 16, int columns = 8);

}  // namespace ptx_cases
