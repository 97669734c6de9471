#include "common/interpreter/launch/signals.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "common/interpreter/block/block.h"
#include "common/interpreter/launch/host_exceptions.h"
#include "common/interpreter/launch/host_variables.h"

namespace interpreter {
namespace {

const void* interrupted_at(void* context) {
#if defined(__x86_64__)
  const auto address = static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  const auto address = static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  const std::uintptr_t address = 0;
#endif
  return reinterpret_cast<const void*>(address);
}

struct sigaction previous_action[65];

// How often in a row a signal has come while the thread was outside of the program's own code.
constexpr unsigned kMostPutOff = 40;
thread_local constinit unsigned put_off = 0;

// A jump or an exception out of the handler does not do it.
void unblock(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// Runs on the OS thread's alternate stack. Kernel code (current_fiber is set) is given up; anything else is somebody else's
// business.
void on_signal(int signal, siginfo_t* info, void* context) {
  Block* const block = static_cast<Block*>(current_block);
  if (current_fiber && block) {
    // In a library's function, such as malloc(), which may hold a lock that the report needs: the signal comes again.
    if (signal == kHangSignal && !inside(interrupted_at(context), image()) && ++put_off < kMostPutOff) return;
    put_off = 0;
    unblock(signal);
    const Pc pc = to_pc(interrupted_at(context));
    switch (signal) {
      case kHangSignal:
        block->fail_from_signal(Check::kEndless,
                                "a thread has run without a memory access or a barrier for too long: an endless loop?",
                                "kernels end; a loop that waits for another thread reads volatile or atomic memory", pc);
      case SIGFPE: block->fail_division_by_zero(pc);
      default:
        if (block->in_guard_page(info->si_addr))
          block->fail_from_signal(Check::kStackOverflow, "stack overflow", kStackExpected, pc);
        block->fail_from_signal(Check::kMemcheck,
                                "an access that the interpreter could not see before it happened hit unmapped memory",
                                "kernels use device memory only", pc);
    }
  }
  if (signal == kHangSignal) return;  // came too late: the thread has gone on
  if (const void* const p = signal == SIGSEGV ? arranged_fault() : nullptr) {
    unblock(signal);
    return throw_where_interrupted(host_use_of_variable(p), context);
  }
  if (signal == SIGSEGV && GlobalMemory::instance().contains(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    unblock(signal);
    return throw_where_interrupted(host_access(info->si_addr), context);
  }
  if (signal == SIGFPE && info->si_code == FPE_INTDIV && !block && previous_action[signal].sa_handler == SIG_DFL) {
    unblock(signal);
    install_handlers();  // before the first launch, who prints what nobody catches is not there yet
    return throw_where_interrupted(of_host(Check::kException, "host code divides an integer by zero",
                                           "divisors are not zero; the smallest integer is not divided by -1 either"),
                                   context);
  }
  sigaction(signal, &previous_action[signal], nullptr);
  raise(signal);
}

void take(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  if (action.sa_flags & SA_SIGINFO && action.sa_sigaction == on_signal) return;
  previous_action[signal] = action;
  action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}

[[maybe_unused]] const bool taken = (take(SIGFPE), true);  // host code may divide by zero before there is anything of a device's

std::terminate_handler usual_end = nullptr;

void print_uncaught() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const KernelError& e) {
    std::fprintf(stderr, "%s\n", e.what());
    KeepGoing::instance().end();
    std::fflush(nullptr);
    std::_Exit(1);
  } catch (...) {
    usual_end();  // names its type and what()
  }
  usual_end();
}

}  // namespace

void install_handlers() {
  static const bool once [[maybe_unused]] = [] {
    usual_end = std::set_terminate(print_uncaught);
    return true;
  }();
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, kHangSignal}) take(signal);
}

AlternateStack::AlternateStack() : memory_(reserve(kBytes)) {
  const stack_t stack{.ss_sp = memory_, .ss_flags = 0, .ss_size = kBytes};
  sigaltstack(&stack, nullptr);
}

AlternateStack::~AlternateStack() {
  const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  sigaltstack(&none, nullptr);
  munmap(memory_, kBytes);
}

}  // namespace interpreter
