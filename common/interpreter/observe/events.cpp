#include "common/interpreter/observe/events.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <utility>

namespace interpreter {

const char* name(EventKind kind) {
  static constexpr const char* kNames[] = {
      "global load",  "global store",  "global atomic",   "shared load",     "shared store",  "shared atomic", "ldmatrix",
      "stmatrix",     "copy",          "copy commit",     "copy wait",       "bulk load",     "bulk store",    "bulk commit",
      "bulk wait",    "mbarrier init", "mbarrier arrive", "mbarrier expect", "mbarrier wait", "copy arrive",   "mma",
      "wgmma",        "wgmma fence",   "wgmma commit",    "wgmma wait",      "barrier",       "named barrier", "st.async",
      "cluster load", "cluster store", "cluster atomic",  "cluster arrive",  "cluster wait",  "launch wait",   "launch hint"};
  return kNames[static_cast<unsigned>(kind)];
}

std::string& events_file() {
  static const char* const asked = std::getenv("COURSE_EVENTS");
  static std::string& file = *new std::string(asked ? asked : "");
  return file;
}
std::uint64_t& events_block() {
  static const char* const asked = std::getenv("COURSE_EVENTS_BLOCK");
  static std::uint64_t block = asked ? std::strtoull(asked, nullptr, 10) : 0;
  return block;
}

// ---------------------------------------------------------------------------------------------------------------- log
void EventLog::add(const Event& event) {
  if (events_.size() == kMost)
    is_whole_ = false;
  else
    events_.push_back(event);
}

void EventLog::add_addresses(const Request& request) {
  constexpr int kTimes = 2;
  if (!is_whole_ || events_.empty()) return;
  const Event& event = events_.back();
  int times = 0;
  for (const Addresses& each : addresses_) times += events_[each.event].pc == event.pc && events_[each.event].warp == event.warp;
  if (times < kTimes)
    addresses_.push_back({events_.size() - 1, request.lanes, {request.addresses, request.addresses + request.count}});
}

void EventLog::add_name(std::uint64_t mbarrier, std::string name) {
  const auto is_its = [&](const auto& known) { return known.first == mbarrier; };  // another block's at the same place
  if (std::none_of(names_.begin(), names_.end(), is_its)) names_.emplace_back(mbarrier, std::move(name));
}

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      result += code;
    } else {
      result += c;
    }
  }
  return result + '"';
}
// The first block of the cluster in which `block` is. A block alone is one.
uint3 first_of(uint3 block, dim3 cluster) {
  return {block.x / cluster.x * cluster.x, block.y / cluster.y * cluster.y, block.z / cluster.z * cluster.z};
}
// Of `block` in the cluster that begins at `first`; -1: it is in another one.
int rank_in(uint3 first, uint3 block, dim3 cluster) {
  const uint3 at{block.x - first.x, block.y - first.y, block.z - first.z};  // beyond all clusters where it lies before
  if (at.x >= cluster.x || at.y >= cluster.y || at.z >= cluster.z) return -1;
  return static_cast<int>(at.x + cluster.x * (at.y + cluster.y * at.z));
}
std::string listed(dim3 d) { return '[' + std::to_string(d.x) + ',' + std::to_string(d.y) + ',' + std::to_string(d.z) + ']'; }

}  // namespace

void EventLog::write(const std::string& file, const std::string& kernel, const Launch& launch, std::size_t static_shared_bytes,
                     const Diagnosis* diagnosis, uint3 first) const {
  std::FILE* const to = std::fopen(file.c_str(), "a");
  if (!to) throw std::runtime_error("cannot write the events to " + file);
  std::fseek(to, 0, SEEK_END);
  if (std::ftell(to) > kMostBytes * (diagnosis ? 2 : 1)) {  // what ends a program is what somebody looks for
    std::fclose(to);
    return;
  }
  first = first_of(first, launch.cluster);
  std::string out = "{\"kernel\":" + quoted(kernel) + ",\"grid\":" + listed(launch.grid) + ",\"block\":" + listed(launch.block) +
                    ",\"cluster\":" + listed(launch.cluster) + ",\"first\":" + listed(dim3(first.x, first.y, first.z)) +
                    ",\"shared_bytes\":" + std::to_string(launch.dynamic_shared_bytes + static_shared_bytes) +
                    ",\"whole\":" + (is_whole_ ? "true" : "false");
  if (diagnosis)
    out += ",\"diagnosis\":{\"check\":" + quoted(interpreter::name(diagnosis->check)) + ",\"what\":" + quoted(diagnosis->what) +
           ",\"expected\":" + quoted(diagnosis->expected) + ",\"file\":" + quoted(diagnosis->file) +
           ",\"line\":" + std::to_string(diagnosis->line) + ",\"called_at\":" + std::to_string(diagnosis->called_at) +
           ",\"called_in\":" + quoted(diagnosis->called_in) +
           ",\"rank\":" + std::to_string(rank_in(first, diagnosis->block, launch.cluster)) +
           ",\"warp\":" + std::to_string(diagnosis->warp) + ",\"lane\":" + std::to_string(diagnosis->lane) + "}";
  out += ",\"kinds\":[";
  for (unsigned kind = 0; kind <= static_cast<unsigned>(EventKind::kLaunchHint); ++kind)
    out += (kind ? "," : "") + quoted(interpreter::name(static_cast<EventKind>(kind)));
  out += "],\"names\":{";
  for (std::size_t i = 0; i < names_.size(); ++i)
    out += (i ? ",\"" : "\"") + std::to_string(names_[i].first) + "\":" + quoted(names_[i].second);
  // A place is where the user wrote it, and the line that calls this.
  std::map<Pc, std::size_t> places;
  std::string listed_places;
  for (const Event& event : events_) {
    if (!places.emplace(event.pc, places.size()).second) continue;
    const Location where = event.pc ? user_location(event.pc) : Location{};
    listed_places += (listed_places.empty() ? "[" : ",[") + quoted(where.file) + ',' + std::to_string(where.line) + ',' +
                     quoted(where.called_in.empty() ? where.file : where.called_in) + ',' + std::to_string(where.called_at) + ']';
  }
  out += "},\"places\":[" + listed_places + "],\"events\":[";
  for (const Event& event : events_) {
    if (&event != events_.data()) out += ',';
    out += '[' + std::to_string(event.warp) + ',' + std::to_string(static_cast<unsigned>(event.kind)) + ',' +
           std::to_string(places.at(event.pc)) + ',' + std::to_string(event.lanes);
    for (const std::uint64_t number : {event.a, event.b, event.c, event.d, event.e}) out += ',' + std::to_string(number);
    out += ']';
  }
  out += "],\"addresses\":[";
  for (const Addresses& each : addresses_) {
    out += (&each == addresses_.data() ? "[" : ",[") + std::to_string(each.event) + ',' + std::to_string(each.lanes) + ",[";
    for (std::size_t i = 0; i < each.of_lanes.size(); ++i) out += (i ? "," : "") + std::to_string(each.of_lanes[i]);
    out += "]]";
  }
  out += "]}\n";
  const bool written = std::fwrite(out.data(), 1, out.size(), to) == out.size();
  if (std::fclose(to) || !written) throw std::runtime_error("cannot write the events to " + file);
}

}  // namespace interpreter
