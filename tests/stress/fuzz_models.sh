#!/usr/bin/env bash
# Damaged model files under the address sanitizer: builds libframework into build/fuzzed (baseline kernels), then damages
# models at random.
#
#   tests/stress/fuzz_models.sh [COUNT] [SEED]        COUNT: default 100,000
set -euo pipefail
cd "$(dirname "$0")/../.."
count=${1:-100000} seed=${2:-1} python=${PYTHON:-python} build=${BUILD:-build/fuzzed}
"$python" tests/stress/fuzz_models.py "$build"
cmake -S framework/_native -B "$build" -G Ninja -DPython_EXECUTABLE="$(command -v "$python")" \
    -DFW_SETS="${SETS:-baseline}" -DFW_SANITIZE=address,undefined > /dev/null
cmake --build "$build" --target framework_static
${CXX:-g++} -std=c++17 -O1 -g -fsanitize=address,undefined -Iframework/_native -Iframework/_native/library \
    tests/stress/fuzz_models.cpp "$build"/libframework.a -pthread -o "$build"/fuzz_models
export ASAN_OPTIONS=detect_leaks=1,allocator_may_return_null=1,max_allocation_size_mb=512
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
"$build"/fuzz_models "$count" "$seed" "$build"/*.fwk
