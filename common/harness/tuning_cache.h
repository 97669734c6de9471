/// @file
/// What tuning found out, kept on disk: one file for each tile and problem.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/problem.h"

namespace harness {

/// All that a time depends on, besides the tile. Times are hot: the matrices are in the L2 cache if they fit.
struct TuningKey {
  std::string step, kernel_version;  ///< the version is a hash of the kernel's sources, but for lists of tiles, and compiler
  Spec spec;                         ///< with its epilogue
  std::string gpu;
  int multiprocessors = 0;
  std::string driver;
};

/// What is known of one tile: a time, or why it cannot run.
struct TuningEntry {
  double seconds = 0;  ///< 0 if it was pruned
  std::string pruned;  ///< the reason
};

/// A folder of entries. Nothing that is wrong with it or in it stops a program: what cannot be read is not there, what cannot be
/// written is lost, both with a warning. Any number of processes may use a folder at the same time.
class TuningCache {
 public:
  /// Where entries are kept unless somebody names a folder: COURSE_TUNING_CACHE, else gemm-course/tuning in XDG_CACHE_HOME, else in
  /// ~/.cache. Empty, which means nowhere, if none of these is set.
  static std::string default_folder();

  /// @param folder made when the first entry is stored; empty: nothing is kept
  explicit TuningCache(std::string folder);

  /// The entry of `tile`; nothing if there is none, or it is damaged, or of another version of this format.
  std::optional<TuningEntry> find(const TuningKey& key, const std::string& tile);
  /// Keeps an entry, whole or not at all, in place of an older one.
  void store(const TuningKey& key, const std::string& tile, const TuningEntry& entry);

  /// Held by who is timing: two at once would disturb each other, and find the same twice.
  class Lock {
   public:
    /// @param file descriptor of a locked file, which it closes; negative: none
    explicit Lock(int file) : file_(file) {}
    Lock(Lock&& other) noexcept;
    ~Lock();

   private:
    int file_;
  };
  /// Waits for other processes that time with this folder, but not for longer than `patience`: one of them may have been stopped.
  /// Where no lock can be had, timing goes on without it.
  Lock lock(std::chrono::milliseconds patience = std::chrono::minutes(2));

  /// What went wrong so far, each kind of mishap once, in words.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// An entry with what it is for.
  struct Row {
    TuningKey key;
    std::string tile;
    TuningEntry entry;
  };
  /// All entries that are not damaged, of one key together.
  std::vector<Row> rows();
  /// Removes all entries, damaged and unfinished ones too, and the folders that are empty then. @return how many entries
  std::size_t clear();

 private:
  void warn(const std::string& kind, const std::string& text);
  void for_each_file(const std::function<void(const std::filesystem::path&)>& body);

  std::string folder_;
  std::vector<std::string> warnings_, kinds_;
};

}  // namespace harness
