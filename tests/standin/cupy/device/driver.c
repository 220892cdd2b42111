/* NVIDIA's driver as far as launches go: a handle is what raw.py made of a kernel, and the engine runs it.
   `driver_does` 0: nothing is run, launches are only counted. */
#include <dlfcn.h>
#include <stddef.h>

struct handle { void (*run)(void**); int barriers; };
typedef int (*Engine)(void (*)(void**), const unsigned*, const unsigned*, size_t, void**, int, int);

int driver_does = 1, driver_backward = 0, driver_device = 0, driver_status = 0;
long driver_launches = 0;
void* driver_stream = 0;

int driver_mode = 0, driver_modes_set = 0;
int cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = driver_mode;
  driver_mode = *mode;
  *mode = before;
  ++driver_modes_set;
  return 0;
}

int cuCtxGetDevice(int* device) {
  *device = driver_device;
  return driver_device < 0 ? 201 : 0; /* no context in this thread yet */
}

int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** values, void** extra) {
  static Engine engine;
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  const struct handle* kernel = function;
  (void)extra;
  driver_stream = stream;
  ++driver_launches;
  if (driver_status || !driver_does) return driver_status;
  if (!engine) engine = (Engine)dlsym(RTLD_DEFAULT, "cuda_on_cpu_launch");
  if (!engine) return 500;
  return engine(kernel->run, grid, block, shared, values, kernel->barriers, driver_backward) ? 719 : 0;
}
