"""Which graphs of framework.backends.cudnn_graphs cuDNN has plans for on an H100, asked without a GPU.

    pip install --no-deps nvidia-cudnn-frontend nvidia-cudnn-cu13 nvidia-cublas nvidia-cuda-nvrtc
    python tests/cudnn_plans.py      # one line for each graph: its name, and the bytes it works in or why not

cuDNN makes plans from a description of a device. It only wants libcuda and libcudart to be loadable, so stubs
of both whose functions fail are compiled, and this program starts itself again with them in front.
"""

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from itertools import product
from pathlib import Path

H100 = {
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
    "multiProcessorCount": 132, "smCountOrigin": 0, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448, "oversizedSharedMemoryPerBlock": 0,
    "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
    "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "memoryBusWidth": 5120,
    "l2CacheSize": 52428800, "deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0, "deviceVer": 900,
    "driverVer": 13000, "totalGlobalMem": 85520809984}
DRIVER = (
    "GetErrorString ModuleGetFunction ModuleLoadData ModuleUnload TensorMapEncodeIm2col "
    "TensorMapEncodeTiled CtxGetCurrent CtxGetLimit CtxPopCurrent CtxPushCurrent StreamGetCtx "
    "LinkCreate LinkAddData LinkComplete LinkDestroy LaunchKernel LaunchCooperativeKernel "
    "LaunchKernelEx DeviceGetCount DeviceGet LibraryLoadData LibraryLoadFromFile LibraryGetKernel "
    "LibraryUnload KernelSetAttribute KernelGetAttribute KernelGetFunction "
    "OccupancyMaxPotentialClusterSize GetErrorName GetProcAddress GetProcAddress_v2 "
)
RUNTIME = """
int cudaGetDevice(int* d) { *d = 0; return 0; }
int cudaSetDevice(int d) { return 0; }
int cudaGetDeviceCount(int* n) { *n = 1; return 0; }
int cudaGetLastError(void) { return 0; }
const char* cudaGetErrorString(int e) { return "stub"; }
const char* cudaGetErrorName(int e) { return "stub"; }
int cudaDeviceGetAttribute(int* v, int a, int d) {
  *v = a == 75 ? 9 : a == 16 ? 132 : a == 97 ? 232448 : a == 8 ? 49152 : 0;
  return 0;
}
int cudaRuntimeGetVersion(int* v) { *v = 13000; return 0; }
int cudaDriverGetVersion(int* v) { *v = 13000; return 0; }
int cudaStreamSynchronize(void* s) { return 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaGetDeviceProperties(char* p, int d) {  /* CUDA 13's struct: major, minor, multiprocessors, warp */
  for (int i = 0; i < 1008; ++i) p[i] = 0;
  *(int*)(p + 360) = 9; *(int*)(p + 384) = 132; *(int*)(p + 308) = 32;
  return 0;
}
int cudaGetDeviceProperties_v2(char* p, int d) { return cudaGetDeviceProperties(p, d); }
"""


def environment(folder: Path) -> dict:
    """The environment in which cuDNN can be loaded: stubs in ``folder``, NVIDIA's packages behind them."""
    import nvidia

    driver = "".join(f"int cu{name}(void) {{ return 3; }}\n" for name in DRIVER.split())
    driver += "int cuInit(unsigned f) { return 100; }\n"
    driver += "int cuDriverGetVersion(int* v) { *v = 13000; return 0; }\n"
    for name, text in (("libcuda.so.1", driver), ("libcudart.so.13", RUNTIME)):
        source = folder / "stub.c"
        source.write_text(text)
        command = ["gcc", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", folder / name, source]
        subprocess.run(command, check=True)
    roots = [f"{root}/{part}" for root in nvidia.__path__ for part in ("cu13/lib", "cudnn/lib")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join([str(folder), *roots]), "CUDNN_STUBS": "1"}


ASKED = ((False, True), (True, True), (False, False))  # the same bits each time, TF32 will do


def rows(shape):
    """In rows."""
    strides = [1]
    for s in reversed(shape[1:]):
        strides.append(strides[-1] * s)
    return tuple(strides[::-1])


def channels_last(shape):
    """With channels last."""
    n, c, *space = shape
    inner = rows((n, *space, c))
    return (inner[0], 1, *inner[1:-1])


CONVOLUTIONS = {  # image, weight, padding, stride, dilation
    "3x3": ((64, 64, 56, 56), (128, 64, 3, 3), (1, 1), (1, 1), (1, 1)),
    "stem": ((64, 3, 224, 224), (64, 3, 7, 7), (3, 3), (2, 2), (1, 1)),
    "1x1": ((64, 256, 56, 56), (256, 256, 1, 1), (0, 0), (1, 1), (1, 1)),
    "depthwise": ((64, 128, 56, 56), (128, 1, 3, 3), (1, 1), (1, 1), (1, 1)),
    "groups": ((64, 128, 28, 28), (128, 32, 3, 3), (1, 1), (2, 2), (1, 1)),
    "dilated": ((8, 64, 28, 28), (64, 64, 3, 3), (2, 2), (1, 1), (2, 2)),
    "odd": ((8, 5, 28, 28), (7, 5, 3, 3), (1, 1), (1, 1), (1, 1)),
    "3d": ((4, 32, 16, 28, 28), (64, 32, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    "1d": ((8, 16, 1, 100), (32, 16, 1, 5), (2,), (1,), (1,)),
    "patches": ((64, 3, 224, 224), (384, 3, 16, 16), (0, 0), (16, 16), (1, 1)),
}


def graphs(graph_module, module, place):
    """(name, a function that makes (graph, operands), what is asked of it)."""
    laid = graph_module.Laid
    for name, (x, w, *windows) in CONVOLUTIONS.items():
        spaces = zip(x[-len(windows[0]):], w[-len(windows[0]):], *windows)
        out = tuple([(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, p, t, d in spaces])
        y = (x[0], w[0], *((1,) * (len(x) - 2 - len(out))), *out)
        for char in "Ef":
            for lie in (channels_last, rows) if name == "3x3" else (channels_last,):
                a, b, c = (laid(shape, lie(shape)) for shape in (x, w, y))
                for kind, how in (("fprop", (a, b, c)), ("dgrad", (c, b, a)), ("wgrad", (a, c, b))):
                    forward = kind == "fprop"
                    for relu in (False, True) if forward else (False,):
                        make = partial(graph_module.conv_graph, module, char, kind, *how, forward, relu,
                                       tuple(windows), place)
                        for asked in ASKED if name == "3x3" else ASKED[:1]:
                            said = " relu" * relu + " same bits" * asked[0] + " no TF32" * (not asked[1])
                            yield f"conv {name} {kind} {char} {lie.__name__}{said}", make, asked
    for shape in ((64, 64, 56, 56), (200704, 64, 1, 1), (64, 128, 1, 1), (4, 32, 16, 28, 28)):
        for way, char in product(("forward", "backward"), "feE"):
            how = laid(shape, channels_last(shape))
            make = partial(graph_module.norm_graph, module, char, how, way == "backward", place)
            for asked in ASKED[:2]:
                yield f"batch norm {way} {char} {shape}{' same bits' * asked[0]}", make, asked
    for char, length, features in (("E", 256, 64), ("e", 197, 64), ("E", 64, 20)):
        shape = (8, 6, length, features)
        heads = laid(shape, (6 * length * features, features, 6 * features, 1))
        lse = laid((8, 6, length, 1), (6 * length, length, 1, 1))
        ways = ("forward", (*(heads,) * 4, lse)), ("backward", (*(heads,) * 4, lse, *(heads,) * 4))
        for name, how in ways:
            make = partial(graph_module.attention_graph, module, char, how, char == "E", 0.125, False, place)
            yield f"attention {name} {char} {length} {features}", make, ASKED[0]


def main() -> int:
    """Print a line for each graph."""
    if not os.environ.get("CUDNN_STUBS"):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([sys.executable, *sys.argv], env=environment(Path(folder))).returncode
    import cudnn

    from framework.backends import cudnn_graphs

    place = {"device_property": cudnn.create_device_properties(json.dumps(H100))}
    for name, make, asked in graphs(cudnn_graphs, cudnn, place):
        try:
            plan = cudnn_graphs.planned(cudnn, *make(), asked)
            print(f"{name}: {plan.workspace} bytes", flush=True)
        except cudnn.cudnnGraphNotSupportedError as error:
            print(f"{name}: no plan ({str(error).splitlines()[0][:100]})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
