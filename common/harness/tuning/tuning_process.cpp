// Tunes with invented times, for tuning_torture.py: tuning_process FOLDER [SCALE]. Exit code 1 when a pick is not the fastest tile.
//
// SCALE multiplies all times, as a colder or a hotter GPU does: times of different processes must not be mixed up.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "common/harness/tuning/tuning.h"

using namespace harness;

namespace {

constexpr int kTiles = 12, kShapes = 3;

// Another tile is best for each shape, and how much better is what a wrong scale would hide.
double true_seconds(int tile, int shape) { return 1e-3 * (1 + 0.02 * ((tile * 5 + shape * 7) % kTiles)); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: tuning_process FOLDER [SCALE]\n");
    return 2;
  }
  const double scale = argc == 3 ? std::atof(argv[2]) : 1;
  std::vector<Variant> tiles;
  for (int i = 0; i < kTiles; ++i)
    tiles.push_back({"tile " + std::to_string(i),
                     64,
                     64,
                     DType::kF16,
                     DType::kF16,
                     nullptr,
                     nullptr,
                     {64, 64, 64, 32, 32, 3, 128, 49152, true}});
  std::vector<const Variant*> variants;
  for (const Variant& v : tiles) variants.push_back(&v);

  int timed = 0, code = 0;
  for (int shape = 0; shape < kShapes; ++shape) {
    Tuner tuner;
    tuner.gpu = {"invented", 100, 2048, 32, 65536, 228 << 10, 227 << 10, 1e9, 1e15};
    tuner.time = [&](const std::vector<const Variant*>& group) {
      std::vector<double> seconds;
      for (const Variant* v : group) {
        seconds.push_back(scale * true_seconds(static_cast<int>(v - tiles.data()), shape));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that somebody is killed meanwhile
        ++timed;
      }
      return seconds;
    };
    const TuningKey key{"torture", "version", {512 + shape, 512, 512, DType::kF16, DType::kF16}, "invented", 100, "1.0"};
    TuningCache cache(argv[1]);
    const Tuning tuning = tune(variants, key, tuner, cache);
    for (const std::string& warning : cache.warnings()) std::fprintf(stderr, "%s\n", warning.c_str());
    int fastest = 0;
    for (int i = 1; i < kTiles; ++i)
      if (true_seconds(i, shape) < true_seconds(fastest, shape)) fastest = i;
    if (tuning.best() != &tiles[static_cast<std::size_t>(fastest)]) {
      std::printf("shape %d: picked %s, but tile %d is the fastest\n", shape,
                  tuning.best() ? tuning.best()->tile.c_str() : "nothing", fastest);
      code = 1;
    }
  }
  std::printf("timed %d\n", timed);
  return code;
}
