// A model at given sizes: every result has its place in one piece of memory, every step is ready to run.
//
// Planning goes through the steps once. Each looks at the shapes of its operands, refuses what does not fit, and says
// what it makes (`Call`); then places are given out, and the steps are bound to them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "base/scratch.h"
#include "runtime/model.h"

namespace fw::runtime {

struct RowsOf;

// An array of a plan. `data` is known when steps are bound.
struct Tensor {
    Type type = Type::other;
    int ndim = 0;
    int64_t shape[MOST_AXES] = {}, strides[MOST_AXES] = {};  // strides in bytes
    char* data = nullptr;
    int buffer = -1;        // of the plan; -1 for constants
    int64_t offset = 0;     // in the buffer
    std::shared_ptr<const RowsOf> of;  // the table that its rows are taken from

    View view() const { return {data, type, ndim, shape, strides}; }
    int64_t size() const;
    int64_t bytes() const { return size() * bytes_of(type); }
    bool in_rows() const { return view().contiguous(); }
    bool constant() const { return buffer < 0; }
    void like(const Tensor& o);  // without gaps, the dimensions in the order in which those of `o` lie
    void rows();            // sets the strides to those of an array row by row
    template <class T> T* at() const { return reinterpret_cast<T*>(data); }
    bool same_shape(const Tensor& o) const;
};

// A tensor made of a table's rows, each as a whole. They are copied only if a step reads them as numbers: another may have
// computed for each row of the table what it wants of it.
struct RowsOf {
    const Tensor *table, *positions;  // which are checked when they are read
    int ndim;
    int64_t shape[MOST_AXES] = {}, strides[MOST_AXES] = {};  // of the positions, in the order of the tensor's rows
    std::shared_ptr<bool> read;

    int64_t count() const;
    void places(int64_t* to) const;  // of all rows in the table; refuses what is none
};

// A step's results by images: with what is finished (numbers, the first image, how many) the next step may go on at once.
struct ByImages {
    const Tensor* made = nullptr;
    int step = -1;
    bool wanted = false;
    const Tensor* squares = nullptr;  // where the largest of 2 x 2 neighbours go, if nothing else is wanted
    std::function<void(const void*, int64_t, int64_t)> next;  // known when steps are bound
};

using Run = std::function<void()>;
using Bind = std::function<Run()>;  // called when all places are known

// Memory of the caller's, for a plan that runs once: operands where they are, and where results are wanted.
struct Outside {
    std::vector<Tensor> inputs, outputs;
};

class Plan {
  public:
    Plan(const Model& model, std::vector<int64_t> symbols, const Outside* outside = nullptr);
    Plan(const Plan&) = delete;

    void run();  // what is in `input` becomes what is in `output`
    Tensor& input(size_t i) { return *values[size_t(model.inputs[i])]; }
    const Tensor& output(size_t i) const { return *values[size_t(model.outputs[i].value)]; }
    const std::vector<int64_t>& symbols() const { return given; }  // of the inputs
    int64_t bytes() const { return room; }

  private:
    friend class Call;
    struct Buffer {
        int64_t bytes;
        int first, last;  // the steps between which it is needed
        int64_t place = 0;
    };

    Tensor& tensor() { return tensors.emplace_back(); }
    int buffer(int64_t bytes, int first, int last);
    void give_places();
    void deliver(const Outside& outside);

    const Model& model;
    const std::vector<int64_t> given;
    std::vector<int64_t> of_symbols;  // and those of results that were measured
    std::deque<Tensor> tensors;
    std::vector<Tensor*> values;
    std::vector<Buffer> buffers;
    std::shared_ptr<ByImages> latest;
    std::vector<Bind> binds;
    std::vector<Run> runs;
    int64_t room = 0;
    Scratch memory;  // from the allocator that the caller may choose
};

// One step while it is planned.
class Call {
  public:
    Call(Plan& plan, const Step& step, int number) : step(step), plan(plan), number_(number), begins(number) {}

    const Step& step;

    // What every operation says first: how many operands, numbers, reals and results it has.
    void expect(size_t inputs, size_t numbers, size_t reals, size_t outputs) const;
    void must(bool good, const char* why) const;  // refuses the model if it is not
    bool has(size_t i) const { return step.inputs[i] >= 0; }
    const Tensor& in(size_t i) const;
    const Tensor& peek(size_t i) const;  // the operand, whose numbers are not read
    void keep(const Tensor& t);         // has its place until this step is done
    const Tensor& rows(size_t i);       // the operand row by row: itself, or a copy
    const Tensor* rows_or_none(size_t i) { return has(i) ? &rows(i) : nullptr; }
    bool wants(size_t output) const { return step.outputs[output] >= 0; }
    int64_t number(size_t i) const;
    std::vector<int64_t> numbers(size_t begin, size_t end) const;

    // Result i, row by row; a place that nobody reads if it is not wanted.
    Tensor& make(size_t i, Type type, int ndim, const int64_t* shape);
    // Result i as a part of an operand's memory, with shape and strides to be set; `checked` when they are.
    Tensor& part_of(size_t i, const Tensor& whole);
    Tensor& room(int64_t bytes);        // for the step's own use
    // A symbol that no input gives becomes a size; false where there is none, or where it is another one already.
    bool name_size(int64_t symbol, int64_t size);
    Packed& packed() const { return plan.model.packed; }
    // The step hands on the images of what it made by what this returns, if the next step wants that.
    std::shared_ptr<ByImages> by_images(const Tensor& made);
    // The step before, if it makes operand i for this one alone and hands on its images; `next` must be set then.
    std::shared_ptr<ByImages> images_of(size_t i);
    void then(Bind bind) { plan.binds.push_back(std::move(bind)); }

    // Copies a tensor's elements into one row by row, before what is said next.
    const Tensor& copied(const Tensor& from);

  private:
    Tensor& own(Type type, int ndim, const int64_t* shape, int last);
    void set(size_t i, Tensor& t);

    Plan& plan;
    const int number_;
    int begins;  // the step from which its results have a place
};

void copy(const Tensor& from, char* to);  // row by row
void copy(const Tensor& from, const Tensor& to);

}  // namespace fw::runtime
