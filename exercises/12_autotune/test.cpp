#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

// As in gemm.cuh.
struct Tile {
  int block_m, block_n, block_k, warp_m, warp_n, num_stages;
};
struct Gpu {
  int sms, threads_per_sm, blocks_per_sm, registers_per_sm, shared_bytes_per_sm, shared_bytes_per_block;
};
struct Problem {
  std::int64_t m, n, k;
  std::string type, layout, gpu, when;
};
bool is_legal(const Tile& t, const Gpu& gpu);
int blocks_per_sm(const Tile& t, const Gpu& gpu);
std::int64_t blocks_of_busiest_sm(const Tile& t, std::int64_t m, std::int64_t n, const Gpu& gpu);
std::string key(const Problem& p);
Tile best_tile(std::int64_t m, std::int64_t n, std::int64_t k, const Gpu& gpu);
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

namespace {

const Asked is_legal(exercise::is_legal);
const Asked blocks_per_sm(exercise::blocks_per_sm);
const Asked blocks_of_busiest_sm(exercise::blocks_of_busiest_sm);
const Asked key(exercise::key);
const Asked best_tile(exercise::best_tile);

struct Named {
  std::string name;
  Gpu gpu;
};
const std::vector<Named> kGpus = {
    {"an H200", {132, 2048, 32, 65536, 233472, 232448}},
    {"an RTX 4090", {128, 1536, 24, 65536, 102400, 101376}},
    {"a GPU with 98,304 bytes of shared memory for a block, 196,608 an SM", {7, 2048, 16, 65536, 196608, 98304}},
    {"a GPU with 1,024 threads and many registers an SM", {10, 1024, 32, 1 << 20, 1 << 20, 1 << 18}}};
const std::vector<Tile> kLegal = {{256, 128, 64, 64, 64, 3}, {192, 128, 64, 48, 64, 3}, {160, 128, 64, 80, 32, 3},
                                  {128, 128, 64, 64, 64, 3}, {128, 128, 64, 64, 32, 4}, {128, 64, 128, 64, 32, 3},
                                  {64, 64, 128, 32, 32, 4},  {32, 32, 64, 16, 16, 6},   {128, 128, 32, 16, 32, 2},
                                  {16, 16, 32, 16, 16, 1},   {96, 64, 32, 48, 32, 2},   {256, 256, 64, 64, 64, 3}};

std::string text(const Tile& t) {
  return std::to_string(t.block_m) + "x" + std::to_string(t.block_n) + "x" + std::to_string(t.block_k) + " warp " +
         std::to_string(t.warp_m) + "x" + std::to_string(t.warp_n) + " s" + std::to_string(t.num_stages);
}
int threads(const Tile& t) { return 32 * (t.block_m / t.warp_m) * (t.block_n / t.warp_n); }
int shared(const Tile& t) { return 2 * t.num_stages * t.block_k * (t.block_m + t.block_n); }
int registers(const Tile& t) { return t.warp_m * t.warp_n / 32 + (t.warp_m + t.warp_n) / 2 + 24; }

void check_legal(const Coach& coach) {
  const auto ask = [&](const Tile& t, const Named& on, bool expected, const std::string& why) {
    const bool got = is_legal(t, on.gpu);
    coach.require(got == expected, "is_legal() of the tile " + text(t) + " on " + on.name + " is " + (got ? "true" : "false") +
                                       ", expected " + (expected ? "true" : "false") + ": " + why + ".");
  };
  for (const Named& on : kGpus)
    for (const Tile& t : kLegal) {
      const bool fits = shared(t) <= on.gpu.shared_bytes_per_block;
      ask(t, on, fits,
          "a block needs " + std::to_string(shared(t)) + " bytes of shared memory, and may ask for " +
              std::to_string(on.gpu.shared_bytes_per_block) +
              (fits ? ". It has " + std::to_string(threads(t)) + " threads of at most 1,024, with " + std::to_string(registers(t)) +
                          " registers of at most 255; the rest holds too"
                    : ""));
    }
  const Named& h200 = kGpus[0];
  ask({144, 128, 64, 144, 32, 3}, h200, false, "a thread needs 256 registers, and has at most 255");
  ask({256, 128, 128, 64, 64, 3}, h200, false, "a block needs 294912 bytes of shared memory, and may ask for 232448");
  ask({256, 256, 32, 32, 32, 2}, h200, false, "it has 2,048 threads, and a block has at most 1,024");
  ask({128, 128, 64, 48, 64, 3}, h200, false, "parts of 48 rows do not tile 128 rows");
  ask({128, 128, 64, 64, 48, 3}, h200, false, "parts of 48 columns do not tile 128 columns");
  ask({128, 128, 64, 8, 64, 3}, h200, false, "a fragment has 16 rows, and a warp's part has 8");
  ask({128, 128, 64, 64, 8, 3}, h200, false, "a fragment has 16 columns, and a warp's part has 8");
  ask({128, 128, 48, 64, 64, 3}, h200, false, "two sets of fragments want 32, 64, 96 ... along k, not 48");
}

void check_blocks(const Coach& coach) {
  for (const Named& on : kGpus)
    for (const Tile& t : kLegal) {
      if (shared(t) > on.gpu.shared_bytes_per_block) continue;
      const int expected = std::min(
          std::min(on.gpu.blocks_per_sm, on.gpu.threads_per_sm / threads(t)),
          std::min(on.gpu.registers_per_sm / (threads(t) * registers(t)), on.gpu.shared_bytes_per_sm / (shared(t) + 1024)));
      const int got = blocks_per_sm(t, on.gpu);
      coach.require(got == expected, "blocks_per_sm() of the tile " + text(t) + " on " + on.name + " is " + std::to_string(got) +
                                         ", expected " + std::to_string(expected) + ". A block has " + std::to_string(threads(t)) +
                                         " threads, each of which takes " + std::to_string(registers(t)) + " registers,\nand " +
                                         std::to_string(shared(t)) + " bytes of shared memory. An SM has " +
                                         std::to_string(on.gpu.threads_per_sm) + " threads, " +
                                         std::to_string(on.gpu.registers_per_sm) + " registers, " +
                                         std::to_string(on.gpu.shared_bytes_per_sm) + " bytes\nand room for " +
                                         std::to_string(on.gpu.blocks_per_sm) + " blocks.");
    }
}

void check_busiest(const Coach& coach) {
  const Gpu& h200 = kGpus[0].gpu;
  const std::int64_t large = std::int64_t{1} << 22;
  for (const Tile& t : kLegal)
    for (const auto& [m, n] : {std::pair{std::int64_t{1536}, std::int64_t{1536}},
                               {4096, 4096},
                               {4097, 4096},
                               {4096, 4097},
                               {1, 1},
                               {8, 4096},
                               {2112, 1024},
                               {large, large}}) {
      const std::int64_t down = m / t.block_m + (m % t.block_m > 0), across = n / t.block_n + (n % t.block_n > 0);
      const std::int64_t expected = down * across / h200.sms + (down * across % h200.sms > 0);
      const std::int64_t got = blocks_of_busiest_sm(t, m, n, h200);
      coach.require(got == expected,
                    "blocks_of_busiest_sm() of the tile " + text(t) + " for a C of " + std::to_string(m) + " x " +
                        std::to_string(n) + " on an H200 is " + std::to_string(got) + ", expected " + std::to_string(expected) +
                        ".\nThere are " + std::to_string(down * across) +
                        " blocks for 132 SMs. Blocks at the edge of C count too, and so does what is left in the end.");
    }
}

// What key() says of `problems` in another process, which comes to them in the other order; empty where it says nothing.
std::vector<std::string> keys_in_another_process(const std::vector<Problem>& problems) {
  int ends[2];
  if (pipe(ends)) throw std::runtime_error("no pipe can be made");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process can be started");
  if (child == 0) {
    try {
      for (auto p = problems.rbegin(); p != problems.rend(); ++p) {
        const std::string key = exercise::key(*p);
        const std::uint64_t bytes = key.size();
        if (write(ends[1], &bytes, sizeof bytes) < 0 || write(ends[1], key.data(), bytes) < 0) break;
      }
    } catch (...) {  // nothing of this process goes back to the test
    }
    _exit(0);
  }
  close(ends[1]);
  std::string all;
  char some[1024];
  for (ssize_t got = 0; (got = read(ends[0], some, sizeof some)) > 0;) all.append(some, static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  std::vector<std::string> keys(problems.size());
  std::size_t at = 0;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    std::uint64_t bytes = 0;
    if (all.size() - at < sizeof bytes) break;
    std::memcpy(&bytes, all.data() + at, sizeof bytes);
    at += sizeof bytes;
    if (all.size() - at < bytes) break;
    *key = all.substr(at, bytes);
    at += bytes;
  }
  return keys;
}

void check_key(const Coach& coach) {
  const Problem base = {1, 23, 4, "f16", "nn", "NVIDIA H200", "2026-11-22"};
  std::vector<Problem> some;
  for (const char* const gpu : {"NVIDIA H200", "NVIDIA A100"})
    for (const char* const type : {"f16", "bf16"})
      for (const char* const layout : {"nn", "nt"})
        some.push_back({1, static_cast<std::int64_t>(some.size()), 4, type, layout, gpu, ""});
  const std::vector<std::string> elsewhere = asked([&] { return keys_in_another_process(some); });
  std::vector<std::pair<std::string, Problem>> others;
  const auto other = [&](const char* what, auto change) {
    others.emplace_back(what, base);
    change(others.back().second);
  };
  other("m", [](Problem& p) { p.m = 2; });
  other("n", [](Problem& p) { p.n = 24; });
  other("k", [](Problem& p) { p.k = 5; });
  other("the type", [](Problem& p) { p.type = "bf16"; });
  other("the type, whose first letter is the same", [](Problem& p) { p.type = "f32"; });
  other("the type, whose last letters are the same", [](Problem& p) { p.type = "tf16"; });
  other("the layout", [](Problem& p) { p.layout = "nt"; });
  other("the GPU", [](Problem& p) { p.gpu = "NVIDIA A100"; });
  other("m and n, which are exchanged", [](Problem& p) { std::swap(p.m, p.n); });
  other("n and k, which are exchanged", [](Problem& p) { std::swap(p.n, p.k); });
  other("m and n: 12 x 3 is not 1 x 23", [](Problem& p) { p.m = 12, p.n = 3; });
  other("n and k: 2 x 34 is not 23 x 4", [](Problem& p) { p.n = 2, p.k = 34; });
  other("n and k: 24 x 3 has the same sum as 23 x 4", [](Problem& p) { p.n = 24, p.k = 3; });
  other("n and k: 46 x 2 has as many products as 23 x 4", [](Problem& p) { p.n = 46, p.k = 2; });
  for (const auto& [what, p] : others)
    coach.require(key(p) != key(base), "Two problems have the same key, \"" + key(base) + "\". They differ in " + what +
                                           ".\nThe best tile of the one may be slow for the other, or impossible.");
  // "A16" and "2", "A1" and "62": without a sign between two fields they run into each other.
  const auto run_together = [&](const char* fields, auto change) {
    Problem one = {23, 24, 25, "f16", "nn", "NVIDIA A16", ""}, two = one;
    change(one, two);
    coach.require(key(one) != key(two), "Two problems have the same key, \"" + key(one) + "\". The one has " + fields +
                                            ".\nWithout a sign between them that neither has, they run into each other.");
  };
  run_together("the GPU \"NVIDIA b\" and the type \"f16\", the other one \"NVIDIA \" and \"bf16\"", [](Problem& one, Problem& two) {
    one.gpu = "NVIDIA b", one.type = "f16";
    two.gpu = "NVIDIA ", two.type = "bf16";
  });
  for (const auto number : {&Problem::m, &Problem::n, &Problem::k})
    run_together("the GPU \"NVIDIA A16\" and a size of 2, the other one \"NVIDIA A1\" and 62", [&](Problem& one, Problem& two) {
      one.gpu = "NVIDIA A16", one.*number = 2;
      two.gpu = "NVIDIA A1", two.*number = 62;
    });
  // Names of GPUs that were sold, or could be.
  for (const auto& [one, two] :
       {std::pair{"NVIDIA H200", "NVIDIA H200 NVL"},
        {"NVIDIA H200", "NVIDIA H 200"},
        {"NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"},
        {"NVIDIA A100-PCIE-40GB", "NVIDIA A100 PCIE 40GB"},
        {"NVIDIA L4", "NVIDIA L40"},
        {"NVIDIA GeForce RTX 4070 Ti", "NVIDIA GeForce RTX 4070 TI"},
        {"NVIDIA H200 NVL", "NVIDIA H200_NVL"},
        {"NVIDIA H200 MIG 1g.18gb", "NVIDIA H200/MIG/1g.18gb"},
        {"NVIDIA L4", "NVIDIA L4 "},
        {"NVIDIA L4", " NVIDIA L4"},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"}}) {
    Problem other_gpu = base, this_gpu = base;
    this_gpu.gpu = one, other_gpu.gpu = two;
    coach.require(key(this_gpu) != key(other_gpu), std::string("\"") + one + "\" and \"" + two +
                                                       "\" are two GPUs, and have the same key, \"" + key(this_gpu) +
                                                       "\".\nWhat of a GPU's name is not in it?");
  }
  Problem later = base;
  later.when = "2026-11-23";
  for (std::size_t i = 0; i < some.size(); ++i) {
    const std::string here = key(some[i]), there = i < elsewhere.size() ? elsewhere[i] : "";
    coach.require(here == there,
                  "The same problem has the key \"" + here + "\" here, and in another run of the program \"" + there +
                      "\".\nA result is kept in a file, and found again by its name: that may depend on the problem alone.");
  }
  coach.require(key(later) == key(base), "A day later the same problem has another key: \"" + key(base) + "\", then \"" +
                                             key(later) + "\".\nSo what was found yesterday is never found again.");
}

// ------------------------------------------------------------------------------------------------------ drawn at random
Tile drawn_tile(Draw& draw) {
  const auto some = [&](std::initializer_list<int> of) {
    return of.begin()[draw.between(0, static_cast<std::int64_t>(of.size()) - 1)];
  };
  Tile t{};
  t.warp_m = some({8, 16, 16, 24, 32, 40, 48, 64, 80, 128}), t.warp_n = some({8, 16, 16, 24, 32, 40, 48, 64, 80, 128});
  t.block_m = t.warp_m * static_cast<int>(draw.between(1, 6)) + (draw.between(0, 5) ? 0 : 16);
  t.block_n = t.warp_n * static_cast<int>(draw.between(1, 6)) + (draw.between(0, 5) ? 0 : 16);
  t.block_k = some({16, 32, 32, 48, 64, 64, 80, 96, 128}), t.num_stages = static_cast<int>(draw.between(1, 6));
  return t;
}
bool legal(const Tile& t, const Gpu& gpu) {
  return t.block_m % t.warp_m == 0 && t.block_n % t.warp_n == 0 && t.warp_m % 16 == 0 && t.warp_n % 16 == 0 &&
         t.block_k % 32 == 0 && threads(t) <= 1024 && registers(t) <= 255 && shared(t) <= gpu.shared_bytes_per_block;
}
int blocks(const Tile& t, const Gpu& gpu) {
  return std::min({gpu.blocks_per_sm, gpu.threads_per_sm / threads(t), gpu.registers_per_sm / (threads(t) * registers(t)),
                   gpu.shared_bytes_per_sm / (shared(t) + 1024)});
}
Gpu drawn_gpu(Draw& draw) {
  Gpu gpu{};
  gpu.sms = static_cast<int>(draw.between(1, 200)), gpu.threads_per_sm = 512 * static_cast<int>(draw.between(2, 4));
  gpu.blocks_per_sm = static_cast<int>(draw.between(4, 32)), gpu.registers_per_sm = 65536 * static_cast<int>(draw.between(1, 2));
  gpu.shared_bytes_per_block = 1024 * static_cast<int>(draw.between(48, 227));
  gpu.shared_bytes_per_sm = gpu.shared_bytes_per_block + 1024 * static_cast<int>(draw.between(1, 100));
  return gpu;
}
std::string text(const Gpu& gpu) {
  return "a GPU of " + std::to_string(gpu.sms) + " SMs, each with " + std::to_string(gpu.threads_per_sm) + " threads, " +
         std::to_string(gpu.blocks_per_sm) + " blocks, " + std::to_string(gpu.registers_per_sm) + " registers and " +
         std::to_string(gpu.shared_bytes_per_sm) + " bytes of shared memory, " + std::to_string(gpu.shared_bytes_per_block) +
         " for a block";
}

// As in gemm.cuh.
double clocks(const Tile& t, std::int64_t m, std::int64_t n, std::int64_t k, const Gpu& gpu) {
  const auto ratio_up = [](std::int64_t a, std::int64_t b) { return a / b + (a % b > 0); };
  const std::int64_t busiest = ratio_up(ratio_up(m, t.block_m) * ratio_up(n, t.block_n), gpu.sms);
  const double products = t.block_m * t.block_n / 1024.;
  const double moved = 2. * (threads(t) / 32 * (t.warp_m + t.warp_n) + t.block_m + t.block_n) / 128;
  return static_cast<double>(busiest) * static_cast<double>(k) * (products + moved / 2) +
         static_cast<double>(ratio_up(busiest, blocks(t, gpu))) * 2500;
}
const std::vector<Tile> kCandidates = {{256, 256, 64, 64, 64, 3}, {256, 128, 128, 64, 64, 3}, {256, 128, 64, 64, 64, 3},
                                       {192, 128, 64, 48, 64, 3}, {160, 128, 64, 80, 32, 3},  {144, 128, 64, 144, 32, 3},
                                       {128, 128, 64, 64, 64, 3}, {128, 128, 64, 64, 32, 4},  {128, 64, 128, 64, 32, 3},
                                       {64, 64, 128, 32, 32, 4},  {32, 32, 64, 16, 16, 6}};
Tile best(std::int64_t m, std::int64_t n, std::int64_t k, const Gpu& gpu) {
  const Tile* found = nullptr;
  for (const Tile& t : kCandidates)
    if (legal(t, gpu) && blocks(t, gpu) > 0 && (!found || clocks(t, m, n, k, gpu) < clocks(*found, m, n, k, gpu))) found = &t;
  return found ? *found : kCandidates.back();  // which is legal everywhere
}

void check_drawn(const Coach& coach) {
  Draw& draw = coach.draw();
  for (int i = 0; i < 600; ++i) {
    const Tile t = drawn_tile(draw);
    const Gpu gpu = drawn_gpu(draw);
    const std::string of = " of the tile " + text(t) + " on " + text(gpu) + " is ";
    const bool expected = legal(t, gpu), got = is_legal(t, gpu);
    coach.require(got == expected,
                  "is_legal()" + of + (got ? "true" : "false") + ", expected " + (expected ? "true" : "false") + ".");
    if (!expected) continue;
    coach.require(blocks_per_sm(t, gpu) == blocks(t, gpu), "blocks_per_sm()" + of + std::to_string(blocks_per_sm(t, gpu)) +
                                                               ", expected " + std::to_string(blocks(t, gpu)) + ".");
    const std::int64_t most = i % 4 ? 10000 : 2'000'000'000, m = draw.between(1, most), n = draw.between(1, most);
    const std::int64_t tiles = ((m - 1) / t.block_m + 1) * ((n - 1) / t.block_n + 1), busiest = (tiles - 1) / gpu.sms + 1;
    coach.require(blocks_of_busiest_sm(t, m, n, gpu) == busiest,
                  "blocks_of_busiest_sm() of the tile " + text(t) + " for a C of " + std::to_string(m) + " x " + std::to_string(n) +
                      " on " + text(gpu) + " is " + std::to_string(blocks_of_busiest_sm(t, m, n, gpu)) + ", expected " +
                      std::to_string(busiest) + ".");
  }
  for (int i = 0; i < 100; ++i) {  // more blocks than a double can count
    const Tile t = kLegal[static_cast<std::size_t>(draw.between(0, static_cast<std::int64_t>(kLegal.size()) - 1))];
    const Gpu gpu = drawn_gpu(draw);
    const std::int64_t down = draw.between(1 << 28, 1 << 30), across = draw.between(1 << 28, 1 << 30),
                       m = down * t.block_m - draw.between(0, t.block_m - 1),
                       n = across * t.block_n - draw.between(0, t.block_n - 1);
    const std::int64_t busiest = (down * across - 1) / gpu.sms + 1, got = blocks_of_busiest_sm(t, m, n, gpu);
    coach.require(got == busiest, "blocks_of_busiest_sm() of the tile " + text(t) + " for a C of " + std::to_string(m) + " x " +
                                      std::to_string(n) + " on " + text(gpu) + " is " + std::to_string(got) + ", expected " +
                                      std::to_string(busiest) +
                                      ".\nAn int64_t counts so many blocks. Which number on the way does not?");
  }
  std::int64_t m = 0, n = 0, k = 0;
  for (int i = 0; i < 200; ++i) {
    if (i % 2 == 0) m = draw.between(1, 9000), n = draw.between(1, 9000), k = draw.between(1, 9000);
    const Gpu gpu = i % 2 ? drawn_gpu(draw) : kGpus[0].gpu;  // the same shape on two GPUs
    const Tile got = best_tile(m, n, k, gpu), expected = best(m, n, k, gpu);
    coach.require(text(got) == text(expected) ||
                      (legal(got, gpu) && clocks(got, m, n, k, gpu) <= clocks(expected, m, n, k, gpu) * (1 + 1e-12)),
                  "best_tile() of " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + " on " +
                      text(gpu) + " is " + text(got) + ", expected " + text(expected) + ", as the model says of the candidates.");
  }
  // Numbers that are put together without anything between them, or with weights, run into each other.
  for (const std::int64_t weight : {10, 100, 1000, 10'000, 100'000, 1'000'000, 256, 1024, 4096, 65'536, 1 << 20, 1 << 21, 1 << 24})
    for (int i = 0; i < 4; ++i) {
      Problem base = {
          draw.between(2, 9'000'000), draw.between(2, 9'000'000), draw.between(1, 9'000'000), "f16", "nn", "NVIDIA H200", ""};
      Problem mn = base, nk = base, mk = base, far = base;
      --mn.m, mn.n += weight;
      --nk.n, nk.k += weight;
      --mk.m, mk.k += weight;
      (i % 3 == 0 ? far.m : i % 3 == 1 ? far.n : far.k) += std::int64_t{1} << 32;
      for (const Problem& p : {mn, nk, mk, far}) {
        const auto shape = [](const Problem& of) {
          return std::to_string(of.m) + " x " + std::to_string(of.n) + " x " + std::to_string(of.k);
        };
        coach.require(key(p) != key(base), "Two problems have the same key, \"" + key(base) + "\": " + shape(base) + " and " +
                                               shape(p) + ".\nThe best tile of the one may be slow for the other, or impossible.");
      }
    }
  constexpr std::size_t kMany = 200'000;
  std::vector<Problem> many;
  for (std::size_t i = 0; i < kMany; ++i)
    many.push_back(
        {draw.between(1, 9000), static_cast<std::int64_t>(i + 1), draw.between(1, 9000), "f16", "nn", "NVIDIA H200", ""});
  const std::vector<std::string> found = asked([&] {
    std::vector<std::string> all;
    for (const Problem& p : many) all.push_back(exercise::key(p));
    return all;
  });
  const std::unordered_set<std::string> keys(found.begin(), found.end());
  coach.require(keys.size() == kMany, "200,000 problems with different n have " + std::to_string(keys.size()) +
                                          " different keys.\nThe best tile of the one may be slow for the other, or impossible.");
}

// A hash, of whatever length, is the same for two problems some day: as many keys as there are problems need as many letters.
void check_room(const Coach& coach) {
  Draw& draw = coach.draw();
  const auto require_room = [&](const char* what, double bits, const std::vector<Problem>& problems) {
    const std::vector<std::string> found = asked([&] {
      std::vector<std::string> all;
      for (const Problem& p : problems) all.push_back(exercise::key(p));
      return all;
    });
    // What all keys have in the beginning, and in the end, says nothing.
    std::size_t first = found.at(0).size(), last = first, longest = 0;
    const auto alike = [](auto a, auto b, std::size_t most) {
      std::size_t count = 0;
      while (count < most && a[static_cast<std::ptrdiff_t>(count)] == b[static_cast<std::ptrdiff_t>(count)]) ++count;
      return count;
    };
    for (const std::string& key : found) {
      first = alike(key.begin(), found[0].begin(), std::min(first, key.size()));
      last = alike(key.rbegin(), found[0].rbegin(), std::min(last, key.size()));
    }
    std::unordered_set<char> letters;
    for (const std::string& key : found) {
      const std::string_view varies = std::string_view(key).substr(first, key.size() - std::min(key.size(), first + last));
      letters.insert(varies.begin(), varies.end()), longest = std::max(longest, varies.size());
    }
    const double room = letters.empty() ? 0 : static_cast<double>(longest) * std::log2(static_cast<double>(letters.size()));
    coach.require(room >= bits, "Of " + std::to_string(found.size()) + " problems that differ in " + what +
                                    " no key has more than " + std::to_string(longest) + " letters that are not the same in all, " +
                                    std::to_string(letters.size()) +
                                    " different ones.\nThat is too little for all problems to have keys of their own: of a "
                                    "hash, or of a part of a name or a number, two have the same.\nOne of the keys: \"" +
                                    (found.empty() ? "" : found.back().substr(0, 200)) + "\".");
  };
  constexpr std::int64_t kMost = (std::int64_t{1} << 62) - 1;
  constexpr int kMany = 4000;
  const auto drawn = [&](std::initializer_list<std::int64_t Problem::*> numbers) {
    std::vector<Problem> problems(kMany, {23, 24, 25, "f16", "nn", "NVIDIA H200", ""});
    for (Problem& p : problems)
      for (const auto number : numbers) p.*number = draw.between(1, kMost);
    return problems;
  };
  require_room("m", 61, drawn({&Problem::m}));
  require_room("n", 61, drawn({&Problem::n}));
  require_room("k", 61, drawn({&Problem::k}));
  require_room("m, n and k", 3 * 61, drawn({&Problem::m, &Problem::n, &Problem::k}));
  std::vector<Problem> names;
  constexpr int kNames = 200, kLetters = 1000, kAlphabet = 64;
  for (int i = 0; i < kNames; ++i) {
    names.push_back({23, 24, 25, "f16", "nn", "NVIDIA ", ""});
    for (int letter = 0; letter < kLetters; ++letter) names.back().gpu += static_cast<char>('!' + draw.between(0, kAlphabet - 1));
  }
  require_room("the GPU's name", kLetters * std::log2(kAlphabet) - 1, names);
}

void check_best(const Coach& coach) {
  // What lesson 06 has measured on an H200, and the model agrees; but for 256³, which is what the model expects there.
  const std::vector<std::pair<std::int64_t, Tile>> best = {{4096, {256, 128, 64, 64, 64, 3}}, {3072, {192, 128, 64, 48, 64, 3}},
                                                           {2048, {256, 128, 64, 64, 64, 3}}, {1536, {160, 128, 64, 80, 32, 3}},
                                                           {1024, {128, 64, 128, 64, 32, 3}}, {640, {64, 64, 128, 32, 32, 4}},
                                                           {256, {32, 32, 64, 16, 16, 6}}};
  for (const auto& [size, expected] : best) {
    const Tile got = best_tile(size, size, size, kGpus[0].gpu);
    coach.require(text(got) == text(expected), "best_tile() of " + std::to_string(size) + "³ on an H200 is " + text(got) +
                                                   ", expected " + text(expected) + ", as the model says of the candidates.");
  }
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/06_autotune/README.md, \"Walk\"");
  check_legal(coach);
  check_blocks(coach);
  check_busiest(coach);
  check_key(coach);
  check_best(coach);
  check_drawn(coach);
  check_room(coach);

  for (const Case& c : {Case{64, 64, 16}, Case{37, 70, 9}, Case{1, 40, 20}, Case{1, 1, 1}}) coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 35, .n = 45, .k = 10, .padding = 3}, gemm);
  for (const Case& c : coach.drawn({})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 3}, gemm);
  Case drawn = {coach.draw().between(100, 500), coach.draw().between(100, 500), 3};
  drawn.drawn = coach.draw().seed();
  const auto launched = [](const Case& c, const Tile& t) {
    return std::pair(((c.m - 1) / t.block_m + 1) * ((c.n - 1) / t.block_n + 1), threads(t));
  };
  const auto of = [](std::int64_t m, std::int64_t n, std::int64_t k) { return best(m, n, k, kGpus[0].gpu); };
  Case wide = drawn, tall = drawn;  // so much wider than tall, or taller, that for n x m another tile is the best
  do wide.m = coach.draw().between(1, 8), wide.n = coach.draw().between(17'000, 34'000), wide.k = coach.draw().between(1, 3);
  while (launched(wide, of(wide.m, wide.n, wide.k)) == launched(wide, of(wide.n, wide.m, wide.k)));
  do tall.n = coach.draw().between(1, 8), tall.m = coach.draw().between(17'000, 34'000), tall.k = coach.draw().between(1, 3);
  while (launched(tall, of(tall.m, tall.n, tall.k)) == launched(tall, of(tall.n, tall.m, tall.k)));
  for (const Case& c : {Case{96, 160, 8}, drawn, wide, tall}) {
    const Tile t = best(c.m, c.n, c.k, kGpus[0].gpu);
    const std::int64_t down = (c.m - 1) / t.block_m + 1, across = (c.n - 1) / t.block_n + 1;
    const std::string expected = std::to_string(down * across) + " blocks of " + std::to_string(threads(t)) + " threads";
    const Counts counts = coach.multiply<float, float>(c, gemm);
    for ([[maybe_unused]] const auto& launch : counts.launches(1, "One kernel computes C.")) {
      const std::string blocks = std::to_string(launch.grid.x) + " blocks of " + std::to_string(launch.block.x) + " threads";
      coach.require(blocks == expected, "For " + std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k) +
                                            " gemm() starts " + blocks + ", expected " + expected + ": " + std::to_string(down) +
                                            " x " + std::to_string(across) + " tiles of " + std::to_string(t.block_m) + " x " +
                                            std::to_string(t.block_n) + ", with " + std::to_string(t.block_m / t.warp_m) + " x " +
                                            std::to_string(t.block_n / t.warp_n) + " warps each.");
    }
  }

  // The functions run on the host, and a small kernel is all that is started: on a GPU there is no bar for the time.
}

}  // namespace exercise
