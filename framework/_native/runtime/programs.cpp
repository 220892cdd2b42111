// Elementwise programs of models.
#include "program/program.h"

#include <limits>

#include "base/layout.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

struct Tensors {
    using Kind = Tensor;
    static const char* data(const Tensor& t) { return t.data; }
    static int ndim(const Tensor& t) { return t.ndim; }
    static int64_t size(const Tensor& t, int d) { return t.shape[d]; }
    static int64_t stride(const Tensor& t, int d) { return t.strides[d]; }
    static int64_t count(const Tensor& t) { return t.size(); }
    static int64_t itemsize(const Tensor& t) { return bytes_of(t.type); }
    static bool in_rows(const Tensor& t) { return t.in_rows(); }
};

using TensorLayout = LayoutOf<Tensors>;

// A program, its operands and where they lie.
struct ReadyProgram {
    fw::Program program;
    TensorLayout layout;
    fw::OperandList operands;
    std::vector<double> numbers;               // operands that are no arrays
    alignas(8) char memory[MOST_SLOTS][8];     // the same in the type of the program
};

// numbers: which arguments are truth values (bits), registers, how many steps are the same for all elements, whether the
// result is a truth value; then slots of result and three operands of each step. words: their instructions. reals: how
// many constants, the constants, the operands that are numbers.
std::shared_ptr<ReadyProgram> program_of(Call& c) {
    auto ready = std::make_shared<ReadyProgram>();
    fw::Program& p = ready->program;
    const auto& s = c.step;
    const size_t steps = s.words.size(), inputs = s.inputs.size();
    c.must(s.numbers.size() == 4 + 4 * steps && inputs > 0 && inputs < size_t(MOST_SLOTS) && !s.reals.empty() &&
               s.reals[0] >= 0 && s.reals[0] <= double(MOST_SLOTS) && size_t(s.reals[0]) < s.reals.size() + 1,
           "another number of settings");
    const size_t constants = size_t(s.reals[0]);
    auto small = [&c](size_t i) {
        const int64_t n = c.number(i);
        c.must(n >= 0 && n <= MOST_SLOTS, "a slot that there is not");
        return int(n);
    };
    c.must(constants + 1 <= s.reals.size(), "constants are missing");
    p.arguments = int(inputs), p.registers = small(1), p.once = small(2), p.truth_result = c.number(3) != 0;
    const int64_t truths = c.number(0);
    for (size_t i = 0; i < inputs; ++i) p.truth.push_back(truths >> i & 1);
    p.constants.assign(s.reals.begin() + 1, s.reals.begin() + 1 + std::ptrdiff_t(constants));
    ready->numbers.assign(s.reals.begin() + 1 + std::ptrdiff_t(constants), s.reals.end());
    for (size_t i = 0; i < steps; ++i) {
        const size_t at = 4 + 4 * i;
        p.steps.push_back({s.words[i], small(at), small(at + 1), small(at + 2), small(at + 3)});
    }
    if (const char* why = p.wrong()) c.must(false, why);
    p.compile();
    return ready;
}

template <class T> bool put_number(double given, bool truth, char* to) {
    if (truth) {
        *to = char(given != 0);
        return true;
    }
    if (std::numeric_limits<T>::is_integer && !(given >= -9e15 && given <= 9e15 && double(T(given)) == given)) return false;
    const T value = T(given);
    std::memcpy(to, &value, sizeof value);
    return true;
}

template <class T> void program_as(Call& c, std::shared_ptr<ReadyProgram> r, const Compiled<T>& compiled) {
    const fw::Program& p = r->program;
    c.must(compiled.fits, "instructions that numbers of this type do not have");
    const Tensor* prototype = nullptr;
    std::vector<const Tensor*> arrays;
    size_t number = 0;
    for (size_t i = 0; i < c.step.inputs.size(); ++i) {
        fw::Operand o;
        const Tensor* a = c.has(i) ? &c.in(i) : nullptr;
        arrays.push_back(a);
        if (a) {
            c.must(r->layout.broadcast(a) && r->layout.ndim <= MOST_AXES, "shapes that do not broadcast");
            o.array = a;
            if (!prototype || a->ndim > prototype->ndim ||
                (a->ndim == prototype->ndim && TensorLayout::repeats(prototype)))
                prototype = a;
        } else {
            c.must(number < r->numbers.size() && put_number<T>(r->numbers[number], p.truth[i], r->memory[i]),
                   "a number that this type does not have");
            ++number;
            o = fw::Operand::single(r->memory[i]);
        }
        r->operands.push_back(o);
    }
    c.must(number == r->numbers.size(), "more numbers than operands");
    TensorLayout& layout = r->layout;
    const Type type = p.truth_result ? Type::boolean : prototype->type;
    const Type of_numbers = sizeof(T) == 4 ? (std::is_same<T, float>::value ? Type::float32 : Type::int32)
                                           : (std::is_same<T, double>::value ? Type::float64 : Type::int64);
    const bool like = layout.ndim > 1 && !prototype->in_rows() && layout.whole(*prototype) &&
                      !TensorLayout::repeats(prototype);
    Tensor& out = c.make(0, p.truth_result ? type : of_numbers, layout.ndim, layout.shape);
    if (like) out.like(*prototype);
    for (int d = 0; d < layout.ndim; ++d) layout.size *= layout.shape[d];
    layout.follow(out);
    layout.settle(r->operands);
    c.then([r, arrays, &out, &compiled]() -> fw::runtime::Run {
        for (size_t i = 0; i < arrays.size(); ++i)
            if (arrays[i]) r->operands[i].data = arrays[i]->data;
        return [r, &out, &compiled] {
            const int64_t n = r->layout.size;
            const fw::Run<T> run{r->program, compiled, r->layout, r->operands, out.data};
            if (n <= grain(compiled.cost, sizeof(T))) run(0, n);
            else parallel(n, grain(compiled.cost, sizeof(T)), run);
        };
    });
}

}  // namespace

void program(Call& c) {
    auto ready = program_of(c);
    Type type = Type::other;
    for (size_t i = 0; i < c.step.inputs.size(); ++i) {
        if (!c.has(i)) continue;
        const Type own = c.in(i).type;
        if (ready->program.truth[i]) {
            c.must(own == Type::boolean, "a truth value of another type");
            continue;
        }
        c.must(type == Type::other || type == own, "operands of several types");
        type = own;
    }
    const fw::Program& p = ready->program;
    switch (type) {
        case Type::float32: return program_as<float>(c, ready, p.f32);
        case Type::float64: return program_as<double>(c, ready, p.f64);
        case Type::int64: return program_as<int64_t>(c, ready, p.i64);
        case Type::int32: return program_as<int32_t>(c, ready, p.i32);
        default: c.must(false, "another type");
    }
}

}  // namespace fw::runtime
