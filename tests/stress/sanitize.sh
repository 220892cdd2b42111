#!/usr/bin/env bash
# The kernels under sanitizers: builds them into build/sanitized (three minutes of one core the first time), then makes
# random calls of every function (tests/stress/fuzz_native.py). With an ordinary build in use:
#
#   tests/stress/sanitize.sh                       20,000 calls, address and undefined behaviour
#   tests/stress/sanitize.sh address,undefined 100000
#   tests/stress/sanitize.sh thread 5000 60        races: that, then many threads at once for so many seconds
#                                                  (tests/stress/races.py)
#   FUZZ="--seed 7 --jobs 1" tests/stress/sanitize.sh    further options of fuzz_native.py
set -euo pipefail
cd "$(dirname "$0")/../.."
sanitizers=${1:-address,undefined} calls=${2:-20000} seconds=${3:-60} python=${PYTHON:-python} build=${BUILD:-build/sanitized}
cmake -S framework/_native -B "$build" -G Ninja -DPython_EXECUTABLE="$(command -v "$python")" -DFW_SANITIZE="$sanitizers" > /dev/null
cmake --build "$build"
folder=$(realpath "$build")
module=$({ ls "$build"/avx512.*.so "$build"/avx2.*.so "$build"/baseline.*.so 2> /dev/null || true; } | head -1)  # the widest
recorder=$("$python" -c 'from framework import _native; print(_native.module.__file__)')
library=$([ "$sanitizers" = thread ] && echo libtsan.so || echo libasan.so)
export ASAN_OPTIONS=detect_leaks=0,allocator_may_return_null=1,max_allocation_size_mb=512,abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS="halt_on_error=1 history_size=4 allocator_may_return_null=1 max_allocation_size_mb=512 suppressions=$PWD/tests/stress/races.txt"
preload="$(${CXX:-g++} -print-file-name=$library) $(${CXX:-g++} -print-file-name=libstdc++.so)"
LD_PRELOAD=$preload "$python" tests/stress/fuzz_native.py --module "$module" --recorder "$recorder" --calls "$calls" ${FUZZ:-}
if [ "$sanitizers" = thread ]; then
    set=$(basename "$module" | cut -d. -f1)
    LD_PRELOAD=$preload FRAMEWORK_NATIVE_PATH=$folder FRAMEWORK_NATIVE=$set "$python" tests/stress/races.py "$seconds"
fi
