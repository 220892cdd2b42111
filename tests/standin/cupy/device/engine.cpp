// Runs the threads of kernels that cuda_on_cpu.h has made C++ of: one block after another, each thread a fiber where
// the kernel has barriers. What would hang or be undefined on a device ends the launch with a message: a barrier that
// not all threads reach, lanes that disagree on a shuffle, an access outside of the arrays (guard pages).
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <ucontext.h>

struct uint3 { unsigned x, y, z; };
uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace {
enum class State { ready, block, warp, grid, done };

struct Fiber {
  void* stack_pointer;  // x86-64; elsewhere the context
  ucontext_t context;
  State state;
  uint3 index, block;
  char* shared;
  uint64_t sent;
  unsigned mask;
  std::vector<char> stack;
};

std::vector<Fiber> fibers;
size_t current;
Fiber scheduler;
std::vector<std::vector<char>> shared_memory;  // of each block that runs
void (*kernel)(void**);
void** arguments;
char message[200];
sigjmp_buf home;
volatile bool inside;
constexpr size_t stack_size = 1 << 16;

[[noreturn]] void fail(const char* text) {
  std::snprintf(message, sizeof message, "%s (block %u %u %u, thread %u %u %u)", text, blockIdx.x, blockIdx.y, blockIdx.z,
                threadIdx.x, threadIdx.y, threadIdx.z);
  siglongjmp(home, 1);
}

void body();

#if defined(__x86_64__)
extern "C" void cuda_on_cpu_switch(void** from, void* to);
asm(R"(
.text
.globl cuda_on_cpu_switch
cuda_on_cpu_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
)");
void to_fiber(Fiber& f) { cuda_on_cpu_switch(&scheduler.stack_pointer, f.stack_pointer); }
void to_scheduler() { cuda_on_cpu_switch(&fibers[current].stack_pointer, scheduler.stack_pointer); }
void prepare(Fiber& f) {
  auto top = (reinterpret_cast<uintptr_t>(f.stack.data()) + stack_size) & ~uintptr_t(15);
  auto* at = reinterpret_cast<uintptr_t*>(top);
  *--at = 0;  // where ``body`` would return to; it does not
  *--at = reinterpret_cast<uintptr_t>(&body);
  for (int i = 0; i < 6; ++i) *--at = 0;
  f.stack_pointer = at;
}
#else
void to_fiber(Fiber& f) { swapcontext(&scheduler.context, &f.context); }
void to_scheduler() { swapcontext(&fibers[current].context, &scheduler.context); }
void prepare(Fiber& f) {
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack.data();
  f.context.uc_stack.ss_size = stack_size;
  f.context.uc_link = nullptr;
  makecontext(&f.context, body, 0);
}
#endif

void body() {
  kernel(arguments);
  fibers[current].state = State::done;
  to_scheduler();
}

void pause(State why) {
  fibers[current].state = why;
  to_scheduler();
}

uint3 place_of(size_t i, const uint3& size) {
  return {unsigned(i % size.x), unsigned(i / size.x % size.y), unsigned(i / size.x / size.y)};
}

// the threads of ``count`` blocks, from block ``first`` on, side by side; a kernel that waits for its whole grid has
// all of them here, others one
void run_blocks(size_t first_block, size_t count, size_t n, size_t dynamic, bool backward) {
  const size_t all = count * n;
  if (fibers.size() < all) fibers.resize(all);
  shared_memory.resize(count);
  for (auto& memory : shared_memory) memory.assign(dynamic, char(0xff));  // what nobody wrote is nan
  for (size_t i = 0; i < all; ++i) {
    Fiber& f = fibers[i];
    if (f.stack.empty()) f.stack.resize(stack_size);
    f.index = place_of(i % n, blockDim);
    f.block = place_of(first_block + i / n, gridDim);
    f.shared = shared_memory[i / n].data();
    f.state = State::ready;
    prepare(f);
  }
  for (;;) {
    size_t ended = 0, at_grid = 0, ready = 0;
    for (size_t k = 0; k < all; ++k) {
      current = backward ? all - 1 - k : k;
      if (fibers[current].state != State::ready) continue;
      threadIdx = fibers[current].index;
      blockIdx = fibers[current].block;
      to_fiber(fibers[current]);
    }
    for (size_t b = 0; b < count; ++b) {
      Fiber* block = &fibers[b * n];
      size_t done = 0, at_block = 0;
      for (size_t first = 0; first < n; first += 32) {  // a warp goes on when all lanes of its masks are there
        size_t end = first + 32 < n ? first + 32 : n;
        unsigned there = 0, wanted = 0, lanes = 0;
        for (size_t i = first; i < end; ++i) {
          lanes |= 1u << (i - first);
          if (block[i].state == State::warp) there |= 1u << (i - first), wanted |= block[i].mask;
        }
        if (there && (wanted & lanes) == there)
          for (size_t i = first; i < end; ++i)
            if (block[i].state == State::warp) block[i].state = State::ready;
      }
      for (size_t i = 0; i < n; ++i) {
        done += block[i].state == State::done;
        at_block += block[i].state == State::block;
        at_grid += block[i].state == State::grid;
      }
      ended += done;
      if (at_block && at_block + done == n) {
        if (done) fail("__syncthreads is not reached by all threads of the block");
        for (size_t i = 0; i < n; ++i) block[i].state = State::ready;
      }
    }
    if (ended == all) return;
    if (at_grid == all) for (size_t i = 0; i < all; ++i) fibers[i].state = State::ready;
    for (size_t i = 0; i < all; ++i) ready += fibers[i].state == State::ready;
    if (!ready) fail("deadlock: some threads wait at a barrier, or have ended, while others wait at another");
  }
}

void on_signal(int, siginfo_t* info, void*) {
  if (!inside) _Exit(139);
  char text[100];
  std::snprintf(text, sizeof text, "an access outside of the arrays, at %p", info->si_addr);
  fail(text);
}
}  // namespace

extern "C" {
void cuda_on_cpu_fail(const char* text) { fail(text); }
char* cuda_on_cpu_shared() { return fibers[current].shared; }
void cuda_on_cpu_barrier() { pause(State::block); }
void cuda_on_cpu_grid_barrier() { pause(State::grid); }

// all lanes of ``mask`` meet; then each reads what lane ``source`` sent
uint64_t cuda_on_cpu_exchange(unsigned mask, uint64_t value, int source) {
  size_t n = size_t(blockDim.x) * blockDim.y * blockDim.z, base = current / n * n, me = current - base, first = me & ~size_t(31);
  Fiber* block = &fibers[base];
  if (!(mask >> (me & 31) & 1)) fail("a lane calls a shuffle with a mask that it is not in");
  block[me].sent = value;
  block[me].mask = mask;
  pause(State::warp);
  for (size_t lane = 0; lane < 32 && first + lane < n; ++lane)
    if ((mask >> lane & 1) && block[first + lane].mask != mask) fail("lanes disagree on the mask of a shuffle");
  uint64_t got = first + source < n && (mask >> source & 1) ? block[first + source].sent : value;
  pause(State::warp);  // nobody sends the next value before all have read this one
  return got;
}

// 0, or 1 with what went wrong behind cuda_on_cpu_message
int cuda_on_cpu_launch(void (*run)(void**), const unsigned* grid, const unsigned* block, size_t dynamic, void** args,
                       int with_barriers, int backward) {
  kernel = run;
  arguments = args;
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  size_t n = size_t(block[0]) * block[1] * block[2], blocks = size_t(grid[0]) * grid[1] * grid[2];
  if (n > 1024 || !n || !blocks || grid[1] > 65535 || grid[2] > 65535 || dynamic > 48 * 1024) {
    std::snprintf(message, sizeof message, "no such launch: %zu threads in %zu blocks, %zu bytes of shared memory", n, blocks,
                  dynamic);
    return 1;
  }
  struct sigaction act = {}, before_segv, before_bus;
  act.sa_sigaction = on_signal;
  act.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &act, &before_segv);
  sigaction(SIGBUS, &act, &before_bus);
  int failed = 0;
  inside = true;
  if (sigsetjmp(home, 1)) {
    failed = 1;
  } else {
    for (size_t k = 0; k < blocks; ++k) {
      size_t b = backward && with_barriers < 2 ? blocks - 1 - k : k;
      if (with_barriers) {
        run_blocks(b, with_barriers > 1 ? blocks : 1, n, dynamic, backward);
        if (with_barriers > 1) break;
        continue;
      }
      blockIdx = place_of(b, gridDim);
      for (size_t t = 0; t < n; ++t) {
        threadIdx = place_of(backward ? n - 1 - t : t, blockDim);
        run(args);
      }
    }
  }
  inside = false;
  sigaction(SIGSEGV, &before_segv, nullptr);
  sigaction(SIGBUS, &before_bus, nullptr);
  return failed;
}
const char* cuda_on_cpu_message() { return message; }
}
