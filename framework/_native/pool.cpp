#include "pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "pool_internal.h"

namespace fw {
namespace {

constexpr auto SPIN = std::chrono::microseconds(100);  // a step's next kernel usually comes within that
constexpr int64_t PIECES_PER_THREAD = 4;               // so that a thread which wakes late leaves little to wait for

void relax() {
#if defined(__x86_64__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

// Linux wakes a worker on the caller's own processor if the others look busy, or if it worked there last, and the
// worker waits there until the scheduler's next tick; meanwhile two threads are as slow as one. So the caller keeps
// them off its processor.
#if defined(__linux__)
int processor() { return sched_getcpu(); }
int this_thread() { return int(syscall(SYS_gettid)); }

void keep_off(int thread, int crowded) {
    cpu_set_t others;  // those that the process may use, so far as its first thread says
    if (sched_getaffinity(getpid(), sizeof others, &others) != 0) return;
    CPU_CLR(crowded, &others);
    if (CPU_COUNT(&others) > 0) sched_setaffinity(thread, sizeof others, &others);
}
#else
int processor() { return -1; }
int this_thread() { return 0; }
void keep_off(int, int) {}
#endif

struct Job {
    Task task = nullptr;
    void* context = nullptr;
    int64_t n = 0, step = 0, pieces = 0;
};

struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
};

struct Worker {
    std::thread thread;
    std::atomic<int> id{0};  // the thread's number in the system, once it runs
    int kept_off = -1;       // a processor; for the caller only

    void keep_off(int crowded) {
        if (crowded == kept_off || !id) return;
        fw::keep_off(id, crowded);
        kept_off = crowded;
    }
};

// A job is open while the caller works on it; workers take pieces from shares. A worker that comes late
// finds the job closed and goes away again, so the caller only ever waits for pieces that are under way.
struct Pool {
    Job job;
    std::atomic<bool> open{false}, ending{false};
    std::atomic<int> inside{0}, sleepers{0};
    std::atomic<uint64_t> generation{0};
    std::mutex busy, lock;
    std::condition_variable wake;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<Share> shares{1};  // the caller's, then the workers'

    // One's own share first, which in the next job over the same array is in one's cache; then what is left.
    void work(size_t me) {
        for (size_t k = 0; k < shares.size(); ++k) {
            Share& share = shares[(me + k) % shares.size()];
            for (int64_t i; (i = share.next.fetch_add(1)) < share.end;) {
                int64_t begin = i * job.step, end = begin + job.step;
                job.task(job.context, begin, end < job.n ? end : job.n);
            }
        }
    }

    void share_out() {
        int64_t count = int64_t(shares.size());
        for (int64_t s = 0; s < count; ++s) {
            shares[size_t(s)].next = s * job.pieces / count;
            shares[size_t(s)].end = (s + 1) * job.pieces / count;
        }
    }

    void wait_for_news(uint64_t seen) {
        auto until = std::chrono::steady_clock::now() + SPIN;
        while (std::chrono::steady_clock::now() < until) {
            for (int i = 0; i < 64; ++i) {
                if (generation.load() != seen) return;
                relax();
            }
        }
        std::unique_lock<std::mutex> held(lock);
        ++sleepers;
        wake.wait(held, [&] { return generation.load() != seen; });
        --sleepers;
    }

    void serve(Worker& self, size_t me, uint64_t seen) {
        self.id = this_thread();
        flush_denormals_here();
        while (!ending.load()) {
            ++inside;
            if (open.load()) {
                flush_denormals_here();
                work(me);
            }
            --inside;
            wait_for_news(seen);
            seen = generation.load();
        }
    }

    void announce() {
        ++generation;
        if (sleepers.load() > 0) {
            std::lock_guard<std::mutex> held(lock);
            wake.notify_all();
        }
    }

    void resize(size_t n) {  // with `busy` held
        if (workers.size() == n) return;
        ending = true;
        announce();
        for (auto& w : workers) w->thread.join();
        workers.clear();
        shares = std::vector<Share>(n + 1);
        ending = false;
        uint64_t now = generation.load();
        for (size_t i = 0; i < n; ++i) {
            workers.push_back(std::make_unique<Worker>());
            Worker& w = *workers.back();
            w.thread = std::thread([this, &w, i, now] { serve(w, i + 1, now); });
        }
    }

    void run(const Job& given) {
        job = given;
        share_out();
        const int here = processor();
        for (auto& w : workers) w->keep_off(here);
        open = true;
        announce();
        work(0);
        open = false;
        while (inside.load() > 0) relax();
    }
};

// Never destroyed: threads may still wait in it when the process ends.
Pool* pool = new Pool;
std::atomic<int> wanted{1}, simulated{0};
double saved = 0;  // seconds, by the threads that are simulated
std::atomic<bool> flush{false};
thread_local bool in_task = false;

#if defined(__unix__) || defined(__APPLE__)
// A fork copies one thread only, and the old pool's locks in whatever state they were in.
struct AfterFork {
    AfterFork() {
        pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
    }
} after_fork;
#endif

}  // namespace

// Does the pieces one after the other, and tells how much sooner `count` threads would have been done that
// take the next piece whenever they are free. What they share, the bandwidth of memory above all, is left out.
static double simulate(const Job& job, int count) {
    using Clock = std::chrono::steady_clock;
    constexpr double WAKE = 1e-6;  // until a spinning thread has seen the job, and is done with it
    std::vector<double> busy(size_t(count), 0.0);
    double all = 0;
    for (int64_t i = 0; i < job.pieces; ++i) {
        int64_t begin = i * job.step, end = begin + job.step;
        auto start = Clock::now();
        job.task(job.context, begin, end < job.n ? end : job.n);
        double took = std::chrono::duration<double>(Clock::now() - start).count();
        *std::min_element(busy.begin(), busy.end()) += took;
        all += took;
    }
    return all - *std::max_element(busy.begin(), busy.end()) - WAKE;
}

double simulate_threads(int n) {
    double until_now = saved;
    saved = 0;
    simulated = n;
    return until_now;
}

int threads() { return simulated ? simulated : wanted; }

void set_threads(int n) { wanted = n < 1 ? 1 : n; }

void set_flush_denormals(bool on) {
    flush = on;
    flush_denormals_here();
}

bool flush_denormals() {
#if defined(__x86_64__)
    return flush;
#else
    return false;
#endif
}

void flush_denormals_here() {
#if defined(__x86_64__)
    constexpr unsigned BOTH = 0x8040;  // flush results to zero, take denormals as zero
    unsigned state = _mm_getcsr(), now = flush ? state | BOTH : state & ~BOTH;
    if (now != state) _mm_setcsr(now);
#endif
}

void run_parallel(int64_t n, int64_t grain, Task task, void* context) {
    int64_t most = grain > 0 ? (n + grain - 1) / grain : n, count = threads();
    if (most > 1 && count > 1 && !in_task && pool->busy.try_lock()) {
        in_task = true;
        int64_t pieces = most < count * PIECES_PER_THREAD ? most : count * PIECES_PER_THREAD;
        int64_t grains = (most + pieces - 1) / pieces, step = grains * (grain > 0 ? grain : 1);
        Job job{task, context, n, step, (n + step - 1) / step};
        if (simulated) {
            saved += simulate(job, int(count));
        } else {
            pool->resize(size_t(count - 1));
            pool->run(job);
        }
        in_task = false;
        pool->busy.unlock();
    } else {
        task(context, 0, n);
    }
}

}  // namespace fw
