// CUDA's runtime as CuPy calls it, over the host's memory: work is done at once or not at all, and what CUDA refuses in
// a capture is refused. `inert_count(name)` says how often a function was called.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

struct Block {
    size_t size;
    int device;
};

std::recursive_mutex guard;
std::map<std::string, long> calls;
std::map<char*, Block> blocks;   // of devices
std::map<char*, size_t> pinned;  // of the host
std::map<cudaStream_t, int> capturing;  // and the mode
std::set<cudaStream_t> broken;          // captures that something has ended
std::set<cudaEvent_t> recorded;         // marks in a capture
size_t in_use[16];
long handles = 0x1000;
thread_local int device = 0;
thread_local cudaError_t last = cudaSuccess;

size_t number(const char* name, size_t otherwise) { return getenv(name) ? strtoull(getenv(name), nullptr, 10) : otherwise; }
int devices() { return int(number("INERT_DEVICES", 1)); }
size_t total() { return number("INERT_MEMORY", size_t(8) << 30); }
cudaError_t fail(cudaError_t error) { return last = error; }
template <class T> T handle() { return reinterpret_cast<T>(handles += 0x100); }

void* taken(size_t size) {
    void* p = nullptr;
    if (posix_memalign(&p, 512, size ? size : 1)) return nullptr;
    return memset(p, 0, size);
}
int device_of(const void* p) {
    auto it = blocks.upper_bound(const_cast<char*>(static_cast<const char*>(p)));
    if (it == blocks.begin()) return -1;
    --it;
    return static_cast<const char*>(p) < it->first + it->second.size ? it->second.device : -1;
}
bool is_pinned(const void* p) {
    auto it = pinned.upper_bound(const_cast<char*>(static_cast<const char*>(p)));
    if (it == pinned.begin()) return false;
    --it;
    return static_cast<const char*>(p) < it->first + it->second;
}
cudaError_t copied(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
    if (!n) return cudaSuccess;
    const bool there = device_of(to) >= 0, here = device_of(from) >= 0;
    if ((kind == cudaMemcpyHostToDevice && (!there || here)) || (kind == cudaMemcpyDeviceToHost && (there || !here)) ||
        (kind == cudaMemcpyDeviceToDevice && !(there && here)))
        return fail(cudaErrorInvalidValue);
    memmove(to, from, n);
    return cudaSuccess;
}

}  // namespace

extern "C" {

int inert_mode = 0;  // of this thread: 2 anything goes in a capture
int inert_device() { return device; }
int inert_is_capturing() { return !capturing.empty(); }
long inert_count(const char* name) { return calls[name]; }
void inert_clear() { calls.clear(); }

// A call that captures other than relaxed ones do not survive.
static bool unsafe(const char* name) {
    bool found = false;
    for (auto& c : capturing)
        if (c.second != cudaStreamCaptureModeRelaxed && inert_mode != 2) broken.insert(c.first), found = true;
    if (found) fprintf(stderr, "[inert] %s in a capture\n", name);
    return found;
}

#define CALLED std::lock_guard<std::recursive_mutex> lock(guard); ++calls[__func__]
#define UNSAFE CALLED; if (unsafe(__func__)) return fail(cudaErrorStreamCaptureUnsupported)

const char* cudaGetErrorName(cudaError_t e) {
    static thread_local char text[64];
    const char* name = e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : e == cudaErrorStreamCaptureUnsupported ?
        "cudaErrorStreamCaptureUnsupported" : e == cudaErrorStreamCaptureInvalidated ? "cudaErrorStreamCaptureInvalidated" : nullptr;
    if (name) return name;
    snprintf(text, sizeof text, "cudaError%d", int(e));
    return text;
}
const char* cudaGetErrorString(cudaError_t e) { return cudaGetErrorName(e); }
cudaError_t cudaGetLastError() { cudaError_t e = last; last = cudaSuccess; return e; }
cudaError_t cudaDriverGetVersion(int* v) { *v = 13000; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { *v = 13020; return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* n) { *n = devices(); return cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { CALLED; *d = device; return cudaSuccess; }
cudaError_t cudaSetDevice(int d) { CALLED; if (d < 0 || d >= devices()) return fail(cudaErrorInvalidDevice); device = d; return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { UNSAFE; return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int d) {
    static const std::map<int, int> known{
        {cudaDevAttrComputeCapabilityMajor, 9}, {cudaDevAttrComputeCapabilityMinor, 0}, {cudaDevAttrMaxThreadsPerBlock, 1024},
        {cudaDevAttrMultiProcessorCount, 132}, {cudaDevAttrWarpSize, 32}, {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
        {cudaDevAttrMaxGridDimX, 2147483647}, {cudaDevAttrMaxGridDimY, 65535}, {cudaDevAttrMaxGridDimZ, 65535}};
    if (d < 0 || d >= devices()) return fail(cudaErrorInvalidDevice);
    *v = known.count(a) ? known.at(a) : 1;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int d) {
    if (d < 0 || d >= devices()) return fail(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    strcpy(p->name, "inert H100");
    p->major = 9, p->totalGlobalMem = total(), p->multiProcessorCount = 132, p->warpSize = 32, p->maxThreadsPerBlock = 1024;
    p->sharedMemPerBlock = 49152, p->maxThreadsPerMultiProcessor = 2048, p->regsPerBlock = 65536;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* s, int n, int d) { snprintf(s, n, "0000:%02X:00.0", d); return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* v, int a, int b) { *v = a != b; return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaMalloc(void** p, size_t n) {
    UNSAFE;
    if (in_use[device] + n > total() || !(*p = taken(n))) return fail(cudaErrorMemoryAllocation);
    in_use[device] += n;
    blocks[static_cast<char*>(*p)] = {n, device};
    return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
    if (!p) return cudaSuccess;
    UNSAFE;
    auto it = blocks.find(static_cast<char*>(p));
    if (it == blocks.end()) return fail(cudaErrorInvalidValue);
    in_use[it->second.device] -= it->second.size;
    blocks.erase(it);
    free(p);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) { UNSAFE; *p = taken(n); pinned[static_cast<char*>(*p)] = n; return cudaSuccess; }
cudaError_t cudaFreeHost(void* p) { UNSAFE; pinned.erase(static_cast<char*>(p)); free(p); return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) { *t = total(); *f = total() - in_use[device]; return cudaSuccess; }
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind) { UNSAFE; return copied(to, from, n, kind); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t stream) {
    CALLED;
    const void* host = kind == cudaMemcpyHostToDevice ? from : kind == cudaMemcpyDeviceToHost ? to : nullptr;
    if (host && !is_pinned(host)) {
        ++calls["pageable"];
        if (capturing.count(stream)) return broken.insert(stream), fail(cudaErrorStreamCaptureUnsupported);
    }
    return copied(to, from, n, kind);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) { UNSAFE; memmove(to, from, n); return cudaSuccess; }
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, cudaStream_t) { CALLED; memmove(to, from, n); return cudaSuccess; }
cudaError_t cudaMemset(void* p, int v, size_t n) { CALLED; memset(p, v, n); return cudaSuccess; }
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t) { CALLED; memset(p, v, n); return cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    memset(a, 0, sizeof *a);
    const int d = device_of(p);
    a->type = d >= 0 ? cudaMemoryTypeDevice : is_pinned(p) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    a->device = d < 0 ? 0 : d;
    (d >= 0 ? a->devicePointer : a->hostPointer) = const_cast<void*>(p);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int) { UNSAFE; *s = handle<cudaStream_t>(); return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { CALLED; return cudaSuccess; }
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* f) { *f = 1; return cudaSuccess; }
cudaError_t cudaStreamGetPriority(cudaStream_t, int* p) { *p = 0; return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    CALLED;
    if (capturing.count(s)) return broken.insert(s), fail(cudaErrorStreamCaptureUnsupported);
    return unsafe(__func__) ? fail(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { UNSAFE; return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { CALLED; return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t f, void* given) { f(given); return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
    CALLED;
    if (!s || capturing.count(s)) return fail(cudaErrorIllegalState);
    capturing[s] = mode;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
    CALLED;
    if (!capturing.erase(s)) return fail(cudaErrorIllegalState);
    recorded.clear();
    *graph = nullptr;
    if (broken.erase(s)) return fail(cudaErrorStreamCaptureInvalidated);
    *graph = handle<cudaGraph_t>();
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* v) {
    *v = capturing.count(s) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { CALLED; *e = handle<cudaEvent_t>(); return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* t, cudaEvent_t, cudaEvent_t) { *t = 1; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { CALLED; capturing.count(s) ? (void)recorded.insert(e) : (void)recorded.erase(e); return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t e) { if (recorded.count(e)) return fail(cudaErrorCapturedEvent); UNSAFE; return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { if (recorded.count(e)) return fail(cudaErrorCapturedEvent); UNSAFE; return cudaSuccess; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t graph, unsigned long long) { *e = handle<cudaGraphExec_t>(); return graph ? cudaSuccess : fail(cudaErrorInvalidValue); }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { CALLED; return cudaSuccess; }
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { CALLED; return cudaSuccess; }
cudaError_t cudaProfilerStart() { CALLED; return cudaSuccess; }
cudaError_t cudaProfilerStop() { CALLED; return cudaSuccess; }

}  // extern "C"
