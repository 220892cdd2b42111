#!/usr/bin/env bash
# A real CuPy over a CUDA that does nothing, in a folder (README.md):   bash tests/inert/build.sh FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
mkdir -p "$1" && cd "$1" && out=$PWD
version=14.2.0
python3 -m venv venv
export PYTHON=$out/venv/bin/python
"$PYTHON" -m pip install -q "cupy-cuda13x[ctk]==$version" 'cython>=3.2,<3.3' setuptools nvidia-cuda-crt ml_dtypes numpy pytest hypothesis tqdm
CUPY_INSTALL_USE_STUB=1 "$PYTHON" -m pip download -q --no-deps --no-binary cupy -d . "cupy==$version"
tar xzf "cupy-$version.tar.gz"
packages=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
include=$packages/nvidia/cu13/include
mkdir -p site lib && cp -r "$packages/cupy_backends" site/
g++ -std=c++17 -O1 -w -fPIC -shared -I"$include" -o lib/libinert_cudart.so "$here/cudart.cpp"
g++ -std=c++17 -O1 -fPIC -shared -Wl,-soname,libcuda.so.1 -o lib/libcuda.so.1 "$here/driver.cpp" -Llib -linert_cudart "-Wl,-rpath,$out/lib"
"$PYTHON" "$here/libraries.py" "$include" "$packages/nvidia/cu13/lib" lib
gcc -w -O1 -fPIC -shared -Wl,-soname,libcublasLt.so.13 -o lib/libcublasLt.so.13 "$root/tests/standin/cupy/device/cublas_lt.c"
# CuPy's own binding of the runtime, linked to cudart.cpp instead of CUDA's
cd "cupy-$version"
"$PYTHON" - <<'P'
from Cython.Build import cythonize
from setuptools import Extension

source = Extension("cupy_backends.cuda.api.runtime", ["cupy_backends/cuda/api/runtime.pyx"], language="c++")
cythonize([source], language_level=3, quiet=True, compiler_directives={
    "embedsignature": True, "binding": False, "c_api_binop_methods": True, "warn.deprecated.IF": False,
    "freethreading_compatible": True}, compile_time_env={
    "CUPY_USE_CUDA_PYTHON": False, "CUPY_CUFFT_STATIC": False, "CUPY_CYTHON_VERSION": "3.2.4",
    "CUPY_CUDA_VERSION": 13020, "CUPY_HIP_VERSION": 0})
P
echo '#include <driver_types.h>
extern "C" { cudaError_t cudaProfilerStart(void); cudaError_t cudaProfilerStop(void); }' > cuda_profiler_api.h
python=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
g++ -O1 -w -fPIC -c cupy_backends/cuda/api/runtime.cpp -o runtime.o -I. -I"$include" -Icupy_backends -Icupy_backends/cuda -I"$python"
# functions that cudart.cpp leaves out say that they are not supported
nm -D --defined-only "$out/lib/libinert_cudart.so" | awk '{print $3}' | sort > have
nm -u runtime.o | awk '/cuda/ {print $2}' | sort | comm -23 - have | sed 's/.*/int &() { return 801; }/' > rest.c
gcc -w -fPIC -c rest.c -o rest.o
g++ -shared -o "$out"/site/cupy_backends/cuda/api/runtime.*.so runtime.o rest.o -L"$out/lib" -linert_cudart "-Wl,-rpath,$out/lib"
echo "export PYTHON=$out/venv/bin/python LD_LIBRARY_PATH=$out/lib PYTHONPATH=$out/site:$root INERT=$out/lib CUPY_CACHE_DIR=$out/cache" > "$out/env.sh"
