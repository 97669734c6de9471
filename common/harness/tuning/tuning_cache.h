/// @file
/// What tuning found out, kept on disk: one text file for each problem.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/problem/problem.h"

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

/// What is known of a problem: its tiles by their names.
struct TunedProblem {
  TuningKey key;
  std::map<std::string, TuningEntry> tiles;
};

/// A folder of problems. Nothing that is wrong with it or in it stops a program: what cannot be read is not there, what cannot be
/// written is lost, both with a warning. Any number of processes may use a folder at the same time.
class TuningCache {
 public:
  /// Where results are kept unless somebody names a folder: COURSE_TUNING_CACHE, else gemm-course/tuning in XDG_CACHE_HOME, else in
  /// ~/.cache. Empty, which means nowhere, if none of these is set.
  static std::string default_folder();

  /// @param folder made when the first result is stored; empty: nothing is kept
  explicit TuningCache(std::string folder);

  /// The tiles that are known for a problem. None if there is no file of it, or it is damaged or of another version of this format.
  std::map<std::string, TuningEntry> find(const TuningKey& key);
  /// Adds tiles to those that are known, in place of older entries. The file is replaced as a whole or not at all; of two processes
  /// that do so at once without lock(), one may lose its tiles.
  void store(const TuningKey& key, const std::map<std::string, TuningEntry>& tiles);

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

  /// All problems whose files are not damaged.
  std::vector<TunedProblem> problems();
  /// Removes all files, damaged and unfinished ones too. @return of how many problems
  std::size_t clear();

 private:
  void warn(const std::string& kind, const std::string& text);
  void warn_of(const std::filesystem::path& file, const std::string& reason);
  std::optional<TunedProblem> load(const std::filesystem::path& path);
  void for_each_file(const std::function<void(const std::filesystem::path&)>& body);

  std::string folder_;
  std::vector<std::string> warnings_, kinds_;
};

}  // namespace harness
