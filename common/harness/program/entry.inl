// The entry that all steps share: instantiates each of a step's tiles for each pair of element types. Included once per program,
// after the step's gemm.cuh, by a generated file that names the step.
//
// COURSE_FIRST_OF makes a short program, which compiles in a fraction of the time: the step's first tile alone, for that element
// type, with what the step is about as epilogue. Whoever edits a kernel and runs it waits for that, and for no more.
#include <sstream>
#include <type_traits>

#include "common/harness/program/step.h"
#include "common/harness/program/tile.h"

namespace harness {

struct Affine {
  float added = 1;
  GEMM_HOST_DEVICE float operator()(float x) const { return 2 * x + added; }
  GEMM_HOST_DEVICE Affine column(std::int64_t col) const { return {static_cast<float>(1 + col % 16)}; }
};

namespace {

// The epilogue is tested with one type, for it gets floats from all of them, and with the tiles that a step ships.
template <class First, class... Others>
First first_of(gemm::TypeList<First, Others...>);
template <class None = gemm::Identity>
None first_of(gemm::TypeList<>);  // of no activations
template <class In>
constexpr bool is_first_input = std::is_same_v<In, decltype(first_of(this_step_namespace::Inputs{}))>;

template <class Tile, class In, class Out, class Epilogue>
void run(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C) {
  this_step_namespace::gemm<Tile>(typed<const In>(A), typed<const In>(B), typed<Out>(C), Epilogue{});
}

template <class Tile, class In, class Activation>
void run_fused(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void*) {
  run<Tile, In, In, Activation>(A, B, C);
}
template <class Tile, class In, class Activation>
void run_biased(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void* bias) {
  const gemm::Biased<Activation, In> epilogue{Activation{}, static_cast<const In*>(bias), C.cols};
  this_step_namespace::gemm<Tile>(typed<const In>(A), typed<const In>(B), typed<In>(C), epilogue);
}

// Kernels take long to compile. So all tiles are built with what the step is about; with code for a bias, and with the other
// activations, which come with it, only those that `with_all` says.
template <class Tile, class In, bool with_all, class First, class... Others>
void add_fused(std::vector<Fused>& all, gemm::TypeList<First, Others...>) {
  all.push_back({kActivation<First>, false, run_fused<Tile, In, First>});
  if constexpr (with_all) {
    all.push_back({kActivation<First>, true, run_biased<Tile, In, First>});
    (all.push_back({kActivation<Others>, true, run_biased<Tile, In, Others>}), ...);
  }
}
template <class Tile, class In, bool with_all>
void add_fused(std::vector<Fused>&, gemm::TypeList<>) {}

#ifdef COURSE_KERNEL_VERSION
constexpr bool kIsTuned = true;  // its tiles are candidates, for all types
#else
constexpr bool kIsTuned = false;
#endif
// The rest of a step's tiles, for its first type alone where they are there to be compared.
template <class In>
constexpr bool has_more_tiles = is_first_input<In> || kIsTuned;
template <class... Types>
constexpr std::size_t size(gemm::TypeList<Types...>) {
  return sizeof...(Types);
}
#ifdef COURSE_FIRST_OF
constexpr bool kIsShort = true;
#else
constexpr bool kIsShort = false;
#endif
constexpr bool kIsFused = !std::is_same_v<this_step_namespace::Activations, gemm::TypeList<>>;

template <class Tile>
constexpr TileNumbers tile_numbers() {
  TileNumbers n;
  if constexpr (requires { Tile::kBlockM; }) n.block_m = Tile::kBlockM, n.block_n = Tile::kBlockN;
  // Its block loads slices along k together. A peer's tile says nothing of threads, and no model knows it.
  if constexpr (requires { Tile::kBlockK, Tile::kThreads; }) n = numbers_of<Tile>();
  return n;
}

template <class Tile, class In, class Out, bool is_first_tile = true, bool with_affine = is_first_tile>
Variant variant() {
  Variant v{tile_name<Tile>(), 1, 1, kDType<In>, kDType<Out>, nullptr, nullptr, tile_numbers<Tile>()};
  if constexpr (!(kIsShort && kIsFused)) v.gemm = run<Tile, In, Out, gemm::Identity>;
  // A tile that has slices along k is loaded by its block as a whole; without them, each thread loads for itself.
  if constexpr (requires { Tile::kBlockK; }) v.tile_m = Tile::kBlockM, v.tile_n = Tile::kBlockN;
  if constexpr (is_first_input<In> && std::is_same_v<In, Out>) {
    if constexpr (with_affine && !kIsFused) v.gemm_affine = run<Tile, In, Out, Affine>;
  }
  if constexpr (std::is_same_v<In, Out>)
    add_fused<Tile, In, is_first_tile && is_first_input<In>>(v.fused, this_step_namespace::Activations{});
  return v;
}

template <class Tile, class... Tiles>
constexpr bool is_first_of = std::is_same_v<Tile, decltype(first_of(gemm::TypeList<Tiles...>{}))>;

template <class In, class... Tiles, class... MoreTiles>
void add_variants(std::vector<Variant>& all, gemm::TypeList<Tiles...>, gemm::TypeList<MoreTiles...>) {
  (all.push_back(variant<Tiles, In, In>()), ...);
  if constexpr (!std::is_same_v<In, float> && !kIsFused) (all.push_back(variant<Tiles, In, float>()), ...);
  // The first candidate that is compiled for one layout gets the epilogue too: it hands it on to another tile.
  if constexpr (has_more_tiles<In>)
    (all.push_back(variant < MoreTiles, In, In, false, kIsTuned && is_first_of < MoreTiles, MoreTiles... >> ()), ...);
}

#ifdef COURSE_FIRST_OF
template <class In>
void add_first_variant(Step& step) {
  step.variants.push_back(variant<decltype(first_of(this_step_namespace::Tiles{})), In, In, false>());
  step.left_out = size(this_step_namespace::Tiles{}) - 1 + (has_more_tiles<In> ? size(this_step_namespace::MoreTiles{}) : 0);
}
#endif

template <class... Inputs>
void add_inputs(Step& step, gemm::TypeList<Inputs...>) {
#ifdef COURSE_FIRST_OF
  if constexpr ((std::is_same_v<Inputs, COURSE_FIRST_OF> || ...)) add_first_variant<COURSE_FIRST_OF>(step);
#else
  (add_variants<Inputs>(step.variants, this_step_namespace::Tiles{}, this_step_namespace::MoreTiles{}), ...);
#endif
}

}  // namespace

const Step& this_step() {
  static const Step step = [] {
    Step s{COURSE_STEP_NAME, {}};
    s.needs = {COURSE_STEP_NEEDS};
    std::istringstream architectures(COURSE_STEP_ARCHITECTURES);
    for (std::string each; architectures >> each;) s.architectures.push_back(each);
    add_inputs(s, this_step_namespace::Inputs{});
    s.activation = kActivation<decltype(first_of(this_step_namespace::Activations{}))>;
    s.is_short = kIsShort;
#ifdef COURSE_KERNEL_VERSION
    s.tuned = !kIsShort, s.kernel_version = COURSE_KERNEL_VERSION;  // with a single tile, there is nothing to choose from
#endif
    return s;
  }();
  return step;
}

}  // namespace harness
