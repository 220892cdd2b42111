"""Training steps on a real CuPy that computes nothing (README.md): launches, waits and copies of a step, and
whether it can be recorded as a CUDA graph, with steps before that or by itself."""

import warnings

import inert  # before the framework
from device_steps import STEPS, Run

import framework as fw

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy", "pageable")
COPIES = ("cudaMemcpyAsync", "cudaMemsetAsync", "cudaMalloc", "cudaFree", "cudaEventQuery")

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    fw.backends.cudnn.enabled = False
    for name in STEPS:
        run = Run(name, "cuda")
        for _ in range(3):
            run.step()
        inert.clear()
        run.step()
        print(name, inert.launches(), "launches, waits", inert.calls(*WAITS), "copies", inert.calls(*COPIES))
        for mode in ("global", "thread_local", "relaxed"):
            with fw.cuda.graph(graph := fw.cuda.CUDAGraph(), capture_error_mode=mode):
                run.step()
            inert.clear()
            graph.replay()
            print("  recorded in mode", mode, inert.launches(), "launches", inert.calls(*WAITS))
