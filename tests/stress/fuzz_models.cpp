// Damaged model files: each must give an error or a model that runs. No crash, no read out of bounds.
//
//     fuzz_models COUNT SEED model.fwk ...      (tests/stress/fuzz_models.sh builds it with the address sanitizer)
//
// Words of the program are changed, bytes are flipped, files are cut; most get a checksum that fits, so that what
// stands behind it is met. What loads is run at two sizes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "library/framework.h"

namespace {

using Bytes = std::vector<char>;
std::mt19937_64 rng;
int64_t any(int64_t n) { return n > 0 ? int64_t(rng() % uint64_t(n)) : 0; }

// No more than this at once: sizes of damaged files ask for anything.
constexpr size_t MOST = size_t(32) << 20;
size_t taken = 0;
void* take(size_t bytes, void*) {
    if (bytes > MOST || taken + bytes > 4 * MOST) return nullptr;
    __atomic_add_fetch(&taken, bytes, __ATOMIC_RELAXED);
    return std::aligned_alloc(4096, bytes);
}
void give_back(void* p, size_t bytes, void*) {
    __atomic_sub_fetch(&taken, bytes, __ATOMIC_RELAXED);
    std::free(p);
}

Bytes read(const char* path) {
    std::FILE* f = std::fopen(path, "rb");
    if (!f) std::exit(2);
    Bytes b(1 << 22);
    b.resize(std::fread(b.data(), 1, b.size(), f));
    std::fclose(f);
    return b;
}

uint32_t checksum(const Bytes& b) {
    static const auto table = [] {
        std::array<uint32_t, 256> t{};
        for (uint32_t i = 0; i < 256; ++i) {
            t[i] = i;
            for (int k = 0; k < 8; ++k) t[i] = (t[i] >> 1) ^ (t[i] & 1 ? 0xedb88320u : 0);
        }
        return t;
    }();
    uint32_t crc = ~0u;
    for (size_t i = 16; i < b.size(); ++i) crc = (crc >> 8) ^ table[(crc ^ (unsigned char)b[i]) & 255];
    return ~crc;
}

int64_t interesting() {
    static const int64_t some[] = {0, 1, 2, 3, 4, 7, 8, 16, 63, 64, 255, -1, -2, INT32_MAX, INT64_MAX, INT64_MIN, int64_t(1) << 32,
                                   int64_t(1) << 40, (int64_t(1) << 62) - 1, 4096};
    return any(3) ? some[any(int64_t(sizeof some / sizeof *some))] : int64_t(rng() >> any(64));
}

void damage(Bytes& b, const Bytes& other) {
    for (int64_t n = 1 + any(4); n > 0; --n) {
        uint64_t words = 0;
        if (b.size() >= 32) std::memcpy(&words, b.data() + 24, 8);
        words = std::min<uint64_t>(words, b.size() > 64 ? (b.size() - 64) / 8 : 0);
        const int64_t kind = any(16);
        if (kind < 8 && words) {
            char* p = b.data() + 64 + 8 * any(int64_t(words));
            int64_t w;
            std::memcpy(&w, p, 8);
            w = any(2) ? interesting() : int64_t(uint64_t(w) + uint64_t(any(5)) - 2);
            std::memcpy(p, &w, 8);
        } else if (kind < 10 && words) {  // two words change places
            char *p = b.data() + 64 + 8 * any(int64_t(words)), *q = b.data() + 64 + 8 * any(int64_t(words));
            char t[8];
            std::memcpy(t, p, 8), std::memmove(p, q, 8), std::memcpy(q, t, 8);
        } else if (kind < 12 && !b.empty()) {
            b[size_t(any(int64_t(std::min<size_t>(b.size(), 64 + 8 * words))))] ^= char(1 << any(8));
        } else if (kind == 12) {
            b.resize(size_t(any(int64_t(b.size()) + 1)));
        } else if (kind == 13 && words > 8 && other.size() > 256) {  // a piece of another model
            const size_t from = 64 + 8 * size_t(any(int64_t((other.size() - 128) / 8))), to = 64 + 8 * size_t(any(int64_t(words)));
            const size_t size = std::min({size_t(8 * (1 + any(12))), other.size() - from, b.size() - to});
            std::memcpy(b.data() + to, other.data() + from, size);
        } else if (kind == 14 && b.size() > 64) {
            const int64_t w = interesting();
            std::memcpy(b.data() + 16 + 8 * any(3), &w, 8);
        } else if (words) {  // words are left out or said twice
            const size_t at = 64 + 8 * size_t(any(int64_t(words))), size = 8 * size_t(1 + any(6));
            if (at + size < b.size()) std::memmove(b.data() + at, b.data() + at + size, b.size() - at - size);
        }
    }
    if (b.size() > 64 && any(16)) {
        const uint64_t size = b.size();
        std::memcpy(b.data() + 16, &size, 8);
        const uint32_t sum = checksum(b);
        std::memcpy(b.data() + 12, &sum, 4);
    }
}

// Whether it ran at some size.
bool run(framework_model* model) {
    framework_request* request = nullptr;
    if (framework_request_new(model, &request) != FW_OK) return false;
    bool ran = false;
    const int ins = framework_model_inputs(model), outs = framework_model_outputs(model);
    for (int64_t size = 1; size <= 2; ++size) {
        std::vector<std::vector<int64_t>> shapes(static_cast<size_t>(ins)), strides(static_cast<size_t>(ins));
        std::vector<Bytes> data(static_cast<size_t>(ins));
        std::vector<fw_view> views(size_t(ins) + 1), results(size_t(outs) + 1);
        bool small = true;
        for (int i = 0; i < ins && small; ++i) {
            framework_port port;
            if (framework_model_input(model, i, &port) != FW_OK) std::abort();
            static const int64_t bytes[] = {4, 8, 2, 8, 4, 1, 1, 1};
            int64_t count = 1;
            const size_t at = size_t(i);
            shapes[at].assign(port.shape, port.shape + port.ndim);
            for (int64_t& n : shapes[at]) {
                if (n < 0) n = size;
                if (count > (1 << 20) / n) small = false;
                else count *= n;
            }
            if (!small) break;
            data[at].resize(size_t(count * bytes[port.type]) + 1);
            for (char& c : data[at]) c = any(4) ? 0 : char(rng());
            int64_t step = bytes[port.type];
            strides[at].resize(shapes[at].size());
            for (size_t d = shapes[at].size(); d-- > 0; step *= shapes[at][d]) strides[at][d] = step;
            views[at] = {data[at].data(), port.type, port.ndim, shapes[at].data(), strides[at].data()};
        }
        framework_message why;
        if (small && framework_model_run(request, views.data(), ins, results.data(), outs, &why) == FW_OK) ran = true;
    }
    framework_request_free(request);
    return ran;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const int64_t count = std::atoll(argv[1]);
    rng.seed(uint64_t(std::atoll(argv[2])));
    const fw_allocator bounded = {take, give_back, nullptr};
    fw_set_allocator(&bounded);
    fw_set_threads(1);
    std::vector<Bytes> files;
    for (int i = 3; i < argc; ++i) files.push_back(read(argv[i]));
    int64_t loaded = 0, ran = 0;
    for (int64_t i = 0; i < count; ++i) {
        const Bytes& seed = files[size_t(any(int64_t(files.size())))];
        Bytes b = seed;
        damage(b, files[size_t(any(int64_t(files.size())))]);
        if (const char* keep = std::getenv("FUZZ_KEEP")) {  // the file at work, for whoever looks at a crash
            std::FILE* f = std::fopen(keep, "wb");
            if (!f) return 2;
            std::fwrite(b.data(), 1, b.size(), f);
            std::fclose(f);
        }
        framework_model* model = nullptr;
        framework_message why;
        // in memory of its own, so that a read behind its end is seen
        char* exact = static_cast<char*>(std::malloc(b.size() + !b.size()));
        if (!b.empty()) std::memcpy(exact, b.data(), b.size());
        if (framework_model_read(exact, b.size(), &model, &why) == FW_OK) {
            ++loaded;
            ran += run(model);
            framework_model_free(model);
        } else if (model || !why.text[0]) {
            std::abort();  // an error says why, and leaves no model
        }
        std::free(exact);
    }
    std::printf("%lld damaged files: %lld errors, %lld loaded, of which %lld ran\n", (long long)count,
                (long long)(count - loaded), (long long)loaded, (long long)ran);
}
