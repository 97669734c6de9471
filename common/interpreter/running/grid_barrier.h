/// @file
/// The barrier of a cooperative launch, this_grid().sync().
#pragma once

namespace interpreter {

/// Where blocks meet: a word of device memory, as on the GPU.
class GridBarrier {
 public:
  /// Makes it for the launch that follows, if that is a cooperative one.
  class ForOneLaunch {
   public:
    explicit ForOneLaunch(bool cooperative);
    ~ForOneLaunch();
    ForOneLaunch(const ForOneLaunch&) = delete;
  };
};

/// The word of the running launch; null if that is not cooperative.
unsigned* grid_barrier_word() noexcept;

}  // namespace interpreter
