#include "runtime/plan.h"

#include <algorithm>

#include "base/layout.h"
#include "move/block.h"

namespace fw::runtime {
namespace {

constexpr int64_t LINE = 64, MOST_ROOM = int64_t(1) << 46;  // bytes: places begin at lines; more nobody has

int64_t lines(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + LINE - 1) / LINE * LINE; }

std::string shown(const Tensor& t) {
    std::string s = "(";
    for (int d = 0; d < t.ndim; ++d) s += (d ? ", " : "") + std::to_string(t.shape[d]);
    return s + ")";
}

}  // namespace

// -- tensors --------------------------------------------------------------------------------------

int64_t Tensor::size() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= shape[d];
    return n;
}

void Tensor::rows() {
    int64_t step = bytes_of(type);
    for (int d = ndim - 1; d >= 0; --d) {
        strides[d] = step;
        step *= shape[d];
    }
}

void Tensor::like(const Tensor& o) {
    int axes[MOST_AXES];
    for (int d = 0; d < ndim; ++d) axes[d] = d;
    auto size = [](int64_t stride) { return stride < 0 ? -stride : stride; };
    sort_axes(axes, ndim, [&](int a, int b) { return size(o.strides[a]) > size(o.strides[b]); });
    int64_t step = bytes_of(type);
    for (int i = ndim - 1; i >= 0; --i) {
        strides[axes[i]] = step;
        step *= shape[axes[i]];
    }
}

bool Tensor::same_shape(const Tensor& o) const { return ndim == o.ndim && std::equal(shape, shape + ndim, o.shape); }

void copy(const Tensor& from, char* to) {
    if (from.in_rows()) return moving::copy_bytes(from.data, to, from.bytes());
    moving::Block b;
    int64_t step = from.bytes();
    for (int d = 0; d < from.ndim; ++d) b.add(from.shape[d], from.strides[d], step /= from.shape[d]);
    moving::copy_block(b, int(bytes_of(from.type)), from.data, to);
}

void copy(const Tensor& from, const Tensor& to) {
    moving::Block b;
    for (int d = 0; d < from.ndim; ++d) b.add(from.shape[d], from.strides[d], to.strides[d]);
    moving::copy_block(b, int(bytes_of(from.type)), from.data, to.data);
}

const void* Packed::of(const void* numbers, std::vector<int64_t> form, int64_t bytes,
                       const std::function<void(void*)>& make) {
    if (bytes > MOST_ROOM) refuse(FW_NO_MEMORY, "weights of " + std::to_string(bytes) + " bytes");
    std::lock_guard<std::mutex> lock(busy);
    form.push_back(bytes);
    Piece& piece = pieces[{numbers, std::move(form)}];
    if (piece.bytes != bytes) {
        make(piece.memory.at_least(size_t(bytes)));
        piece.bytes = bytes;
    }
    return piece.memory.at_least(0);
}

int64_t Packed::bytes() const {
    std::lock_guard<std::mutex> lock(busy);
    int64_t sum = 0;
    for (const auto& one : pieces) sum += one.second.bytes;
    return sum;
}

// -- one step -------------------------------------------------------------------------------------

void Call::must(bool good, const char* why) const {
    if (good) return;
    std::string text = "step " + std::to_string(number_) + ", " + step.name + ": " + why + "; operands";
    for (int v : step.inputs) text += v < 0 ? " none" : " " + shown(*plan.values[size_t(v)]);
    refuse(FW_MISMATCH, text);
}

void Call::expect(size_t inputs, size_t numbers, size_t reals, size_t outputs) const {
    must(step.inputs.size() == inputs && step.numbers.size() == numbers && step.reals.size() == reals &&
             step.outputs.size() == outputs,
         "another number of operands or settings");
}

const Tensor& Call::peek(size_t i) const {
    must(i < step.inputs.size() && step.inputs[i] >= 0, "an operand is missing");
    return *plan.values[size_t(step.inputs[i])];
}

const Tensor& Call::in(size_t i) const {
    const Tensor& t = peek(i);
    if (t.of) *t.of->read = true;
    return t;
}

void Call::keep(const Tensor& t) {
    if (t.buffer < 0) return;
    int& last = plan.buffers[size_t(t.buffer)].last;
    last = std::max(last, number_);
}

int64_t Call::number(size_t i) const {
    must(i < step.numbers.size(), "a number is missing");
    return plan.model.sizes[size_t(step.numbers[i])].at(plan.of_symbols);
}

std::vector<int64_t> Call::numbers(size_t begin, size_t end) const {
    std::vector<int64_t> found;
    for (size_t i = begin; i < end; ++i) found.push_back(number(i));
    return found;
}

bool Call::name_size(int64_t symbol, int64_t size) {
    if (symbol < 0 || symbol >= int64_t(plan.of_symbols.size()) || plan.given[size_t(symbol)]) return false;
    plan.of_symbols[size_t(symbol)] = size;
    return true;
}

Tensor& Call::own(Type type, int ndim, const int64_t* shape, int last) {
    must(ndim <= MOST_AXES, "a result of too many dimensions");
    int64_t count = 1;
    for (int d = 0; d < ndim; ++d)
        must(shape[d] > 0 && !__builtin_mul_overflow(count, shape[d], &count) && count <= MOST_NUMBERS,
             "a result without elements, or of too many");
    Tensor& t = plan.tensor();
    t.type = type, t.ndim = ndim;
    std::copy(shape, shape + ndim, t.shape);
    t.rows();
    t.buffer = plan.buffer(t.bytes(), begins, last);
    return t;
}

void Call::set(size_t i, Tensor& t) {
    must(i < step.outputs.size(), "a result is missing");
    if (step.outputs[i] >= 0) plan.values[size_t(step.outputs[i])] = &t;
}

Tensor& Call::make(size_t i, Type type, int ndim, const int64_t* shape) {
    must(i < step.outputs.size(), "a result is missing");
    const int value = step.outputs[i];
    Tensor& t = own(type, ndim, shape, value < 0 ? number_ : std::max(number_, plan.model.last_use[size_t(value)]));
    set(i, t);
    return t;
}

Tensor& Call::part_of(size_t i, const Tensor& whole) {
    Tensor& t = plan.tensor();
    t.type = whole.type, t.ndim = whole.ndim;
    std::copy(whole.shape, whole.shape + whole.ndim, t.shape);
    std::copy(whole.strides, whole.strides + whole.ndim, t.strides);
    t.data = whole.data, t.buffer = whole.buffer, t.offset = whole.offset;
    set(i, t);
    if (t.buffer >= 0 && step.outputs[i] >= 0) {
        int& last = plan.buffers[size_t(t.buffer)].last;
        last = std::max(last, plan.model.last_use[size_t(step.outputs[i])]);
    }
    return t;
}

std::shared_ptr<ByImages> Call::by_images(const Tensor& made) {
    plan.latest = std::make_shared<ByImages>();
    plan.latest->made = &made, plan.latest->step = number_;
    return plan.latest;
}

std::shared_ptr<ByImages> Call::images_of(size_t i) {
    const std::shared_ptr<ByImages>& before = plan.latest;
    if (!before || before->step != number_ - 1 || before->made != &in(i) || plan.model.last_use[size_t(step.inputs[i])] != number_)
        return nullptr;
    before->wanted = true;
    begins = before->step;
    return before;
}

Tensor& Call::room(int64_t bytes) { return own(Type::uint8, 1, &bytes, number_); }

const Tensor& Call::copied(const Tensor& from) {
    Tensor& to = own(from.type, from.ndim, from.shape, number_);
    then([&from, &to]() -> Run { return [&from, &to] { copy(from, to.data); }; });
    return to;
}

const Tensor& Call::rows(size_t i) {
    const Tensor& t = in(i);
    return t.in_rows() ? t : copied(t);
}

// -- the plan -------------------------------------------------------------------------------------

Plan::Plan(const Model& m, std::vector<int64_t> symbols, const Outside* outside)
    : model(m), given(std::move(symbols)), of_symbols(given) {
    values.assign(m.values.size(), nullptr);
    for (size_t i = 0; i < m.values.size(); ++i) {
        const Value& v = m.values[i];
        if (v.kind == Kind::result) continue;
        Tensor& t = tensor();
        values[i] = &t;
        if (outside) {
            t = outside->inputs[i];
            continue;
        }
        t.type = v.type, t.ndim = int(v.sizes.size());
        int64_t count = 1;
        for (int d = 0; d < t.ndim; ++d) {
            t.shape[d] = m.sizes[size_t(v.sizes[size_t(d)])].at(of_symbols);
            if (t.shape[d] < 1 || __builtin_mul_overflow(count, t.shape[d], &count) || count > MOST_NUMBERS)
                refuse(FW_INVALID, v.name + " would have no elements, or too many");
        }
        t.rows();
        if (v.kind == Kind::input) t.buffer = buffer(t.bytes(), -1, m.last_use[i]);
        else t.data = const_cast<char*>(m.constant(v));
    }
    for (size_t i = 0; i < m.steps.size(); ++i) {
        Call call(*this, m.steps[i], int(i));
        m.steps[i].prepare(call);
        for (int v : m.steps[i].outputs)
            if (v >= 0)
                call.must(values[size_t(v)] && values[size_t(v)]->type == m.values[size_t(v)].type,
                          "it does not make all of its results, or of another type");
    }
    for (const Output& o : m.outputs)
        if (const auto& of = values[size_t(o.value)]->of) *of->read = true;
    if (outside) deliver(*outside);
    for (Tensor& t : tensors)
        if (t.of && !*t.of->read && t.buffer >= 0) buffers[size_t(t.buffer)].bytes = 0;
    give_places();
    char* start = static_cast<char*>(memory.at_least(0));
    for (Tensor& t : tensors)
        if (t.buffer >= 0) t.data = start + buffers[size_t(t.buffer)].place + t.offset;
    for (Bind& bind : binds) runs.push_back(bind());
    binds.clear();
}

// Results go where they are wanted: at once if they lie so there, else by a copy.
void Plan::deliver(const Outside& outside) {
    for (size_t i = 0; i < model.outputs.size(); ++i) {
        Tensor& made = *values[size_t(model.outputs[i].value)];
        const Tensor& wanted = outside.outputs[i];
        if (!made.same_shape(wanted)) refuse(FW_MISMATCH, "a result is " + shown(made) + ", wanted was " + shown(wanted));
        bool alike = made.buffer >= 0;
        for (int d = 0; d < made.ndim; ++d) alike = alike && (made.shape[d] == 1 || made.strides[d] == wanted.strides[d]);
        if (alike) {
            buffers[size_t(made.buffer)].bytes = 0;
            made.buffer = -1, made.data = wanted.data;
        } else {
            binds.push_back([&made, wanted]() -> Run { return [&made, wanted] { copy(made, wanted); }; });
        }
    }
}

void Plan::run() {
    for (const Run& step : runs) step();
}

int Plan::buffer(int64_t bytes, int first, int last) {
    if (bytes > MOST_ROOM) refuse(FW_NO_MEMORY, "a result of " + std::to_string(bytes) + " bytes");
    buffers.push_back({lines(bytes), first, last});
    return int(buffers.size()) - 1;
}

// In the order of the steps; each buffer goes into the smallest gap between those that are needed at the time.
void Plan::give_places() {
    std::vector<Buffer*> at_work;  // by place
    for (Buffer& b : buffers) {
        at_work.erase(std::remove_if(at_work.begin(), at_work.end(), [&](Buffer* o) { return o->last < b.first; }),
                      at_work.end());
        int64_t end = 0, best = -1, gap = 0;
        for (const Buffer* o : at_work) {
            if (o->place - end >= b.bytes && (best < 0 || o->place - end < gap)) best = end, gap = o->place - end;
            end = std::max(end, o->place + o->bytes);
        }
        b.place = best < 0 ? end : best;
        room = std::max(room, b.place + b.bytes);
        if (room > MOST_ROOM) refuse(FW_NO_MEMORY, "the results of a step need more memory than there is");
        at_work.insert(std::upper_bound(at_work.begin(), at_work.end(), b.place,
                                        [](int64_t place, const Buffer* o) { return place < o->place; }),
                       &b);
    }
    memory.at_least(size_t(std::max<int64_t>(room, 1)));
}

}  // namespace fw::runtime
