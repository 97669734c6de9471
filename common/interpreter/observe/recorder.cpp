#include "common/interpreter/observe/recorder.h"

namespace interpreter {

void Recorder::drain(unsigned warp, std::uint32_t open, std::uint32_t held) {
  log.drain(*flow_, open, held, [&](const Request& request) { sink_.on_request(warp, request); });
}

}  // namespace interpreter
