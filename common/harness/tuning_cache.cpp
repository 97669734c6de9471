#include "common/harness/tuning_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

namespace harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kLargestEntry = 16384;  // bytes
constexpr std::chrono::minutes kAbandoned{10};
constexpr const char *kSuffix = ".jsonl", *kUnfinished = ".new", *kLock = "lock";

std::uint64_t fnv1a(const std::string& text) {  // Fowler, Noll, Vo; against accidents, not against malice
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}
std::string hexadecimal(std::uint64_t x) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(x));
  return text;
}

// For names of files: letters, digits and dashes, and two different texts stay different.
std::string file_name(const std::string& text) {
  std::string name;
  for (const char c : text.substr(0, 60)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name + "-" + hexadecimal(fnv1a(text));
}

// Whether file_name() may have made it: it ends with a dash and a hash.
bool is_file_name(const std::string& text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() > 16 && text[text.size() - 17] == '-' && std::all_of(text.end() - 16, text.end(), is_digit);
}

ordered_json json(const TuningKey& key) {
  return {{"step", key.step},
          {"kernel_version", key.kernel_version},
          {"m", key.spec.m},
          {"n", key.spec.n},
          {"k", key.spec.k},
          {"in", name(key.spec.in)},
          {"out", name(key.spec.out)},
          {"layout", key.spec.layout()},
          {"epilogue", name(key.spec.epilogue)},
          {"gpu", key.gpu},
          {"multiprocessors", key.multiprocessors},
          {"driver", key.driver}};
}

// An entry is two lines of JSON. The first holds a checksum of the second, so that nothing is read out of a damaged one.
std::string header(const std::string& content) {
  return ordered_json{{"schema", "gemm-course-tuning"}, {"version", kVersion}, {"fnv1a", hexadecimal(fnv1a(content))}}.dump();
}

std::string text_of(const TuningKey& key, const std::string& tile, const TuningEntry& entry) {
  ordered_json j = {{"key", json(key)}, {"tile", tile}};
  if (entry.pruned.empty())
    j["seconds"] = entry.seconds;
  else
    j["pruned"] = entry.pruned;
  // What a driver or a user names may be no UTF-8.
  const std::string content = j.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return header(content) + "\n" + content + "\n";
}

// @throws anything for what text_of() does not write
TuningCache::Row row_of(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos || text.back() != '\n' || end + 1 == text.size()) throw std::runtime_error("incomplete");
  const std::string content = text.substr(end + 1, text.size() - end - 2);
  if (text.substr(0, end) != header(content)) throw std::runtime_error("damaged, or of another version");
  const ordered_json j = ordered_json::parse(content), &k = j.at("key");
  TuningCache::Row row;
  for (const char* extent : {"m", "n", "k"})
    if (!k.at(extent).is_number_unsigned()) throw std::runtime_error("without a shape");
  const std::string layout = k.at("layout"), in = k.at("in"), out = k.at("out"), epilogue = k.at("epilogue");
  row.key = {k.at("step"),
             k.at("kernel_version"),
             {k.at("m"), k.at("n"), k.at("k"), dtype_named(in).value(), dtype_named(out).value(), layout.at(0) == 't',
              layout.at(1) == 't', epilogue_named(epilogue).value()},
             k.at("gpu"),
             k.at("multiprocessors"),
             k.at("driver")};
  row.tile = j.at("tile");
  if (j.contains("pruned"))
    row.entry.pruned = j.at("pruned");
  else
    row.entry.seconds = j.at("seconds");
  if (row.entry.pruned.empty() && !(row.entry.seconds > 1e-12 && std::isfinite(row.entry.seconds)))
    throw std::runtime_error("without a time");
  return row;
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Nothing when there is no such file. @throws std::system_error when it is there but cannot be read
std::optional<std::string> read(const std::string& path) {
  // Not blocking, or somebody's pipe of that name would hold us up.
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw std::system_error(errno, std::generic_category());
  }
  std::string text(kLargestEntry + 1, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::read(file.descriptor(), text.data() + done, text.size() - done);
    if (n == 0) break;
    if (n > 0) done += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category());
  }
  text.resize(done);
  return text;
}

// Under a name that nobody else has, then renamed: others see the old entry or the new one. It is not forced to the disk, because
// an entry that a crash leaves half-written fails its checksum.
// @throws std::system_error
void write(const std::string& path, const std::string& text) {
  static std::random_device random;
  const std::string unfinished = path + "." + std::to_string(getpid()) + "." + std::to_string(random()) + kUnfinished;
  const auto fail = [&](int error) {
    unlink(unfinished.c_str());
    throw std::system_error(error, std::generic_category());
  };
  {
    const File file(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.is_open()) throw std::system_error(errno, std::generic_category());
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(file.descriptor(), text.data() + done, text.size() - done);
      if (n > 0) done += static_cast<std::size_t>(n);
      if (n < 0 && errno != EINTR) fail(errno);
    }
  }
  if (rename(unfinished.c_str(), path.c_str()) != 0) fail(errno);
}

std::string folder_of(const std::string& folder, const TuningKey& key) {
  return folder + "/" + file_name(key.step) + "/" +
         file_name(json(key).dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}
std::string path_of(const std::string& folder, const TuningKey& key, const std::string& tile) {
  return folder_of(folder, key) + "/" + file_name(tile) + kSuffix;
}

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

std::optional<TuningEntry> TuningCache::find(const TuningKey& key, const std::string& tile) {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(folder_, key, tile);
  try {
    const std::optional<std::string> text = read(path);
    if (!text) return std::nullopt;
    const Row row = row_of(*text);
    // Somebody may have moved files about.
    if (row.tile != tile || json(row.key) != json(key)) throw std::runtime_error("of another problem");
    return row.entry;
  } catch (const std::exception& e) {
    warn("damaged", "the tuning result " + path + " is not usable (" + e.what() + "); that tile is timed again");
    return std::nullopt;
  }
}

void TuningCache::store(const TuningKey& key, const std::string& tile, const TuningEntry& entry) {
  if (folder_.empty()) return;
  const std::string path = path_of(folder_, key, tile);
  try {
    const fs::path folder = folder_of(folder_, key);
    if (fs::create_directories(folder); fs::is_directory(path)) fs::remove(path);
    write(path, text_of(key, tile, entry));
    // What killed processes left behind.
    for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
      std::error_code gone;
      const auto time = file.last_write_time(gone);
      if (!gone && file.path().extension() == kUnfinished && fs::file_time_type::clock::now() - time > kAbandoned)
        fs::remove(file.path(), gone);
    }
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
  const int file = open((folder_ + "/" + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
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

// Finished or not: two folders down, with names that we give. Whatever else is there is not ours, nor is what a link leads to.
void TuningCache::for_each_file(const std::function<void(const fs::path&)>& body) {
  const auto entries = [&](const fs::path& folder) {
    std::vector<fs::path> paths;
    std::error_code error;
    for (fs::directory_iterator i(folder, error), end; i != end && !error; i.increment(error)) paths.push_back(i->path());
    if (error && error != std::errc::no_such_file_or_directory)
      warn("unreadable", "cannot read the tuning results in " + folder.string() + ": " + error.message());
    std::sort(paths.begin(), paths.end());
    return paths;
  };
  const auto folders = [&](const fs::path& folder) {
    std::vector<fs::path> ours = entries(folder);
    std::erase_if(ours, [](const fs::path& path) {
      std::error_code ignored;
      return !is_file_name(path.filename()) || !fs::is_directory(fs::symlink_status(path, ignored));
    });
    return ours;
  };
  if (folder_.empty()) return;
  for (const fs::path& step : folders(folder_))
    for (const fs::path& key : folders(step))
      for (const fs::path& file : entries(key)) {
        const std::string name = file.filename(), suffix = name.substr(std::min(name.find('.'), name.size()));
        const bool is_ours = suffix == kSuffix || (suffix.starts_with(kSuffix) && suffix.ends_with(kUnfinished));
        if (is_ours && is_file_name(name.substr(0, name.size() - suffix.size()))) body(file);
      }
}

std::vector<TuningCache::Row> TuningCache::rows() {
  std::vector<Row> rows;
  for_each_file([&](const fs::path& path) {
    if (!path.string().ends_with(kSuffix)) return;
    try {
      if (const std::optional<std::string> text = read(path)) rows.push_back(row_of(*text));
    } catch (const std::exception& e) {
      warn("damaged", "the tuning result " + path.string() + " is not usable (" + e.what() + ")");
    }
  });
  return rows;
}

std::size_t TuningCache::clear() {
  std::size_t removed = 0;
  for_each_file([&](const fs::path& path) {
    std::error_code error;
    if (fs::remove(path, error)) {
      removed += path.string().ends_with(kSuffix);
    } else if (error) {
      warn("unwritable", "cannot remove " + path.string() + ": " + error.message());
      return;
    }
    fs::remove(path.parent_path(), error);  // if it is empty now
    fs::remove(path.parent_path().parent_path(), error);
  });
  return removed;
}

}  // namespace harness
