/// @file
/// What the test of an exercise is written with: problems for the learner's function, and bounds for what its kernel does.
///
/// A test, exercises/NN_name/test.cpp, declares the function that gemm.cuh defines in namespace exercise, and defines
/// exercise::check(). The same check judges the learner's file, the solution, and all answers that are known to be wrong.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/exercise/profile.h"
#include "common/gemm/matrix.h"
#include "common/harness/problem/dtype.h"
#include "common/harness/problem/epilogue.h"
#include "common/interpreter/interpreter.h"

namespace exercise {

using gemm::Matrix;

/// Thrown by whatever finds that an answer is not right yet.
struct NotYet {
  std::string text;  ///< what happened, what was expected, where
};

/// What an exercise says of a report of the interpreter, which does not know of it: a sentence or two, or nothing.
using Meaning = std::function<std::string(const std::string& report)>;

/// Calls `call`. If it ends with a report, what that means stands below it.
template <class Call>
auto explained(const Meaning& meant, const Call& call) {
  try {
    return call();
  } catch (const std::runtime_error& error) {
    const std::string meaning = meant ? meant(error.what()) : "";
    if (meaning.empty()) throw;
    throw std::runtime_error(error.what() + ("\n" + meaning));
  }
}

/// What is multiplied: A is m x k, B is k x n, C is m x n.
struct Case {
  std::int64_t m = 0, n = 0, k = 0;
  std::string layout = "nn";  ///< of A, then of B: n is row-major, t column-major
  std::int64_t padding = 0;   ///< elements between the end of a row (or column) and the next one, of A, B and C
  harness::Epilogue epilogue = {};
  double scale = 1;  ///< the deviation of A's elements
  /// Of A and B, by row and column, where numbers that nobody can guess would not say which mistake it is.
  std::function<double(std::int64_t, std::int64_t)> a = {}, b = {};
  std::string what = {};                        ///< which these are, for messages: "A is all ones"
  std::string hint = {};                        ///< what to think about if the result is wrong, a sentence
  bool same_bits = false;                       ///< C has to be the same in every order of threads and blocks, bit by bit
  std::int64_t b_offset = 0, c_offset = 0;      ///< elements from an aligned address to B's, and C's, first one
  std::int64_t padding_b = -1, padding_c = -1;  ///< of B and of C, where they have one of their own
  bool again = false;                           ///< there is a second call, with other values at the same addresses
  std::uint64_t drawn = 0;                      ///< drawn at random, from this seed; 0: chosen. It is called in one order only
  /// On a GPU, of a problem that is timed: how many times as long as the solution an answer may take. More than this where the
  /// exercise leaves a choice that has its own speed.
  double bar = 1.15;
  std::string slow = {};  ///< what to think about if it takes longer, a sentence
  Meaning meant = {};     ///< what to think about if the interpreter reports an error
};

/// Shapes, strides and values at random: what a test draws is the same for the same seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed), state_(seed) {}  ///< the same seed draws the same
  std::uint64_t seed() const { return seed_; }                      ///< as it was given
  std::int64_t between(std::int64_t least, std::int64_t most);      ///< both included
  /// Of a length, at most `most`: each remainder of 8 counts as much as the others, and 1 as all of them.
  std::int64_t length(std::int64_t most);
  /// Elements behind the end of a row, so that all rows begin at multiples of `aligned` elements.
  std::int64_t padding(std::int64_t length, std::int64_t aligned = 1);
  /// A shape of whole tiles: 1 to `most` of them along m and n each, and the more along k the fewer these are; six at least
  /// where `most` is 1.
  Case tiles(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t most, const std::string& layout = "nn");
  /// Shapes that end in the second half of a tile, along m, n and k. The first has a whole tile or two before that along each of
  /// them, the others have more than a thousand elements along one, and a single tile along the others. All rows begin at sectors.
  /// @param before  stand in front of these
  std::vector<Case> ragged(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& layout = "nn",
                           std::vector<Case> before = {});

 private:
  std::uint64_t next();
  std::uint64_t seed_, state_;
};

/// What a task allows, for Coach::drawn().
struct Space {
  std::string layout = "nn";
  std::int64_t aligned_a = 1;  ///< rows of A (columns, where it is column-major) begin at multiples of so many elements
  std::int64_t aligned_b = 1;  ///< the same of B
  std::int64_t k = 1;          ///< k is a multiple of it
  bool empty_k = false;        ///< k may be 0
  std::string hint = {};       ///< as in Case
  std::int64_t b_offsets = 0;  ///< B may begin so many elements behind an aligned address; 0: up to 3 if its rows begin anywhere
  std::int64_t c_offsets = 7;  ///< the same of C
};

/// The operands of a Case in device memory.
struct Operands {
  std::int64_t m, n, k;
  Matrix<void> any_a, any_b, any_c;
  const void* any_bias;

  template <class T>
  Matrix<const T> A() const {
    return typed<const T>(any_a);
  }  ///< m x k
  template <class T>
  Matrix<const T> B() const {
    return typed<const T>(any_b);
  }  ///< k x n
  template <class T>
  Matrix<T> C() const {
    return typed<T>(any_c);
  }  ///< m x n, NaN before the call
  template <class T>
  const T* bias() const {
    return static_cast<const T*>(any_bias);
  }  ///< n elements, or null

 private:
  template <class T>
  static Matrix<T> typed(const Matrix<void>& m) {
    return {static_cast<T*>(m.data), m.rows, m.cols, m.row_stride, m.col_stride};
  }
};

/// A product for each head of an attention layer, all in one call: C_h = factor * A_h · B_h. All three are stored row by row, the
/// heads of a matrix side by side in its rows, as in (tokens, heads, size), or one below the other.
struct Heads {
  Case each;  ///< one head's product, of which shape, layout of B (t: B_h is stored transposed), padding, a, b, what and hint count
  std::int64_t count = 1;  ///< of heads
  bool a_beside = true, b_beside = true, c_beside = true;
  double factor = 1;
  std::string names = "ABC";  ///< a letter for each matrix
};

/// Something that the interpreter counts: an amount, in units of another one.
struct Figure {
  std::string name;  ///< "sectors per request of global loads"
  std::function<double(const interpreter::Counters&)> amount;
  std::function<double(const interpreter::Counters&)> unit;
  std::string row = {};  ///< of 'course profile', which shows bounds from above as its prediction; empty: none
};
/// @name Figures
/// @{
Figure sectors_per_load();          ///< 32-byte sectors for each request of global loads and cp.async
Figure sectors_per_store();         ///< the same of global stores
Figure wavefronts_of_ideal();       ///< of shared memory, cp.async and ldmatrix included: 1 is without bank conflicts
Figure wavefronts_of_ldmatrix();    ///< the same of ldmatrix alone
Figure loaded(double bytes);        ///< what global loads and cp.async ask for, sectors, as a multiple of `bytes`
Figure stored(double bytes);        ///< the same of global stores
Figure stores_asked(double bytes);  ///< bytes that threads ask for by global stores, as a multiple of `bytes`
Figure mma(double count);           ///< mma instructions, as a multiple of `count`
Figure shared_loads(double of);     ///< requests of loads from shared memory, ldmatrix included, as a multiple of `of`
Figure shared_stores(double of);    ///< requests of stores to shared memory, without cp.async, as a multiple of `of`
Figure shared_asked(double bytes);  ///< bytes that threads ask for by loads from shared memory, as a multiple of `bytes`
Figure global_loads(double of);     ///< requests of global loads, cp.async and atomics, as a multiple of `of`
Figure asked(double bytes);         ///< bytes that threads ask for by global loads, as a multiple of `bytes`
Figure load_sectors(double of);     ///< 32-byte sectors of the same, as a multiple of `of`
Figure barriers(double of);         ///< __syncthreads() of blocks, as a multiple of `of`
Figure atomics(double of);          ///< atomics of warps, in global and shared memory, as a multiple of `of`
Figure boxes(double of);            ///< loads by the copy engine, each an instruction of one thread, as a multiple of `of`
Figure wgmma(double of);            ///< wgmma of warpgroups, as a multiple of `of`
/// @}

/// How much was under way at the same time, in the order of threads in which that was most.
struct UnderWay {
  std::uint64_t copies = 0;     ///< loads by the copy engine, of one block
  std::uint64_t ahead = 0;      ///< cp.async of a thread that it has not waited for, when older ones of it were waited for
  std::uint64_t groups = 0;     ///< of a warp's wgmma
  std::uint64_t mbarriers = 0;  ///< that a block has initialised
  /// @name Of each time, in the first order of threads; see interpreter::EachUnderWay
  /// @{
  std::uint64_t fewest_copies = ~std::uint64_t{0};
  std::uint64_t lonely_products = 0;
  std::uint64_t bytes_at_loads = 0;
  std::uint64_t straight_stores = 0;
  std::uint64_t late_loads = 0;
  std::uint64_t fewest_registers = ~std::uint64_t{0};
  /// @}
};

/// How the threads of a call worked together, in the first order; what is counted of it stands in the interpreter's teamwork.h.
struct Teamwork {
  std::uint64_t block_meetings = 0;        ///< of all threads of a block: __syncthreads(), and named barrier 0 where all wait
  std::uint64_t cluster_meetings = 0;      ///< of a block with its cluster, once for each block; barriers() has both
  std::uint64_t named = 0;                 ///< named barriers that were complete, but for those above
  std::uint64_t named_of_all = 0;          ///< of `named`, at which all threads of the block waited
  std::uint64_t named_of_roles = 0;        ///< of `named`, where warps that load by the copy engine met those that use what comes
  std::uint64_t stored_again = 0;          ///< stores by the copy engine from where the block's store before came from
  std::uint64_t loaded_by_block = 0;       ///< bytes that the busiest block loads from global memory
  std::uint64_t loaded_by_warp = 0;        ///< the same of the busiest warp
  std::uint64_t shared_bytes_of_warp = 0;  ///< bytes that the busiest warp loads from shared memory
};

/// What a call of the learner's function did. Empty on a GPU, where nothing is counted and every bound holds.
class Counts {
 public:
  /// @param what the call was given, for messages
  Counts(std::string what, std::vector<interpreter::KernelProfile> launches)
      : what_(std::move(what)), launches_(std::move(launches)) {}
  void set(const UnderWay& most) { under_way_ = most; }  ///< in all orders
  void set(const Teamwork& all) { teamwork_ = all; }     ///< in the first one

  /// @param why what the learner should think about, a sentence  @throws NotYet if `figure` is above `bound`
  const Counts& at_most(const Figure& figure, double bound, std::string_view why) const {
    return bounded(figure, bound, true, why);
  }
  /// @throws NotYet if `figure` is below `bound`
  const Counts& at_least(const Figure& figure, double bound, std::string_view why) const {
    return bounded(figure, bound, false, why);
  }
  /// A number of the team's: at_most(&Teamwork::named, 4, ...).
  /// @throws NotYet if it is above `bound`
  const Counts& at_most(std::uint64_t Teamwork::*number, double bound, std::string_view why) const {
    return of_teamwork(number, bound, true, why);
  }
  /// @throws NotYet if it is below `bound`
  const Counts& at_least(std::uint64_t Teamwork::*number, double bound, std::string_view why) const {
    return of_teamwork(number, bound, false, why);
  }
  const Teamwork& teamwork() const { return teamwork_; }  ///< zeros on a GPU
  /// The launches, in order. @throws NotYet if there are not `count` of them
  const std::vector<interpreter::KernelProfile>& launches(std::size_t count, std::string_view why) const;
  const std::vector<interpreter::KernelProfile>& launches() const { return launches_; }  ///< in order
  /// @throws NotYet if all launches together have fewer than `count` blocks
  const Counts& at_least_blocks(std::uint64_t count, std::string_view why) const { return enough("blocks", count, why); }
  /// What the busiest block, or the busiest warp, multiplies. @param of "block" or "warp"  @throws NotYet if these are more mma
  /// instructions than `count`
  const Counts& at_most_mma_of(std::string_view of, std::uint64_t count, std::string_view why) const;
  /// @throws NotYet if all launches together have fewer than `count` warps
  const Counts& at_least_warps(std::uint64_t count, std::string_view why) const { return enough("warps", count, why); }
  /// A problem that is drawn runs in one order only, in which less may be under way.
  /// @throws NotYet if never so many loads by the copy engine were under way
  const Counts& at_least_copies_under_way(std::uint64_t count, std::string_view why) const {
    return at_a_time("loads by the copy engine", under_way_.copies, count, why);
  }
  /// @throws NotYet if no thread, when it had waited for copies by cp.async, ever had so many younger ones under way
  const Counts& at_least_copies_ahead(std::uint64_t count, std::string_view why) const;
  /// @throws NotYet if no warp ever had so many groups of wgmma under way
  const Counts& at_least_groups_under_way(std::uint64_t count, std::string_view why) const {
    return at_a_time("groups of wgmma", under_way_.groups, count, why);
  }
  /// Each time, not at the best one alone, and in whatever order it runs.
  /// @throws NotYet if a load by the copy engine begins when its thread knows by waits at mbarriers that all but fewer of the
  /// block's have landed, this one counted; of the first ones it knows nothing
  const Counts& at_least_copies_each_time(std::uint64_t count, std::string_view why) const;
  /// @throws NotYet if more often a warpgroup starts a wgmma when no other one of it is under way
  const Counts& at_most_lonely_products(std::uint64_t count, std::string_view why) const;
  /// @param of the bytes of a tile, for messages  @throws NotYet if, at the loads from shared memory, cp.async of fewer bytes of
  /// the block are under way on average, counting to each warp those of its own lanes. All warps load as often
  const Counts& at_least_bytes_at_loads(double bytes, double of, std::string_view why) const;
  /// @throws NotYet if warps store to shared memory more often when they have loaded from global memory, and not from shared memory
  /// since: they wait for what they have loaded
  const Counts& at_most_straight_stores(double of, std::string_view why) const;
  /// @throws NotYet if more often warps load from global memory when more than half of what they read from shared memory, between
  /// two stores there, has been read
  const Counts& at_most_late_loads(double of, std::string_view why) const;
  /// @throws NotYet if a block has initialised more mbarriers
  const Counts& at_most_mbarriers(std::uint64_t count, std::string_view why) const;
  /// @throws NotYet if a thread starts a wgmma that has not got so many registers by setmaxnreg
  const Counts& at_least_registers(std::uint64_t count, std::string_view why) const;
  interpreter::Counters total() const;  ///< of all launches

 private:
  const Counts& bounded(const Figure& figure, double bound, bool from_above, std::string_view why) const;
  const Counts& enough(std::string_view of, std::uint64_t count, std::string_view why) const;
  const Counts& at_a_time(std::string_view of, std::uint64_t most, std::uint64_t count, std::string_view why) const;
  const Counts& of_teamwork(std::uint64_t Teamwork::*number, double bound, bool from_above, std::string_view why) const;
  std::string lines_of(const Figure& figure, double bound) const;
  NotYet not_yet(const std::string& what, std::string_view why) const;
  std::string what_;
  std::vector<interpreter::KernelProfile> launches_;
  UnderWay under_way_;
  Teamwork teamwork_;
};

/// How many of the tensor core's pieces a product has, those at its edges included.
double pieces(const Case& c);
/// "64 x 64 x 64 are 4 x 8 x 4 pieces of 16 x 8 x 16. "
std::string are_pieces(const Case& c);
/// The case with half of A's pieces full of zeros, and with half of B's: for who would leave them out.
std::array<Case, 2> with_zeros(const Case& c);
/// Tiles of m x n x k, those at the edges included.
double tiles(const Case& c, std::int64_t m, std::int64_t n, std::int64_t k);
/// Bytes of the sectors of A and B that blocks load, each of m x n elements of C, if each loads its rows of A and columns of B
/// once. All rows begin at sectors.
double tile_bytes(const Case& c, std::int64_t m, std::int64_t n, harness::DType in);
/// Bytes of the sectors of `rows` rows of `length` elements, which begin at sectors.
double sector_bytes(std::int64_t rows, std::int64_t length, harness::DType type);

class Posed;

/// Calls the learner's function.
using Function = std::function<void(const Operands&)>;

/// A problem of which the time counts, too.
struct Timed {
  Subject subject;
  double bar;
  std::string slow;  ///< as in Case
  bool is_fused;     ///< whether C is more than a product
  std::function<std::unique_ptr<Posed>()> pose;
  Function function;
};

/// Judges one file.
class Coach {
 public:
  Coach() = default;
  /// @param only_asks whether nothing is called and judged: then the test only says what its problems are
  /// @param seed of what is drawn
  explicit Coach(bool only_asks, std::uint64_t seed = 1) : only_asks_(only_asks), draw_(seed) {}

  /// Where a failure from now on sends its reader: "steps/01_naive/README.md".
  void lesson(std::string path) { lesson_ = std::move(path); }
  const std::string& lesson() const { return lesson_; }  ///< as it was set
  Draw& draw() const { return draw_; }                   ///< the same for all that is drawn
  /// Shapes of which nobody knows before what they are: small ones, and for each of m, n and k one that is long.
  std::vector<Case> drawn(const Space& space) const;

  /// Calls `run`, which calls the learner's function, and compares C with the right result; on the interpreter in three orders of
  /// threads and blocks, with every check on. What stores C must be kernels of the learner's own that read A and B.
  /// @return what the call in the first order did  @throws NotYet
  Counts multiply(const Case& c, harness::DType in, harness::DType out, const Function& run) const;
  /// The same of the usual function.
  template <class In, class Out>
  Counts multiply(const Case& c, void (*gemm)(Matrix<const In>, Matrix<const In>, Matrix<Out>)) const {
    return multiply(c, harness::kDType<In>, harness::kDType<Out>, usual<In, Out>(gemm));
  }
  /// multiply() of the shape that the exercise is about, where it can be run: on a GPU. There it is timed in the end, against the
  /// solution. On the interpreter it would take minutes, so nothing happens; a small shape with the same number of waves, or the
  /// same remainder, stands for it.
  void multiply_on_gpu(const Case& c, harness::DType in, harness::DType out, const Function& run) const;
  /// The same of the usual function.
  template <class In, class Out>
  void multiply_on_gpu(const Case& c, void (*gemm)(Matrix<const In>, Matrix<const In>, Matrix<Out>)) const {
    multiply_on_gpu(c, harness::kDType<In>, harness::kDType<Out>, usual<In, Out>(gemm));
  }
  /// The same for heads. Operands are the whole matrices as they are stored: a transposed B has n rows, or n below each other.
  Counts multiply_heads(const Heads& h, harness::DType in, harness::DType out, const Function& run) const;
  /// The same of a function that takes the whole matrices.
  template <class In, class Out>
  Counts multiply_heads(const Heads& h, void (*gemm)(Matrix<const In>, Matrix<const In>, Matrix<Out>)) const {
    return multiply_heads(h, harness::kDType<In>, harness::kDType<Out>, usual<In, Out>(gemm));
  }
  /// As multiply_on_gpu().
  void multiply_heads_on_gpu(const Heads& h, harness::DType in, harness::DType out, const Function& run) const;
  /// The same of a function that takes the whole matrices.
  template <class In, class Out>
  void multiply_heads_on_gpu(const Heads& h, void (*gemm)(Matrix<const In>, Matrix<const In>, Matrix<Out>)) const {
    multiply_heads_on_gpu(h, harness::kDType<In>, harness::kDType<Out>, usual<In, Out>(gemm));
  }
  /// On the interpreter, a problem whose rows (or columns) lie gigabytes apart: an offset of 32 bits does not reach them. It has as
  /// few of them as the task allows, three for example. @tparam Problem Case or Heads
  template <class Problem>
  void multiply_far_rows(const Problem& p, harness::DType in, harness::DType out, const Function& run) const;
  /// The same of the usual function, which takes the whole matrices of heads.
  template <class In, class Out, class Problem>
  void multiply_far_rows(const Problem& p, void (*gemm)(Matrix<const In>, Matrix<const In>, Matrix<Out>)) const {
    multiply_far_rows(p, harness::kDType<In>, harness::kDType<Out>, usual<In, Out>(gemm));
  }
  /// C has to come from the tensor core: calls `run` once more, on a machine whose mma add nothing, and where C is float and
  /// nothing is fused, on one whose mma.sync add 1 to each sum. @tparam Problem Case or Heads
  /// @throws NotYet
  template <class Problem>
  void require_tensor_core(const Problem& p, harness::DType in, harness::DType out, const Function& run) const;
  /// The same of the usual function, which takes the whole matrices of heads.
  template <class In, class Out, class Problem>
  void require_tensor_core(const Problem& p, void (*gemm)(Matrix<const In>, Matrix<const In>, Matrix<Out>)) const {
    require_tensor_core(p, harness::kDType<In>, harness::kDType<Out>, usual<In, Out>(gemm));
  }
  /// Calls `body`, in the same orders and under the same checks; body itself throws NotYet for a wrong result.
  Counts run(const std::string& what, const std::function<void()>& body) const;
  /// @throws NotYet with `text` unless `holds`
  void require(bool holds, const std::string& text) const;

  const std::vector<Subject>& subjects() const { return subjects_; }  ///< problems for both machines, in order
  const std::vector<Timed>& timed() const { return timed_; }          ///< problems for a GPU, in order

 private:
  template <class In, class Out>
  static Function usual(void (*gemm)(Matrix<const In>, Matrix<const In>, Matrix<Out>)) {
    return [gemm](const Operands& o) { gemm(o.A<In>(), o.B<In>(), o.C<Out>()); };
  }
  Counts judge(const Subject& subject, const Case& c, const std::function<std::unique_ptr<Posed>()>& pose,
               const Function& run) const;

  std::string lesson_;
  bool only_asks_ = false;
  mutable Draw draw_{1};
  // What the test has asked for so far; tests hand the coach on as one that they do not change.
  mutable std::vector<Subject> subjects_;
  mutable std::vector<Timed> timed_;
};

/// Defined by each exercise's test. @throws NotYet
void check(Coach& coach);

}  // namespace exercise

/// The course's answers, on a GPU linked beside the file that is judged; see solution_test.cpp.
namespace solution {

/// The exercise's test, of the solution's functions.
void check(exercise::Coach& coach);

}  // namespace solution
