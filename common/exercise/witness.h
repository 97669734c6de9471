/// @file
/// The answer in one process, the verdict in another. Both run the exercise's test. What the test does with the answer is done in
/// the answer's process, the witness, which says what has come of it; the process of the judge, in which nothing of the answer is,
/// hears it. What a test calls, and what it reads of device memory, goes through here: a judge that misses it has another C.
///
/// A witness is not believed more than it must be: it can say anything, in any order, and end at any time.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "common/interpreter/interpreter.h"

namespace exercise {

/// Begins to judge: starts PROGRAM with `file` and `seed`, as the witness.
void call_witness(const std::string& program, const std::string& file, const std::string& seed);
/// Ends the witness, if there is one: nothing of the answer runs any more.
void dismiss_witness();
/// This process is the witness.
void become_witness();
/// It has said all.
[[noreturn]] void end_testimony();
bool is_witness();  ///< whether another process judges what happens here
bool is_judge();    ///< whether what is judged happens in another process

/// What seen() consists of.
namespace witness {
/// @cond

// In the witness: says so many bytes. In the judge: hears them; where they do not come, it ends as the witness has ended.
void say_bytes(const void* data, std::size_t bytes);
void hear_bytes(void* data, std::size_t bytes);
void meet();  // In the witness: waits until the judge has used all that was said, and wants more.

template <class T>
void say(const T& x) {
  static_assert(std::is_trivially_copyable_v<T>);
  say_bytes(&x, sizeof x);
}
template <class T>
void hear(T& x) {
  static_assert(std::is_trivially_copyable_v<T>);
  hear_bytes(&x, sizeof x);
}
void hear(bool& x);
void say(const std::string& text);
void hear(std::string& text);
void say(const interpreter::LineProfile& line);
void hear(interpreter::LineProfile& line);
void say(const interpreter::KernelProfile& launch);
void hear(interpreter::KernelProfile& launch);

template <class T>
void say(const std::vector<T>& all) {
  say(std::uint64_t{all.size()});
  if constexpr (std::is_trivially_copyable_v<T>)
    say_bytes(all.data(), all.size() * sizeof(T));
  else
    for (const T& each : all) say(each);
}
template <class T>
void hear(std::vector<T>& all) {
  std::uint64_t count = 0;
  hear(count);
  constexpr std::uint64_t kAtOnce = 4096;  // who says a large count, and nothing more, gets no memory for it
  while (all.size() < count) {
    const std::size_t from = all.size(), more = static_cast<std::size_t>(count - from < kAtOnce ? count - from : kAtOnce);
    all.resize(from + more);
    if constexpr (std::is_trivially_copyable_v<T>)
      hear_bytes(all.data() + from, more * sizeof(T));
    else
      for (std::size_t i = from; i < all.size(); ++i) hear(all[i]);
  }
}

void say_thrown(std::exception_ptr what);
void say_returned();
void hear_end();  // of what the witness has called: returns, or throws the like of what was thrown there

/// While it exists, what the witness does is a part of what it sees already.
class Looking {
 public:
  Looking();
  Looking(const Looking&) = delete;
  ~Looking();
};
bool is_looking();

/// @endcond
}  // namespace witness

/// What `look` returns, or throws. It is called in the witness; where there is none, here.
template <class Look>
auto seen(const Look& look) {
  using Result = decltype(look());
  if (is_judge()) {
    witness::hear_end();
    if constexpr (std::is_void_v<Result>) {
      return;
    } else {
      Result result{};
      witness::hear(result);
      return result;
    }
  }
  if (!is_witness() || witness::is_looking()) return look();
  const witness::Looking looking;
  try {
    if constexpr (std::is_void_v<Result>) {
      look();
      witness::say_returned();
    } else {
      Result result = look();
      witness::say_returned();
      witness::say(result);
      return result;
    }
  } catch (...) {
    witness::say_thrown(std::current_exception());
    throw;
  }
}

/// seen() of what calls the answer. Before that, the judge has come as far: an answer that is wrong runs no longer than it must.
template <class Call>
auto asked(const Call& call) {
  witness::meet();
  return seen(call);
}

/// A function of the answer that a test calls by itself, and often: Asked key(exercise::key).
template <class Result, class... Arguments>
class Asked {
 public:
  /// @param function of the answer
  constexpr explicit Asked(Result (*function)(Arguments...)) : function_(function) {}
  /// What it returns, or throws, as seen() has it.
  Result operator()(Arguments... arguments) const {
    return seen([&]() -> Result { return function_(arguments...); });
  }

 private:
  Result (*function_)(Arguments...);
};

}  // namespace exercise
