#!/usr/bin/env bash
# The kernels on ARM: cross-compiled, looked at, and run by the tests under user-mode emulation.
#
#     tests/stress/arm.sh [FOLDER] [TESTS...]
#
# FOLDER (default build/arm) keeps what is fetched and built. TESTS: files of tests to run, default the list below.
# Needs of Debian: apt-get install qemu-user-static g++-aarch64-linux-gnu cmake ninja-build, and a Python with nanobind
# and NumPy (PYTHON, default python) of the version that this Debian has as python3.x. The emulated Python comes from
# Debian's arm64 packages, which are unpacked into FOLDER and not installed; the wheels come by pip.
set -eu
cd "$(dirname "$0")/../.."
folder=$(realpath -m "${1:-build/arm}")
shift || true
tests=${*:-tests/test_quantization.py tests/test_float16.py tests/test_native_accuracy.py tests/test_native_bfloat16.py
    tests/test_native_gemm.py tests/test_native_norm.py tests/test_library.py tests/test_runtime.py}
python=${PYTHON:-python}
cross=aarch64-linux-gnu
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for tool in qemu-aarch64-static $cross-g++ cmake ninja apt-get dpkg; do
    command -v $tool >/dev/null || { echo "arm.sh: $tool is missing; see the head of this script" >&2; exit 1; }
done
mkdir -p "$folder"

echo "== an arm64 Python $version"
if [ ! -e "$folder/root/usr/bin/python$version" ]; then
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/debs"
    : >"$folder/apt/status"
    apt=(apt-get -qq -o Dir::State="$folder/apt" -o Dir::Cache="$folder/apt" -o Dir::State::status="$folder/apt/status"
        -o APT::Architecture=arm64 -o APT::Architectures=arm64)
    "${apt[@]}" update
    (cd "$folder/debs" && "${apt[@]}" download "python$version-minimal" "libpython$version-minimal" \
        "libpython$version-stdlib" libc6 libstdc++6 libgcc-s1 libexpat1 zlib1g libffi8 libssl3 libbz2-1.0 liblzma5 \
        libsqlite3-0 libuuid1 libcrypt1)
    for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder/root"; done
fi
cat >"$folder/python" <<END
#!/bin/sh
exec $(command -v qemu-aarch64-static) -L "$folder/root" "$folder/root/usr/bin/python$version" "\$@"
END
chmod +x "$folder/python"
[ -e "$folder/site/mpmath" ] || "$python" -m pip install -q --target "$folder/site" --only-binary=:all: \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    --python-version "$version" numpy pytest hypothesis tqdm ml_dtypes mpmath

echo "== building"
cat >"$folder/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER $cross-gcc)
set(CMAKE_CXX_COMPILER $cross-g++)
END
cmake -S framework/_native -B "$folder/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" \
    -DPython_EXECUTABLE="$("$python" -c 'import sys; print(sys.executable)')" >"$folder/cmake.log"
ninja -C "$folder/build" ${JOBS:+-j "$JOBS"} >"$folder/ninja.log" || { tail -30 "$folder/ninja.log" >&2; exit 1; }
mkdir -p "$folder/native"
cp "$folder"/build/libframework.so "$folder/native/"
for module in baseline processor; do  # CMake names them for the machine that it runs on
    cp "$folder/build/$module".*.so "$folder/native/$module.so"
done

echo "== instructions in the module: fused multiply-add, square root, conversions of halves, products of bytes"
$cross-objdump -d "$folder/native/baseline.so" >"$folder/code.txt"
for instruction in fmla fsqrt fcvtl fcvtn frintn sdot; do
    count=$(grep -cP "\t$instruction\t" "$folder/code.txt" || true)
    echo "$instruction $count"
    [ "$count" -gt 0 ] || { echo "arm.sh: there is no $instruction" >&2; exit 1; }
done

echo "== the C examples: one beside the same numbers of this machine, both beside Python there"
for example in example kernels; do
    $cross-gcc -O2 framework/_native/library/$example.c -Iframework/_native/library -L"$folder/native" -lframework \
        -o "$folder/$example"
    qemu-aarch64-static -L "/usr/$cross" -E LD_LIBRARY_PATH="/usr/$cross/lib:$folder/native" "$folder/$example" \
        >"$folder/$example.txt"
done
"$python" tests/stress/arm_compare.py "$folder/example.txt"
PYTHONPATH=$PWD:$folder/site FRAMEWORK_NATIVE_PATH=$folder/native OMP_NUM_THREADS=2 "$folder/python" \
    tests/stress/arm_compare.py --same "$folder/example.txt" "$folder/kernels.txt"

echo "== models by framework-run and by the examples in C and C++: exported here, then by Python there, whose bits they give"
ninja -C "$folder/build" framework-run >>"$folder/ninja.log"
library=framework/_native/library
$cross-gcc -O2 -std=c99 $library/classify.c -I$library -L"$folder/native" -lframework -o "$folder/classify"
$cross-g++ -O2 -std=c++17 $library/generate.cpp -I$library -Iframework/_native -L"$folder/native" -lframework -o "$folder/generate"
there="qemu-aarch64-static -L /usr/$cross -E LD_LIBRARY_PATH=/usr/$cross/lib:$folder/native"
models() {  # FOLDER COMPARED PYTHON...
    local to=$1 compared=$2
    shift 2
    rm -rf "$to" && mkdir "$to"
    for name in $("$@" tests/stress/arm_models.py write "$to"); do
        $there "$folder/build/framework-run" "$to/$name.fwk" "$to/$name.npy" --out "$to/$name-there"
    done
    $there "$folder/classify" "$to"/{cnn.fwk,photo.ppm,labels.txt} >"$to/photo-there.txt"
    $there "$folder/generate" "$to"/{gpt.fwk,characters.txt} "once upon" 40 >"$to/text-there.txt"
    "$python" tests/stress/arm_models.py "$compared" "$to"
}
models "$folder/models" compare "$python"
models "$folder/models-there" equal env PYTHONPATH="$PWD:$folder/site" FRAMEWORK_NATIVE_PATH="$folder/native" OMP_NUM_THREADS=2 \
    "$folder/python"

echo "== tests"
export PYTHONPATH=$PWD:$folder/site FRAMEWORK_NATIVE_PATH=$folder/native OMP_NUM_THREADS=2 PYTHONDONTWRITEBYTECODE=1
"$folder/python" -c "import platform, framework as fw
print(platform.machine(), fw._native.isa, sorted(fw._native.processor_flags()), fw._native.module.int8_way())"
# the compiler and what starts a Python of its own are this machine's: what needs them was done above, or is left out
mkdir -p "$folder/no"
PATH="$folder/no" "$folder/python" -m pytest -q -p no:cacheprovider \
    --deselect tests/test_library.py::test_memory_comes_from_the_caller \
    --deselect tests/test_library.py::test_the_instruction_set_is_the_one_that_is_named \
    --deselect tests/test_runtime.py::test_models_run_where_the_extra_of_bfloat16_is_missing $tests
