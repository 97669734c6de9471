#include "common/harness/results/results.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/harness/results/results_json.h"

namespace harness {

using nlohmann::ordered_json;

void to_json(ordered_json& j, const Sample& s) {
  j = {{"median", s.median}, {"q20", s.q20}, {"q80", s.q80}, {"rounds", s.rounds}, {"launches", s.launches}, {"graph", s.graph}};
}
void to_json(ordered_json& j, const Energy& e) { j = {{"joules", e.joules}, {"seconds", e.seconds}}; }
void to_json(ordered_json& j, const Ratio& r) { j = {{"median", r.median}, {"q20", r.q20}, {"q80", r.q80}}; }

namespace {

constexpr int kVersion = 1;

// JSON has no infinity and no NaN; a value that is not there is null.
ordered_json number(std::optional<double> x) { return x && std::isfinite(*x) ? ordered_json(*x) : ordered_json(nullptr); }
ordered_json known(double x) { return number(x > 0 ? std::optional(x) : std::nullopt); }
ordered_json whole(double x) { return static_cast<std::int64_t>(x); }
template <class T>
ordered_json json(const std::optional<T>& x) {
  return x ? ordered_json(*x) : ordered_json(nullptr);
}

ordered_json json(const Ceilings& c) {
  return {{"source", c.source},
          {"copy_bytes_per_second", c.copy_bytes},
          {"fma_f32_flops", c.fma_f32},
          {"mma_f16_flops", c.mma_f16},
          {"mma_bf16_flops", c.mma_bf16},
          {"wgmma_f16_flops", known(c.wgmma_f16)},
          {"wgmma_bf16_flops", known(c.wgmma_bf16)},
          {"wgmma_registers_f16_flops", known(c.wgmma_registers_f16)},
          {"wgmma_registers_bf16_flops", known(c.wgmma_registers_bf16)}};
}

ordered_json json(const Machine& m) {
  ordered_json gpu = {{"name", m.gpu},
                      {"compute_capability", m.compute_capability},
                      {"multiprocessors", m.multiprocessors},
                      {"l2_bytes", whole(m.l2_bytes)},
                      {"memory_bytes", whole(m.memory_bytes)}};
  if (m.uuid) gpu["uuid"] = *m.uuid;
  if (m.driver) gpu["driver"] = *m.driver;
  return gpu;
}

ordered_json json(const Result& r) {
  const Roofline& roof = r.roofline;
  const auto of_models = [&](auto&& value) {
    return ordered_json{
        {"no_reuse", value(roof.no_reuse)}, {"tile_reuse", value(roof.tile_reuse)}, {"compulsory", value(roof.compulsory)}};
  };
  ordered_json j = {
      {"step", r.step},
      {"tile", r.tile},
      {"first", r.first},
      {"m", r.spec.m},
      {"n", r.spec.n},
      {"k", r.spec.k},
      {"in", name(r.spec.in)},
      {"out", name(r.spec.out)},
      {"layout", r.spec.layout()},
      {"mode", r.mode},
      {"verified", true},
      {"flops", whole(roof.flops)},
      {"bytes", of_models([](const ByteModel& m) { return whole(m.bytes); })},
      {"intensity", of_models([](const ByteModel& m) { return number(m.intensity); })},
      {"bound", of_models([](const ByteModel& m) { return number(m.bound); })},
      {"peak", roof.peak},
      {"ridge", roof.ridge},
      {"note", note(roof, r.rate())},
  };
  if (!r.spec.epilogue.is_identity()) {
    j["epilogue"] = {{"activation", name(r.spec.epilogue.activation)}, {"bias", r.spec.epilogue.bias}};
    j["saved_bytes"] = whole(roof.saved_bytes);
  }
  for (const TunedTile& t : r.tuning) {
    ordered_json& tile = j["tuning"].emplace_back(
        ordered_json{{"tile", t.tile}, {"seconds", number(t.seconds)}, {"bound", known(t.bound)}, {"model", known(t.model)}});
    if (!t.pruned.empty()) tile["pruned"] = t.pruned;
  }
  if (!r.counters.empty()) {
    for (const auto& [name, value] : r.counters) j["counters"][name] = value;
    j["seconds"] = number(r.seconds);
    if (r.projection) j["projection"] = {{"gpu", r.projection->gpu}, {"flops_per_second", r.projection->flops_per_second}};
    return j;
  }
  j["time"] = json(r.time);
  const std::optional<double> rate = r.rate();
  j["tflops"] = number(rate ? std::optional(*rate * 1e-12) : std::nullopt);
  j["roofline"] = number(rate && roof.compulsory.bound ? std::optional(*rate / *roof.compulsory.bound) : std::nullopt);
  j["baselines"] = ordered_json::object();
  j["ratio"] = ordered_json::object();
  for (const Baseline& b : r.baselines) {
    j["baselines"][b.name] = json(b.time);
    if (b.time && b.candidates > 1) j["baselines"][b.name]["candidates"] = b.candidates;
    if (b.time && b.energy) j["baselines"][b.name]["energy"] = *b.energy;
    j["ratio"][b.name] = json(b.ratio);
  }
  if (r.energy) j["energy"] = *r.energy;
  if (const auto& c = r.conditions)
    j["conditions"] = {{"sm_hz", number(c->sm_hz)},
                       {"memory_hz", number(c->memory_hz)},
                       {"power", number(c->power)},
                       {"power_limit", number(c->power_limit)},
                       {"temperature", number(c->temperature)},
                       {"throttle", c->throttle}};
  if (const auto& l = r.launch)
    j["launch"] = {{"blocks", whole(l->blocks)},
                   {"threads", l->threads},
                   {"registers", l->registers},
                   {"shared_bytes", whole(l->shared_bytes)},
                   {"local_bytes", whole(l->local_bytes)},
                   {"blocks_per_sm", l->blocks_per_sm}};
  return j;
}

// Renaming would put a file in the place of a device.
void refuse_irregular(const std::string& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    throw BadInput("cannot write " + path + ": it is not a regular file; name another one");
}

// Of a result file.
ordered_json results_in(const std::string& path) {
  std::ifstream file(path);
  const ordered_json document = ordered_json::parse(file, nullptr, false);
  if (document.is_discarded() || !document.contains("results")) throw std::runtime_error("no results in " + path);
  return document["results"];
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  char text[32];
  std::tm parts{};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  return text;
}

std::optional<std::string> commit() {
  const char* const value = std::getenv("COURSE_COMMIT");
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<double> Result::rate() const {
  constexpr double kResolution = 1e-9;  // of launches averaged over a round
  if (!time || roofline.flops == 0 || time->median < kResolution) return std::nullopt;
  return roofline.flops / time->median;
}

Machine this_host() {
  Machine m;
  m.cores = static_cast<int>(std::thread::hardware_concurrency());
  utsname system{};
  uname(&system);
  // What follows the version is the distribution's business.
  const std::string release = system.release;
  m.os = std::string(system.sysname) + " " + release.substr(0, release.find('-'));
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      m.cpu = line.substr(line.find(": ") + 2);
      break;
    }
  return m;
}

std::string to_json(const Machine& m, const Ceilings& ceilings, const std::vector<Result>& results) {
  const ordered_json document = {{"schema", "gemm-course-results"},
                                 {"version", kVersion},
                                 {"created", utc_now()},
                                 {"commit", json(commit())},
                                 {"backend", m.backend},
                                 {"host", {{"cpu", m.cpu}, {"cores", m.cores}, {"os", m.os}}},
                                 {"gpu", json(m)},
                                 {"cuda", m.cuda},
                                 {"cublas", json(m.cublas)},
                                 {"ceilings", json(ceilings)}};
  // A line for each of the many results.
  std::string text = document.dump(1);
  text.replace(text.rfind("\n}"), std::string::npos, ",\n \"results\": [");
  for (const Result& r : results) text += (text.back() == '[' ? "\n  " : ",\n  ") + json(r).dump();
  return text + "\n ]\n}\n";
}

void check_writable(const std::string& path) {
  refuse_irregular(path);
  const std::string trial = path + "." + std::to_string(getpid()) + ".trial";
  write_file(trial, "");
  unlink(trial.c_str());
}

void write_file(const std::string& path, const std::string& text) {
  refuse_irregular(path);
  const std::string unfinished = path + "." + std::to_string(getpid()) + ".new";
  const auto refuse = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    unlink(unfinished.c_str());
    throw BadInput(std::string("cannot ") + what + " " + path + ": " + reason +
                   "; name a file in a folder that you can write to, on a disk with room");
  };
  std::FILE* const file = std::fopen(unfinished.c_str(), "wxe");  // as a new file, and not for processes that are started
  if (!file) refuse("create");
  const bool good =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  const int error = errno;
  if (std::fclose(file) != 0 || !good) {
    if (!good) errno = error;
    refuse("write");
  }
  if (rename(unfinished.c_str(), path.c_str()) != 0) refuse("write");
}

std::optional<double> measured_rate(const std::string& path, const std::string& step, const std::string& tile, const Spec& spec) {
  for (const ordered_json& r : results_in(path))
    if (r["step"] == step && r["tile"] == tile && r["m"] == spec.m && r["n"] == spec.n && r["k"] == spec.k &&
        r["in"] == name(spec.in) && r["out"] == name(spec.out) && r["layout"] == spec.layout() && r["mode"] == "hot" &&
        r.contains("epilogue") == !spec.epilogue.is_identity() && r["tflops"].is_number())
      return 1e12 * r["tflops"].get<double>();
  return std::nullopt;
}

std::vector<Result> read_tuning(const std::string& path) {
  const auto dtype = [](const std::string& text) { return dtype_named(text).value(); };
  std::vector<Result> results;
  for (const ordered_json& j : results_in(path)) {
    if (!j.contains("tuning")) continue;
    Result& r = results.emplace_back();
    r.step = j["step"], r.tile = j["tile"];
    const std::string layout = j["layout"];
    r.spec = {j["m"], j["n"], j["k"], dtype(j["in"]), dtype(j["out"]), layout.at(0) == 't', layout.at(1) == 't'};
    for (const ordered_json& t : j["tuning"]) {
      TunedTile& tile = r.tuning.emplace_back();
      tile.tile = t["tile"], tile.pruned = t.value("pruned", "");
      if (t["seconds"].is_number()) tile.seconds = t["seconds"].get<double>();
      if (t["bound"].is_number()) tile.bound = t["bound"];
      if (t["model"].is_number()) tile.model = t["model"];
    }
  }
  return results;
}

std::optional<Ceilings> read_ceilings(const std::string& path, const Machine& m) {
  std::ifstream file(path);
  const ordered_json j = ordered_json::parse(file, nullptr, false);
  if (j.is_discarded() || !j.is_object()) return std::nullopt;
  try {
    if (j.at("version") != kVersion || j.at("gpu") != m.gpu || j.at("driver") != m.driver.value_or("")) return std::nullopt;
    const ordered_json& c = j.at("ceilings");
    const auto if_any = [&](const char* name) { return c.at(name).is_null() ? 0.0 : c.at(name).get<double>(); };
    const Ceilings read{"measured",
                        c.at("copy_bytes_per_second"),
                        c.at("fma_f32_flops"),
                        c.at("mma_f16_flops"),
                        c.at("mma_bf16_flops"),
                        if_any("wgmma_f16_flops"),
                        if_any("wgmma_bf16_flops"),
                        if_any("wgmma_registers_f16_flops"),
                        if_any("wgmma_registers_bf16_flops")};
    for (const double rate : {read.copy_bytes, read.fma_f32, read.mma_f16, read.mma_bf16})
      if (!(rate > 0)) return std::nullopt;
    return read;
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
}

void write_ceilings(const std::string& path, const Machine& m, const Ceilings& ceilings) {
  const ordered_json j = {{"version", kVersion}, {"gpu", m.gpu}, {"driver", m.driver.value_or("")}, {"ceilings", json(ceilings)}};
  write_file(path, j.dump(1) + "\n");
}

}  // namespace harness
