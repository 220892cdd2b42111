// A model as its file holds it: values, and steps that compute them. Nothing in it changes after it was read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/scratch.h"
#include "base/view.h"
#include "library/framework.h"

namespace fw::runtime {

constexpr int MOST_AXES = 12;        // of a value
constexpr int MOST_SYMBOLS = 32;
constexpr int64_t MOST_NUMBERS = int64_t(1) << 40;  // elements of a value; sizes of them can be multiplied

// Why a call failed: thrown here, caught where the C interface ends.
struct Refused {
    fw_status status;
    std::string why;
};
[[noreturn]] void refuse(fw_status status, std::string why);

// floor((factor * the product of some symbols + more) / over)
struct Size {
    int64_t factor = 0, more = 0, over = 1;
    uint32_t symbols = 0;

    int64_t at(const std::vector<int64_t>& of_symbols) const;  // refuses what cannot be counted
    bool fixed() const { return symbols == 0; }
};

enum class Kind : int { input, constant, result };

struct Value {
    Kind kind = Kind::result;
    Type type = Type::other;
    std::string name;
    std::vector<int> sizes;  // rows of the table of sizes; of inputs and constants
    int64_t place = 0;       // of a constant, among the data
};

class Call;
using Prepare = void (*)(Call&);

struct Step {
    Prepare prepare = nullptr;
    std::string name;
    std::vector<int> inputs, outputs;  // values, -1 for none
    std::vector<int> numbers;          // rows of the table of sizes
    std::vector<double> reals;
    std::vector<std::string> words;
};

struct Output {
    int value;
    std::string name;
};

// What kernels make of constants once, for all plans and requests: weights in the order in which they are read.
class Packed {
  public:
    // `bytes` bytes that `make` wrote, by now or before, from the constant at `numbers`. form: all that they depend on.
    const void* of(const void* numbers, std::vector<int64_t> form, int64_t bytes, const std::function<void(void*)>& make);
    int64_t bytes() const;

  private:
    struct Piece {
        Scratch memory;  // from the allocator that the caller may choose
        int64_t bytes = 0;
    };
    mutable std::mutex busy;
    std::map<std::pair<const void*, std::vector<int64_t>>, Piece> pieces;
};

struct Model {
    std::vector<std::string> symbols;
    std::vector<Size> sizes;
    std::vector<Value> values;
    std::vector<Step> steps;
    std::vector<int> inputs;
    std::vector<Output> outputs;
    std::vector<int> last_use;  // of each value: the last step that reads it, the number of steps for outputs
    std::unique_ptr<char, void (*)(void*)> data{nullptr, nullptr};  // of constants, at a multiple of 64
    int64_t data_bytes = 0;

    mutable Packed packed;

    const char* constant(const Value& v) const { return data.get() + v.place; }
};

// Reads a whole file; everything in it is checked that can be before sizes are known.
std::unique_ptr<Model> read_model(const void* bytes, size_t count);
std::unique_ptr<Model> read_model(const char* path);

// The operation of that name, nullptr without one.
Prepare operation(const std::string& name);

}  // namespace fw::runtime
