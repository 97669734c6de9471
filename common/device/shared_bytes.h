/// @file
/// How much dynamic shared memory a kernel has, and what lies there.
#pragma once

#include <cstddef>
#include <cstdint>

// Not in namespace device: a program that the interpreter runs may have something of that name, and sees this header.
namespace interpreter {

/// A part of shared memory; no name: nobody has said what lies there.
struct SharedPart {
  static constexpr std::size_t kRowBytes = 128;  ///< of a panel

  const char* name = nullptr;
  std::size_t bytes = 0;
  std::size_t panel_bytes = 0;  ///< of each panel that it consists of; 0: of none
};

/// The bytes of a block's dynamic shared memory and, where a kernel says so, their names: reports of the interpreter then speak of
/// "stage 2, tile of A" and not of a byte. On a GPU only the number counts. Parts lie one behind the other.
class SharedBytes {
 public:
  /// A byte's part.
  struct Place {
    const char* of = nullptr;  ///< "stage"; null: parts of this name are an array
    std::size_t number = 0;    ///< of the stage, or of the element
    bool is_numbered = false;  ///< false: there is only one
    SharedPart part;
    std::size_t begin = 0;
  };

  constexpr SharedBytes(std::size_t bytes = 0) : bytes_(bytes) {}      ///< of which nobody says what lies there
  constexpr std::size_t bytes() const { return bytes_; }               ///< of all parts
  constexpr operator int() const { return static_cast<int>(bytes_); }  ///< as tiles compare them

  /// And behind that an array of `count` parts, or one.
  constexpr SharedBytes with(SharedPart part, std::size_t count = 1) const { return each(nullptr, count, part); }
  /// And behind that `count` times a part, or two that lie together. What is counted is called `of`: a stage.
  constexpr SharedBytes each(const char* of, std::size_t count, SharedPart first, SharedPart second = {}) const {
    SharedBytes more = *this;
    more.groups_[more.group_count_++] = {of, count, first, second, bytes_};
    more.bytes_ += count * (first.bytes + second.bytes);
    return more;
  }
  /// And behind that two mbarriers for each stage: all that say that it is full, then all that say that it is empty.
  constexpr SharedBytes barriers(std::size_t stages) const {
    constexpr std::size_t kBytes = sizeof(std::uint64_t);
    return with({"barrier full", kBytes}, stages).with({"barrier empty", kBytes}, stages);
  }

  /// Which part has the byte at `offset`.
  constexpr Place place(std::size_t offset) const {
    for (const Group& group : groups_) {
      const std::size_t together = group.first.bytes + group.second.bytes;
      if (offset < group.begin || offset >= group.begin + group.count * together) continue;
      const std::size_t number = (offset - group.begin) / together, begin = group.begin + number * together;
      const bool is_second = offset >= begin + group.first.bytes;
      return {group.of, number, group.count > 1, is_second ? group.second : group.first, begin + is_second * group.first.bytes};
    }
    return {};
  }

 private:
  struct Group {
    const char* of = nullptr;
    std::size_t count = 0;
    SharedPart first, second;
    std::size_t begin = 0;
  };
  std::size_t bytes_;
  std::size_t group_count_ = 0;
  Group groups_[8] = {};
};

/// A ring of stages, each of two parts.
constexpr SharedBytes ring(std::size_t stages, SharedPart first, SharedPart second) {
  return SharedBytes().each("stage", stages, first, second);
}
/// Each a tile of A and one of B, and these of panels, if that has a size.
constexpr SharedBytes ring(std::size_t stages, std::size_t bytes_of_a, std::size_t bytes_of_b, std::size_t bytes_of_panel = 0) {
  return ring(stages, {"tile of A", bytes_of_a, bytes_of_panel}, {"tile of B", bytes_of_b, bytes_of_panel});
}

}  // namespace interpreter
