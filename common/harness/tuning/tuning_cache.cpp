#include "common/harness/tuning/tuning_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <locale>
#include <optional>
#include <regex>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "common/harness/program/text.h"

namespace harness {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 3;
constexpr std::size_t kLargestFile = 1 << 18;  // bytes
constexpr std::chrono::minutes kAbandoned{10};
constexpr const char *kFinished = ".tuning", *kUnfinished = ".new";

std::string fnv1a(const std::string& text) {  // Fowler, Noll, Vo; against accidents, not against malice
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return formatted("%016llx", static_cast<unsigned long long>(hash));
}

// Names are quoted, whatever is in them; numbers are as in C, whatever the user's locale.
std::string line_of(const TuningKey& key) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << std::quoted(key.step) << ' ' << std::quoted(key.kernel_version) << ' ' << key.spec.m << ' ' << key.spec.n << ' '
      << key.spec.k << ' ' << name(key.spec.in) << ' ' << name(key.spec.out) << ' ' << key.spec.layout() << ' '
      << std::quoted(name(key.spec.epilogue)) << ' ' << std::quoted(key.gpu) << ' ' << key.multiprocessors << ' '
      << std::quoted(key.driver) << '\n';
  return out.str();
}

// A line for the version, one for the problem, one for each tile, and their hash.
std::string text_of(const TunedProblem& problem) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << "gemm-course-tuning " << kVersion << '\n' << line_of(problem.key) << std::setprecision(17);
  for (const auto& [tile, entry] : problem.tiles)
    out << std::quoted(tile) << ' ' << entry.seconds << ' ' << std::quoted(entry.pruned) << '\n';
  return out.str() + fnv1a(out.str()) + "\n";
}

// Nothing for what text_of() has not written: it was damaged, or changed by hand, or another version has written it.
std::optional<TunedProblem> problem_of(const std::string& text) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  std::string schema, version, type, type_of_c, layout, epilogue, tile;
  TunedProblem problem;
  TuningKey& key = problem.key;
  in >> schema >> version >> std::quoted(key.step) >> std::quoted(key.kernel_version) >> key.spec.m >> key.spec.n >> key.spec.k;
  in >> type >> type_of_c >> layout >> std::quoted(epilogue) >> std::quoted(key.gpu) >> key.multiprocessors >>
      std::quoted(key.driver);
  if (!dtype_named(type) || !dtype_named(type_of_c) || !epilogue_named(epilogue)) return std::nullopt;
  key.spec.in = *dtype_named(type), key.spec.out = *dtype_named(type_of_c), key.spec.epilogue = *epilogue_named(epilogue);
  key.spec.transpose_a = layout.starts_with('t'), key.spec.transpose_b = layout.ends_with('t');
  for (TuningEntry entry; in >> std::quoted(tile) >> entry.seconds >> std::quoted(entry.pruned);) problem.tiles[tile] = entry;
  return text == text_of(problem) ? std::optional(problem) : std::nullopt;
}

// Nothing when there is no such file. @throws std::exception when it is there but cannot be read
std::optional<std::string> read(const fs::path& path) {
  const fs::file_status status = fs::status(path);
  if (!fs::exists(status)) return std::nullopt;
  if (!fs::is_regular_file(status)) throw std::runtime_error("no file");  // reading somebody's pipe would hold us up
  if (fs::file_size(path) > kLargestFile) throw std::runtime_error("too large");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::system_error(errno, std::generic_category());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Under a name of this process's own, then renamed: others see the old file or the new one. It is not forced to the disk, because
// a file that a crash leaves half-written fails its checksum.
// @throws std::system_error
void write(const fs::path& path, const std::string& text) {
  const fs::path unfinished = path.string() + "." + std::to_string(getpid()) + kUnfinished;
  std::ofstream file(unfinished, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    const int error = errno;
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    throw std::system_error(error, std::generic_category());
  }
  fs::rename(unfinished, path);
}

// The step for who looks into the folder, and what tells problems apart.
fs::path path_of(const std::string& folder, const TuningKey& key) {
  const std::string step = std::regex_replace(key.step.substr(0, 60), std::regex("[^A-Za-z0-9]"), "-");
  return fs::path(folder) / (step + "-" + fnv1a(line_of(key)) + kFinished);
}
bool is_finished(const fs::path& path) { return path.extension() == kFinished; }

}  // namespace

std::string TuningCache::default_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string folder = variable("COURSE_TUNING_CACHE"); !folder.empty()) return folder;
  if (const std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/')) return cache + "/gemm-course/tuning";
  if (const std::string home = variable("HOME"); home.starts_with('/')) return home + "/.cache/gemm-course/tuning";
  return "";
}

TuningCache::TuningCache(std::string folder) : folder_(std::move(folder)) {
  if (folder_.empty())
    warn("nowhere", "there is no folder for tuning results: HOME is not set; set COURSE_TUNING_CACHE, or tune again each time");
}

void TuningCache::warn(const std::string& kind, const std::string& text) {
  if (std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end()) return;
  kinds_.push_back(kind);
  warnings_.push_back(text);
}

void TuningCache::warn_of(const fs::path& path, const std::string& reason) {
  warn("damaged", "the tuning results in " + path.string() + " are not usable (" + reason + "); those tiles are timed again");
}

std::optional<TunedProblem> TuningCache::load(const fs::path& path) {
  try {
    const std::optional<std::string> text = read(path);
    if (!text) return std::nullopt;
    if (std::optional<TunedProblem> problem = problem_of(*text)) return problem;
    warn_of(path, "damaged, or of another version");
  } catch (const std::exception& e) {
    warn_of(path, e.what());
  }
  return std::nullopt;
}

std::map<std::string, TuningEntry> TuningCache::find(const TuningKey& key) {
  if (folder_.empty()) return {};
  const fs::path path = path_of(folder_, key);
  const std::optional<TunedProblem> problem = load(path);
  if (!problem) return {};
  if (line_of(problem->key) == line_of(key)) return problem->tiles;
  warn_of(path, "of another problem");  // somebody may have moved files about
  return {};
}

void TuningCache::store(const TuningKey& key, const std::map<std::string, TuningEntry>& tiles) {
  if (folder_.empty() || tiles.empty()) return;
  TunedProblem problem{key, find(key)};
  for (const auto& [tile, entry] : tiles)
    if (!entry.pruned.empty() || (entry.seconds > 1e-12 && std::isfinite(entry.seconds)))
      problem.tiles[tile] = entry;
    else
      warn("no time", tile + " was timed as " + std::to_string(entry.seconds) + " s, which is not kept");
  try {
    const fs::path path = path_of(folder_, key);
    fs::create_directories(folder_);
    if (fs::is_directory(path)) fs::remove(path);
    write(path, text_of(problem));
    // What killed processes left behind, and earlier versions.
    for_each_file([](const fs::path& file) {
      std::error_code gone;
      const auto time = fs::last_write_time(file, gone);
      if (!gone && !is_finished(file) && fs::file_time_type::clock::now() - time > kAbandoned) fs::remove(file, gone);
    });
  } catch (const std::exception& e) {
    warn("unwritable", "tuning results cannot be kept in " + folder_ + " (" + e.what() +
                           "): they are found anew each time; make the folder yours, or name another one in COURSE_TUNING_CACHE");
  }
}

TuningCache::Lock::Lock(Lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
TuningCache::Lock::~Lock() {
  if (file_ >= 0) close(file_);  // which unlocks it, as does the end of the process, whatever ends it
}

TuningCache::Lock TuningCache::lock(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{20};
  if (folder_.empty()) return Lock(-1);
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  const int file = open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  Lock lock(file);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (std::chrono::steady_clock::now() > deadline) {
      warn("locked", "another process has been timing with " + folder_ + " for long; timing beside it, which may disturb both");
      break;
    }
    std::this_thread::sleep_for(kPause);
  }
  return lock;
}

// Finished or not, and those of earlier versions. Whatever else is there is not ours.
void TuningCache::for_each_file(const std::function<void(const fs::path&)>& body) {
  static const std::regex ours(R"([A-Za-z0-9-]*-[0-9a-f]{16}\.(tuning|json)(\.[0-9]+\.new)?)");  // see path_of() and write()
  if (folder_.empty()) return;
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator i(folder_, error), end; i != end && !error; i.increment(error))
    if (std::regex_match(i->path().filename().string(), ours)) paths.push_back(i->path());
  if (error && error != std::errc::no_such_file_or_directory)
    warn("unreadable", "cannot read the tuning results in " + folder_ + ": " + error.message());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) body(path);
}

std::vector<TunedProblem> TuningCache::problems() {
  std::vector<TunedProblem> problems;
  for_each_file([&](const fs::path& path) {
    if (!is_finished(path)) return;
    if (std::optional<TunedProblem> problem = load(path)) problems.push_back(std::move(*problem));
  });
  return problems;
}

std::size_t TuningCache::clear() {
  std::size_t removed = 0;
  for_each_file([&](const fs::path& path) {
    std::error_code error;
    if (fs::remove(path, error))
      removed += is_finished(path);
    else if (error)
      warn("unwritable", "cannot remove " + path.string() + ": " + error.message());
  });
  return removed;
}

}  // namespace harness
