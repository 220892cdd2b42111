#include "base/pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/intrinsics.h"
#include "base/pool_internal.h"
#include "base/scratch.h"

namespace fw {

Listener& listener() {
    static thread_local Listener own;
    return own;
}

void relax() {
#if defined(__x86_64__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

namespace {

constexpr auto SPIN = std::chrono::microseconds(100);  // a step's next kernel usually comes within that
std::atomic<int64_t> near{200};                        // nanoseconds; there and back between neighbouring cores: some 60
constexpr auto RETRY = std::chrono::seconds(1);        // after a thread could not be started
constexpr auto LISTEN = std::chrono::milliseconds(50); // how often a long kernel asks whether to go on
constexpr int64_t GRAINS_PER_PIECE = 64, MOST_PIECES = 64;  // of long jobs, which can be interrupted between pieces
constexpr int64_t PIECES_AWAKE = 1, PIECES_PER_THREAD = 4;  // so that a thread which wakes late leaves little to wait for

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

thread_local bool in_task = false;  // of the pool's threads always
thread_local const std::atomic<bool>* job_stopped = nullptr;  // of the pool's threads: what their job has come to

struct Job {
    Task task = nullptr;
    void* context = nullptr;
    int64_t n = 0, step = 0, pieces = 0;

    void piece(int64_t i) const {
        const int64_t begin = i * step, end = begin + step;
        task(context, begin, end < n ? end : n);
    }
};

}  // namespace

void listen() {
    if (job_stopped && job_stopped->load(std::memory_order_relaxed)) throw Interrupted();
    Listener& l = listener();
    if (!l.goes_on) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - l.since < LISTEN) return;
    const bool on = l.goes_on(l.context);
    l.since = std::chrono::steady_clock::now();
    if (!on) throw Interrupted();
}

namespace {

struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;

    Share() = default;
    Share(Share&& o) noexcept : next(o.next.load()), end(o.end) {}
};

struct Worker {
    std::thread thread;
    std::atomic<uint64_t> heard{0};  // the last call that it answered
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
    std::atomic<uint64_t> generation{0}, calls{0};
    std::mutex busy, lock;
    std::condition_variable wake;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<Share> shares{1};  // the caller's, then the workers'
    size_t asked_for = 0;          // workers; fewer where the system refused
    std::chrono::steady_clock::time_point retry{};
    std::atomic<bool> stopped{false};  // something was thrown: the pieces that are left are not done
    std::exception_ptr thrown;         // the first, under `lock`

    // One's own share first, which in the next job over the same array is in one's cache; then what is left.
    void work(size_t me) {
        try {
            for (size_t k = 0; k < shares.size(); ++k) {
                Share& share = shares[(me + k) % shares.size()];
                for (int64_t i; !stopped.load(std::memory_order_relaxed) && (i = share.next.fetch_add(1)) < share.end;) {
                    job.piece(i);
                    if (me == 0) listen();
                }
            }
        } catch (...) {
            std::lock_guard<std::mutex> held(lock);
            if (!thrown) thrown = std::current_exception();
            stopped = true;
        }
    }

    void share_out() {
        int64_t count = int64_t(shares.size());
        for (int64_t s = 0; s < count; ++s) {
            shares[size_t(s)].next = s * job.pieces / count;
            shares[size_t(s)].end = (s + 1) * job.pieces / count;
        }
    }

    void wait_for_news(Worker& self, uint64_t seen) {
        auto until = std::chrono::steady_clock::now() + SPIN;
        while (std::chrono::steady_clock::now() < until) {
            for (int i = 0; i < 64; ++i) {
                if (generation.load() != seen || work_is_beside()) return;
                if (const uint64_t call = calls.load(); call != self.heard.load(std::memory_order_relaxed)) self.heard = call;
                relax();
            }
        }
        std::unique_lock<std::mutex> held(lock);
        ++sleepers;
        wake.wait(held, [&] { return generation.load() != seen || work_is_beside(); });
        --sleepers;
    }

    void serve(Worker& self, size_t me, uint64_t seen) {
        self.id = this_thread();
        in_task = true;
        flush_denormals_here();
        while (!ending.load()) {
            ++inside;
            if (open.load()) {
                flush_denormals_here();
                job_stopped = &stopped;
                work(me);
                job_stopped = nullptr;  // what goes on beside is another's
                ThreadScratch::drop_large();
            }
            --inside;
            while (work_beside()) ThreadScratch::drop_large();
            wait_for_news(self, seen);
            seen = generation.load();
        }
    }

    // Whether all workers wait, and answer at once: some are on another processor, which takes several times as
    // long to hand over memory, and some wait for a processor themselves. With `busy` held.
    bool all_answer() {
        if (workers.size() != asked_for || sleepers.load() > 0) return false;
        const uint64_t call = ++calls;
        const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(near.load());
        for (auto& w : workers)
            while (w->heard.load() != call) {
                if (std::chrono::steady_clock::now() > until) return false;
                relax();
            }
        return true;
    }

    void announce() {
        ++generation;
        if (sleepers.load() > 0) {
            std::lock_guard<std::mutex> held(lock);
            wake.notify_all();
        }
    }

    // Where the system refuses a thread (a limit on processes or memory) there are fewer, and once in a while it is
    // asked again. With `busy` held.
    void resize(size_t n) {
        const auto now = std::chrono::steady_clock::now;
        if (workers.size() == n || (n == asked_for && now() < retry)) return;
        ending = true;
        announce();
        for (auto& w : workers) w->thread.join();
        workers.clear();
        ending = false;
        asked_for = n;
        const uint64_t seen = generation.load();
        try {
            shares = std::vector<Share>(n + 1);
            workers.reserve(n);
            while (workers.size() < n) {
                auto w = std::make_unique<Worker>();
                const size_t me = workers.size() + 1;
                w->thread = std::thread([this, self = w.get(), me, seen] { serve(*self, me, seen); });
                workers.push_back(std::move(w));
            }
        } catch (const std::exception&) {
            retry = now() + RETRY;
        }
        shares.resize(workers.size() + 1);
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
        if (!stopped.exchange(false)) return;
        std::rethrow_exception(std::exchange(thrown, nullptr));
    }
};

// Never destroyed: threads may still wait in it when the process ends.
Pool* pool = new Pool;
std::atomic<int> wanted{1}, simulated{0};
double saved = 0;  // seconds, by the threads that are simulated
std::atomic<bool> flush{false};
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
        auto start = Clock::now();
        job.piece(i);
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

void set_near(int64_t nanoseconds) { near = nanoseconds; }

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

unsigned flush_denormals_here(unsigned which) {
#if defined(__x86_64__)
    const unsigned state = _mm_getcsr(), now = (state & ~FLUSH_BOTH) | (which & FLUSH_BOTH);
    if (now != state) _mm_setcsr(now);
    return state & FLUSH_BOTH;
#else
    return (void)which, 0;
#endif
}

void flush_denormals_here() { flush_denormals_here(flush ? FLUSH_BOTH : 0); }

namespace {

// While this lives, the pool is the caller's, and what its pieces call in turn runs in one thread.
struct Turn {
    std::unique_lock<std::mutex> busy;
    explicit Turn(bool wants) {
        if (wants) busy = std::unique_lock<std::mutex>(pool->busy, std::try_to_lock);
        in_task = true;
    }
    ~Turn() { in_task = false; }
};

}  // namespace

bool pool_listens(bool waking) {
    const int count = threads();
    if (count < 2 || simulated || in_task) return false;
    std::unique_lock<std::mutex> busy(pool->busy, std::try_to_lock);
    if (!busy.owns_lock()) return false;
    pool->resize(size_t(count - 1));
    const int here = processor();
    for (auto& w : pool->workers) w->keep_off(here);
    return waking ? !pool->workers.empty() : size_t(pool->sleepers.load()) < pool->workers.size();
}

void call_pool() {
    if (pool->sleepers.load() > 0) pool->announce();
}

namespace {

// Of the thread that calls: whether it is brisk and all workers answered, and what it knows of the times before.
struct Pace {
    bool brisk = false;
    std::chrono::steady_clock::time_point last{};
    uint64_t woken = 0;           // the pool's generation after it was woken
    int patience = 0, left = 0;   // times that it is not woken: it did nothing after the last ones

    void wake() {
        if (std::chrono::steady_clock::now() - last > SPIN || left-- > 0) return;
        patience = pool->generation.load() == woken ? std::min(2 * patience + 1, 1000) : 0;
        left = patience;
        pool->announce();
        woken = pool->generation.load();
    }
};
thread_local Pace pace;

}  // namespace

bool all_awake() { return pace.brisk && !in_task && pool->sleepers.load(std::memory_order_relaxed) == 0; }

Brisk::Brisk() : first(!pace.brisk && !in_task && !simulated && threads() > 1) {
    if (!first) return;
    const std::unique_lock<std::mutex> busy(pool->busy, std::try_to_lock);
    if (!busy.owns_lock() || pool->workers.size() + 1 != size_t(threads())) return;
    pace.brisk = pool->all_answer() || pool->all_answer();
    if (pool->sleepers.load() > 0) pace.wake();
}

Brisk::~Brisk() {
    if (!first) return;
    pace.brisk = false;
    pace.last = std::chrono::steady_clock::now();
}

void run_parallel(int64_t n, int64_t grain, Task task, void* context) {
    const int64_t most = grain > 0 ? (n + grain - 1) / grain : n, count = threads();
    if (most <= 1 || in_task) return task(context, 0, n);
    const int64_t short_ones = std::min(MOST_PIECES, most / GRAINS_PER_PIECE);
    const bool small = most < AWAKE * count * PIECES_PER_THREAD && all_awake();
    const int64_t each = small ? PIECES_AWAKE : PIECES_PER_THREAD;
    const int64_t pieces = std::min(most, std::max(count * each, short_ones));
    const int64_t grains = (most + pieces - 1) / pieces;
    const int64_t step = grains * (grain > 0 ? grain : 1);
    const Job job{task, context, n, step, (n + step - 1) / step};
    const Turn turn(count > 1);
    if (!turn.busy.owns_lock()) {
        for (int64_t i = 0; i < job.pieces; ++i) {
            job.piece(i);
            listen();
        }
    } else if (simulated) {
        saved += simulate(job, int(count));
    } else {
        pool->resize(size_t(count - 1));
        pool->run(job);
    }
}

}  // namespace fw
