/// @file
/// A thread's second world, and what is compared of the two; see two_worlds.cpp.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/language/language.h"

namespace interpreter {

class Reporter;

/// What others can see of a thread. kLook: a volatile load; kCopy, kWait: of cp.async.
enum class WorldEvent : std::uint8_t { kStore, kLook, kAtomic, kCopy, kWait, kCollective, kBarrier, kFence, kSleep, kExit };

/// An event with what must be the same in both worlds of a thread.
struct WorldStep {
  WorldEvent event = WorldEvent::kExit;
  const void* address = nullptr;
  unsigned size = 0;
  std::uint64_t detail = 0;  ///< mask, predicate, source: whatever else there is
  Combine combine = nullptr;
  const char* name = nullptr;
  void* argument = nullptr;  ///< of a collective; not compared

  bool is_like(const WorldStep& other) const {
    return event == other.event && address == other.address && size == other.size && detail == other.detail &&
           combine == other.combine;
  }
};
/// The step as a part of a sentence on the thread.
std::string describe(const WorldStep& step, const Reporter& reporter);

/// A thread as it would be if the shuffles from lanes that are not there, and memory that nothing has written, had given other
/// values.
class OtherWorld {
 public:
  boost::context::detail::fcontext_t context = nullptr;
  std::vector<char> stack;  ///< from the context on
  WorldStep step;           ///< where it stands
  bool ended = false;
  const char* use = nullptr;  ///< if it has ended: how the undefined value was used, or null
  struct Origin {             ///< of the undefined value: a shuffle, or a read of shared memory
    const char* name = nullptr;
    Site site;
    unsigned lane = 0, source = 0, mask = 0;
    struct Read {
      std::uintptr_t address = 0;
      unsigned size = 0, thread = 0;
      Pc pc = 0;
    } read;  ///< address 0: none
    bool is_read() const { return read.address != 0; }
    bool is_known() const { return name || is_read(); }
  } origin;

  /// It goes on from an event to the next one, with `stack` at its place. The first world's memory is kept.
  void begin_run();
  /// It stands at an event. What it has stored is taken back.
  void end_run(const char* stack_top);
  /// It passes a basic block. @return whether it has passed too many since the last event to go on
  bool is_lost();

  /// It is about to read `size` bytes, of which those of `unwritten` (a bit each) have another value in this world: with another
  /// `number` another one. @param poison what unwritten bytes hold
  void put_garbage(void* p, unsigned size, std::uint32_t unwritten, char poison, unsigned number);
  /// It is about to look at memory.
  void note_look(const void* p, unsigned size);
  /// Whether other threads have changed memory that it has looked at since the last event.
  bool has_seen_others() const;

  /// Both worlds are about to store at `p`.
  void note_store(const void* p, unsigned size);
  void forget_stores() { stores_.clear(); }
  /// Where the two have stored different things lately; null if they have not.
  const void* different_store() const;

  /// The first world's atomic at the memory with `old` has taken place.
  void note_atomic(const void* old, unsigned size, bool (*update)(void*, const void*), const void* context);
  /// The same atomic in this world. @return whether it leaves the same behind
  bool repeat_atomic(void* old, unsigned size, bool (*update)(void*, const void*), const void* context) const;

 private:
  struct Store {
    void* address;
    unsigned size;
    unsigned char first[16], other[16];  // what lay there when this world went on, and what it left there
  };
  struct Look {
    const void* address;
    unsigned size;
    std::uint32_t content;
  };
  struct Garbage {
    unsigned char* address;
    unsigned char first, other;  // what lies there in the two worlds
  };
  bool has_stored_lately(const void* p, unsigned size) const;

  std::vector<Store> stores_;                      // lately
  std::vector<Garbage> garbage_;                   // in memory while this world runs, and since the last event
  std::vector<Look> looks_;                        // at the last event, and plain ones since
  unsigned char atomic_old_[16], atomic_new_[16];  // of the first world's last atomic
  unsigned blocks_ = 0;                            // basic blocks since the last event
};

}  // namespace interpreter
