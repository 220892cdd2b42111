#include "reduce/totals.h"

#include "reduce/reduce_tasks.h"

namespace fw {
namespace reduce {

template <class T> void total(const Plan& plan, const char* x, T* out, bool divided) {
    Total<T> task(divided);
    run_plan(plan, InMemory{x}, out, task);
}

template <class T> void extreme(const Plan& plan, const char* x, T* out, bool largest) {
    if (largest) {
        Plain<Largest<T>> task;
        run_plan(plan, InMemory{x}, out, task);
    } else {
        Plain<Smallest<T>> task;
        run_plan(plan, InMemory{x}, out, task);
    }
}

#define FW_OF(T)                                                  \
    template void total(const Plan&, const char*, T*, bool);      \
    template void extreme(const Plan&, const char*, T*, bool);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace reduce
}  // namespace fw
