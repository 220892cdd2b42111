// CUDA's driver as CuPy and the native launcher call it: kernels are counted, by name, and not run; sizes that no device
// takes are refused.
#include <cstddef>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

extern "C" {

int inert_device();
int inert_is_capturing();
extern int inert_mode;

static std::map<std::string, long> launches;
static std::map<std::string, std::string*> names;
static std::mutex guard;
long inert_launches(const char* name) {
    long sum = 0;
    for (auto& l : launches)
        if (!name || l.first == name) sum += l.second;
    return sum;
}
void inert_clear_launches() { launches.clear(); }

int cuGetErrorName(int status, const char** text) {
    static thread_local char name[32];
    snprintf(name, sizeof name, "CUDA_ERROR_%d", status);
    *text = name;
    return 0;
}
int cuGetErrorString(int status, const char** text) { return cuGetErrorName(status, text); }
int cuCtxGetCurrent(void** context) { *context = reinterpret_cast<void*>(size_t(0x10 + inert_device())); return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxGetDevice(int* device) { *device = inert_device(); return 0; }
int cuThreadExchangeStreamCaptureMode(int* mode) { const int before = inert_mode; inert_mode = *mode; *mode = before; return 0; }
int cuModuleLoadData(void** module, const void*) {
    constexpr int CAPTURE_UNSUPPORTED = 900;
    if (inert_is_capturing() && inert_mode != 2) return CAPTURE_UNSUPPORTED;
    *module = &launches;
    return 0;
}
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** function, void*, const char* name) {
    std::lock_guard<std::mutex> lock(guard);
    std::string*& known = names[name];
    if (!known) known = new std::string(name);
    *function = known;
    return 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void*, void**, void**) {
    std::lock_guard<std::mutex> lock(guard);
    const std::string& name = *static_cast<std::string*>(function);
    ++launches[name];
    const bool fits = gx && gy && gz && bx && by && bz && gx < 1u << 31 && gy < 1 << 16 && gz < 1 << 16 && bx * by * bz <= 1024 &&
                      shared <= 48 << 10;
    if (!fits) fprintf(stderr, "[inert] %s: blocks %u %u %u, threads %u %u %u, shared %u\n", name.c_str(), gx, gy, gz, bx, by, bz, shared);
    return fits ? 0 : 1;
}
int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void* stream, void** values) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, values, nullptr);
}
int cuFuncGetAttribute(int* value, int, void*) { *value = 0; return 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, void*, int, size_t) { *n = 2; return 0; }
int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void*, void*, size_t, int) { *grid = 264; *block = 256; return 0; }

}  // extern "C"
