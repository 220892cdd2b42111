// Steps of optimizers on views: which method, with which numbers, on which parameters. See methods.cpp for what they compute.
#pragma once

#include <memory>
#include <vector>

#include "base/view.h"

namespace fw::optim {

constexpr int MOST_STATES = 3, MOST_ARRAYS = 2 + MOST_STATES;

// One of the numbers of a step. Those of float32 parameters are rounded from it.
struct Setting {
    const char* name;
    double value;
};

// Memory of one parameter: its own, its gradient's, its states'; for methods that have no gradient its own alone.
struct Parameter {
    int64_t size = 0;
    bool wide = false;  // float64, else float32
    char* arrays[MOST_ARRAYS] = {};
};

// The parameters of one step. `skipped` are the numbers of those that the kernels do not take: no arrays of float32 or
// float64, or not laid out alike without gaps. Where memory that one update writes is used by another, the order of the
// updates matters, and all are skipped.
struct ParameterList {
    std::vector<Parameter> all;
    std::vector<int64_t> ends;  // elements up to the end of each
    std::vector<int64_t> skipped;
    int64_t bytes = 0;

    void add(const View* arrays, int count);
    void skip() { skipped.push_back(int64_t(ends.size() + skipped.size())); }
    void part(int count);  // after the last one: looks for shared memory
};

// One parameter of which some rows are changed.
struct ParameterRows {
    Parameter one;
    int64_t width = 0;          // numbers of a row
    std::vector<int64_t> rows;  // copies, each a row that there is, in ascending order

    // False where the kernels do not take it: other dtypes, layouts or shapes, rows that are not ascending, memory that two
    // of the arrays share. The gradient has the rows alone.
    bool take(const View* arrays, int count, const int64_t* given, int64_t n);
};

// What an optimizer does with elements [begin, end) of one parameter.
class Method {
  public:
    const int count;     // arrays of each parameter
    const bool flushes;  // numbers too small for the normal format count as 0, see `flushes` in methods.h
    virtual void apply(bool wide, char* const* arrays, int64_t begin, int64_t end) const = 0;
    virtual ~Method() = default;

  protected:
    Method(int arrays, bool flushes) : count(arrays), flushes(flushes) {}
};

// nullptr where there is no method of that name. Throws out_of_range with the name of a number that is missing, and
// invalid_argument where one was given that the method does not ask for.
std::unique_ptr<const Method> method_named(const char* name, const std::vector<Setting>& settings);

// In place, by all threads.
void run(const Method& method, const ParameterList& list);
void run(const Method& method, const ParameterRows& rows);

// The root of the sum of the squares of all elements of all parameters.
double norm_of(const ParameterList& list);

}  // namespace fw::optim
