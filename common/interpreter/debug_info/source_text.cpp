#include "common/interpreter/debug_info/source_text.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "common/interpreter/interpreter.h"

namespace interpreter {

// Empty where there is no such line.
static std::string source_text(const std::string& file, int number) {
  std::ifstream source(file);
  std::string line;
  for (int i = 0; i < number; ++i)
    if (!std::getline(source, line)) return "";
  return line;
}

std::string quoted_line(const std::string& file, int line) {
  const std::string text = source_text(file, line);
  if (text.find_first_not_of(" \t\r") == text.npos) return "";
  char number[16];
  std::snprintf(number, sizeof number, "%8d | ", line);
  return number + text;
}

std::string subscripted(const Location& where) {
  const std::string line = source_text(where.file, where.line);
  std::size_t at = std::min(line.size(), static_cast<std::size_t>(std::max(where.column, 1)));
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (at > 0 && line[at - 1] != ']') {
    const std::size_t bracket = line.find('[', at);
    if (bracket == line.npos) return "";
    at = bracket;
  }
  const auto skip_spaces = [&] {
    while (at > 0 && line[at - 1] == ' ') --at;
  };
  while (at > 0 && line[at - 1] == ']') {  // at the end of a subscript: to its begin
    int depth = 0;
    do {
      --at;
      depth += (line[at] == ']') - (line[at] == '[');
    } while (at > 0 && depth > 0);
  }
  skip_spaces();
  const std::size_t end = at;
  while (at > 0 && is_name(line[at - 1])) --at;
  return line.substr(at, end - at);
}

namespace {

// A line of source, as far as the names of what it accesses need it.
class SourceLine {
 public:
  explicit SourceLine(const Location& where) : text_(source_text(where.file, where.line)) {}
  std::size_t size() const { return text_.size(); }
  char operator[](std::size_t i) const { return i < text_.size() ? text_[i] : ' '; }
  bool is_name(std::size_t i) const { return std::isalnum(static_cast<unsigned char>((*this)[i])) || (*this)[i] == '_'; }
  std::size_t end_of_name(std::size_t i) const {
    while (is_name(i)) ++i;
    return i;
  }
  std::size_t skip_spaces(std::size_t i) const {
    while (i < size() && text_[i] == ' ') ++i;
    return i;
  }
  std::size_t skip_spaces_back(std::size_t end) const {
    while (end > 0 && text_[end - 1] == ' ') --end;
    return end;
  }
  // The name that ends there; none of a member.
  std::string name_to(std::size_t end) const {
    std::size_t begin = end;
    while (begin > 0 && is_name(begin - 1)) --begin;
    const bool member = begin > 0 && std::strchr(".>:", text_[begin - 1]);
    return member ? "" : text_.substr(begin, end - begin);
  }
  // The name in front of the brackets that end there.
  std::string array_to(std::size_t end) const {
    if (end == 0 || text_[end - 1] != ']') return "";
    int depth = 0;
    do {
      --end;
      depth += (text_[end] == ']') - (text_[end] == '[');
    } while (end > 0 && (depth > 0 || text_[end - 1] == ']'));
    return depth == 0 ? name_to(end) : "";
  }
  // The name, if the rest of the statement is `name[...]` or `*name`.
  std::string only_access_from(std::size_t begin) const {
    begin = skip_spaces(begin);
    const bool star = (*this)[begin] == '*';
    std::size_t end = end_of_name(begin += star);
    const std::string name = text_.substr(std::min(begin, size()), end - begin);
    if (!star) {
      if ((*this)[end] != '[') return "";
      int depth = 0;
      do {
        depth += ((*this)[end] == '[') - ((*this)[end] == ']');
        ++end;
      } while (end < size() && (depth > 0 || text_[end] == '['));
    }
    return (*this)[skip_spaces(end)] == ';' ? name : "";
  }

 private:
  std::string text_;
};

}  // namespace

// Compilers give a load the place where its expression begins (clang), that of its last bracket, or what it initialises (g++); a
// store that of its assignment.
std::string accessed_name(const Location& where, bool store) {
  const SourceLine line(where);
  const std::size_t at = static_cast<std::size_t>(where.column) - 1;
  if (where.column < 1 || at >= line.size()) return "";
  const bool compound = std::strchr("+-*/%&|^", line[at]) && line[at + 1] == '=';
  if (compound || (line[at] == '=' && line[at + 1] != '=')) {
    if (!store) return line.only_access_from(at + 1 + compound);
    const std::size_t end = line.skip_spaces_back(at);
    if (end > 0 && line[end - 1] == ']') return line.array_to(end);
    const std::string name = line.name_to(end);
    if (name.empty() || end == name.size() || line[end - name.size() - 1] != '*') return "";
    const std::size_t before = line.skip_spaces_back(end - name.size() - 1);
    return before == 0 || std::strchr(";{})", line[before - 1]) ? name : "";  // not the end of a product
  }
  if (store) return "";
  if (line[at] == ']') return line.array_to(at + 1);
  if (line[at] == '*') {
    const std::size_t end = line.end_of_name(at + 1);
    return std::strchr("[(.-:", line[end]) ? "" : line.name_to(end);
  }
  if (!line.is_name(at) || (at > 0 && line.is_name(at - 1))) return "";
  const std::size_t end = line.end_of_name(at);
  if (line[end] == '[') return line.name_to(end);
  const std::size_t next = line.skip_spaces(end);
  return line[next] == '=' && line[next + 1] != '=' ? line.only_access_from(next + 1) : "";
}

}  // namespace interpreter
