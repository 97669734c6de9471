#include "common/interpreter/debug_info/lines.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "common/interpreter/debug_info/dwarf.h"

namespace interpreter {
namespace {

// What follows the course's folder in the path of one of its files; empty for others. The folder is known by what lies in it: names
// like these may stand in anybody's path, and a build may hold objects of another checkout.
std::string below_course(const std::string& file) {
  const auto exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; };
  static constexpr char kCommon[] = "/common/";
  for (std::size_t at = file.find(kCommon); at != file.npos; at = file.find(kCommon, at + 1))
    if (exists(file.substr(0, at) + "/common/interpreter/interpreter.h") || !exists(file)) return file.substr(at + 1);
  return "";
}

bool find_plumbing(const std::string& file) {
  const auto lies_in = [](const std::string& path, std::string_view folder) {
    return path.starts_with(folder) && path.substr(folder.size()).starts_with('/');
  };
  static constexpr std::string_view kSystem = COURSE_SYSTEM_HEADERS;  // the compiler's folders and CUDA's, with ':' between
  for (std::size_t begin = 0, end = 0; begin < kSystem.size(); begin = end + 1) {
    end = std::min(kSystem.find(':', begin), kSystem.size());
    if (lies_in(file, kSystem.substr(begin, end - begin))) return true;
  }
  const std::string own = below_course(file);
  if (lies_in(own, "common/interpreter/tests")) return false;
  return lies_in(own, "common/interpreter") || lies_in(own, "common/device") || own == "common/gemm/activation.h" ||
         own == "common/gemm/divisor.h" || own == "common/gemm/matrix.h";
}

}  // namespace

bool is_plumbing(const std::string& file) {
  static std::mutex& of_cache = *new std::mutex;
  static std::map<std::string, bool>& cache = *new std::map<std::string, bool>;
  std::lock_guard lock(of_cache);
  const auto [known, is_new] = cache.try_emplace(file);
  if (is_new) known->second = find_plumbing(std::filesystem::path(file).lexically_normal().string());
  return known->second;
}

std::vector<Location> user_frames(Pc pc) {
  static std::map<Pc, std::vector<Location>>& cache = *new std::map<Pc, std::vector<Location>>;
  std::lock_guard lock(libdw_mutex);
  const auto found = cache.find(pc);
  if (found != cache.end()) return found->second;
  std::vector<Location> all;
  std::thread([&] { all = frames(pc); }).join();
  const auto first = std::find_if(all.begin(), all.end(), [](const Location& l) { return l.line > 0 && !is_plumbing(l.file); });
  if (first != all.end()) all.erase(all.begin(), first);
  return cache[pc] = all;
}

Location user_location(Pc pc) {
  std::vector<Location> all = user_frames(pc);
  if (all.empty()) return {};
#if !defined(__clang__) || __clang_major__ >= 17  // moved out of a loop, to just before it
  if (!all.front().line)
    if (std::vector<Location> after = beginning_of(pc); !after.empty()) all = std::move(after);
#endif
  Location innermost = all.front();
  if (all.size() > 1) {
    innermost.called_at = all[1].line;
    if (all[1].file != innermost.file) innermost.called_in = all[1].file;
  }
  return innermost;
}

bool same_expression(Pc a, Pc b) {
  const std::vector<Location> frames_a = user_frames(a);
  return !frames_a.empty() && frames_a == user_frames(b);
}

std::vector<Location> beginning_of(Pc pc, Pc end) {
  constexpr Pc kFar = 32;  // bytes; a call and the loads of its arguments
  for (Pc at = pc; at < std::min<Pc>(end, pc + kFar); ++at)
    if (std::vector<Location> places = user_frames(at); !places.empty() && places.front().line) return places;
  return {};
}

std::pair<Location, Location> where_calls_differ(Pc a, Pc b) {
  const std::vector<Location> frames_a = user_frames(a), frames_b = user_frames(b);
  auto x = frames_a.rbegin(), y = frames_b.rbegin();
  for (; x != frames_a.rend() && y != frames_b.rend(); ++x, ++y)
    if (!(*x == *y)) return {*x, *y};
  return {};
}

}  // namespace interpreter
