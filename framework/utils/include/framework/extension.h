// What functions for framework.utils.cpp_extension are written with: views of tensors, and how they are exported.
//
//     fw::Tensor scaled(const fw::Tensor& x, double by) {
//         fw::Tensor y = fw::empty_like(x);
//         const float* from = x.data<float>();
//         float* to = y.mutable_data<float>();
//         for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] * by;   // where x.is_contiguous()
//         return y;
//     }
//     FW_EXPORT(scaled)        // load_inline(functions=["scaled"]) writes this line
//
// Arguments: Tensor, std::vector<Tensor>, std::optional<Tensor>, bool, integers, float, double, std::string,
// std::vector<int64_t>, std::vector<double>. Results: the same (no optional), void, std::tuple of them. What is
// thrown as std::exception becomes a RuntimeError. A call runs without Python's lock: it must not touch Python.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#define FW_HIDDEN __attribute__((visibility("hidden")))

namespace fw FW_HIDDEN {

enum class DType : int32_t {
    Bool, UInt8, Int8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float16, BFloat16, Float32, Float64
};

inline int64_t size_of(DType dtype) {
    static const int64_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    return sizes[static_cast<int>(dtype)];
}

template <class T> constexpr bool holds(DType dtype) {  // whether elements of this dtype may be read as T
    switch (dtype) {
        case DType::Bool: return std::is_same_v<T, bool> || std::is_same_v<T, uint8_t>;
        case DType::UInt8: return std::is_same_v<T, uint8_t>;
        case DType::Int8: return std::is_same_v<T, int8_t>;
        case DType::Int16: return std::is_same_v<T, int16_t>;
        case DType::UInt16: case DType::Float16: case DType::BFloat16: return std::is_same_v<T, uint16_t>;
        case DType::Int32: return std::is_same_v<T, int32_t>;
        case DType::UInt32: return std::is_same_v<T, uint32_t>;
        case DType::Int64: return std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8;
        case DType::UInt64: return std::is_integral_v<T> && std::is_unsigned_v<T> && sizeof(T) == 8;
        case DType::Float32: return std::is_same_v<T, float>;
        case DType::Float64: return std::is_same_v<T, double>;
    }
    return false;
}

inline void check(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument(message);
}

// A value as it crosses to Python and back; ``cpp_extension.py`` has the same fields in the same order.
extern "C" struct fw_value {
    int32_t kind;       // 0 None, 1 bool, 2 int, 3 float, 4 text, 5 tensor, 6 list
    int32_t dtype;
    int64_t integer;    // also the length of a text or list, and what argument a tensor in a result came from
    double real;
    void* data;         // of a tensor or text; the items of a list
    int64_t ndim;
    const int64_t* shape;
    const int64_t* strides;  // in elements
    int32_t writable;
    int32_t written;
    void* owner;        // of what a result points to
};

class Tensor {
public:
    Tensor(fw_value* value, int64_t source)
        : value_(value), source_(source), dtype_(static_cast<DType>(value->dtype)),
          data_(static_cast<char*>(value->data)), shape_(value->shape, value->shape + value->ndim),
          strides_(value->strides, value->strides + value->ndim) {}

    Tensor(std::vector<int64_t> shape, DType dtype) : dtype_(dtype), shape_(std::move(shape)) {
        int64_t count = 1;
        for (int64_t n : shape_) {
            check(n >= 0, "fw::empty: sizes must not be negative");
            check(n == 0 || count <= (int64_t(1) << 56) / n, "fw::empty: more elements than any memory holds");
            count *= n;
        }
        strides_.resize(shape_.size());
        int64_t step = 1;
        for (size_t i = shape_.size(); i-- > 0;) {
            strides_[i] = step;
            step *= shape_[i] > 1 ? shape_[i] : 1;
        }
        memory_ = std::shared_ptr<char>(new char[count * size_of(dtype) + 64], std::default_delete<char[]>());
        data_ = memory_.get() + (64 - reinterpret_cast<uintptr_t>(memory_.get()) % 64) % 64;
    }

    DType dtype() const { return dtype_; }
    int64_t dim() const { return static_cast<int64_t>(shape_.size()); }
    const std::vector<int64_t>& sizes() const { return shape_; }
    const std::vector<int64_t>& strides() const { return strides_; }  // in elements; may be 0 or negative
    int64_t size(int64_t d) const { return shape_.at(d < 0 ? d + dim() : d); }
    int64_t stride(int64_t d) const { return strides_.at(d < 0 ? d + dim() : d); }

    int64_t numel() const {
        int64_t count = 1;
        for (int64_t n : shape_) count *= n;
        return count;
    }

    bool is_contiguous() const {
        int64_t step = 1;
        for (size_t i = shape_.size(); i-- > 0;) {
            if (shape_[i] != 1 && strides_[i] != step) return numel() == 0;
            step *= shape_[i];
        }
        return true;
    }

    template <class T> const T* data() const {
        check(holds<T>(dtype_), "fw::Tensor: data<T>() of another type than the tensor's dtype");
        return reinterpret_cast<const T*>(data_);
    }

    template <class T> T* mutable_data() {  // autograd is told that an argument was changed
        check(holds<T>(dtype_), "fw::Tensor: mutable_data<T>() of another type than the tensor's dtype");
        check(value_ == nullptr || value_->writable, "fw::Tensor: this tensor's memory cannot be written");
        if (value_ != nullptr) value_->written = 1;
        return reinterpret_cast<T*>(data_);
    }

    // what a result needs
    int64_t source() const { return source_; }
    const std::shared_ptr<char>& memory() const { return memory_; }
    void* address() const { return data_; }

private:
    fw_value* value_ = nullptr;
    int64_t source_ = -1;
    DType dtype_;
    char* data_ = nullptr;
    std::vector<int64_t> shape_, strides_;
    std::shared_ptr<char> memory_;
};

inline Tensor empty(std::vector<int64_t> shape, DType dtype = DType::Float32) {
    return Tensor(std::move(shape), dtype);
}
inline Tensor empty_like(const Tensor& x) { return Tensor(x.sizes(), x.dtype()); }
inline Tensor zeros(std::vector<int64_t> shape, DType dtype = DType::Float32) {
    Tensor x(std::move(shape), dtype);
    std::memset(x.address(), 0, x.numel() * size_of(dtype));
    return x;
}
inline Tensor zeros_like(const Tensor& x) { return zeros(x.sizes(), x.dtype()); }

namespace detail {

struct Result {  // keeps what the values of a result point to
    std::vector<std::shared_ptr<void>> kept;

    template <class T> T* keep(T value) {
        auto made = std::make_shared<T>(std::move(value));
        kept.push_back(made);
        return made.get();
    }
};

[[noreturn]] inline void wrong(int64_t i, const char* wanted) {
    throw std::invalid_argument("argument " + std::to_string(i) + " must be " + wanted);
}

template <class T> struct From {  // numbers
    static T get(fw_value& v, int64_t i) {
        if constexpr (std::is_same_v<T, bool>) {
            if (v.kind != 1) wrong(i, "a bool");
            return v.integer != 0;
        } else if constexpr (std::is_integral_v<T>) {
            if (v.kind != 2 && v.kind != 1) wrong(i, "an int");
            if (static_cast<int64_t>(static_cast<T>(v.integer)) != v.integer || (std::is_unsigned_v<T> && v.integer < 0))
                wrong(i, "an int that fits its type");
            return static_cast<T>(v.integer);
        } else {
            static_assert(std::is_floating_point_v<T>, "functions of an extension cannot take this type");
            if (v.kind != 3 && v.kind != 2) wrong(i, "a number");
            return static_cast<T>(v.kind == 3 ? v.real : static_cast<double>(v.integer));
        }
    }
};
template <> struct From<std::string> {
    static std::string get(fw_value& v, int64_t i) {
        if (v.kind != 4) wrong(i, "a str");
        return std::string(static_cast<const char*>(v.data), v.integer);
    }
};
template <> struct From<Tensor> {
    static Tensor get(fw_value& v, int64_t i) {
        if (v.kind != 5) wrong(i, "a Tensor");
        return Tensor(&v, v.integer);
    }
};
template <class T> struct From<std::optional<T>> {
    static std::optional<T> get(fw_value& v, int64_t i) {
        if (v.kind == 0) return std::nullopt;
        return From<T>::get(v, i);
    }
};
template <class T> struct From<std::vector<T>> {
    static std::vector<T> get(fw_value& v, int64_t i) {
        if (v.kind != 6) wrong(i, "a list or tuple");
        std::vector<T> found;
        fw_value* items = static_cast<fw_value*>(v.data);
        for (int64_t k = 0; k < v.integer; ++k) found.push_back(From<T>::get(items[k], i));
        return found;
    }
};

template <class T> void put(fw_value& v, const T& x, Result& result);

inline void put_tensor(fw_value& v, const Tensor& x, Result& result) {
    auto* shape = result.keep(x.sizes());
    auto* strides = result.keep(x.strides());
    if (x.memory()) result.kept.push_back(x.memory());
    v.kind = 5;
    v.dtype = static_cast<int32_t>(x.dtype());
    v.integer = x.memory() ? -1 : x.source();
    v.data = x.address();
    v.ndim = x.dim();
    v.shape = shape->data();
    v.strides = strides->data();
}

inline fw_value* put_list(fw_value& v, size_t count, Result& result) {
    auto* items = result.keep(std::vector<fw_value>(count));
    v.kind = 6;
    v.integer = static_cast<int64_t>(count);
    v.data = items->data();
    return items->data();
}

template <class T> struct To {
    static void put(fw_value& v, const T& x, Result&) {
        if constexpr (std::is_same_v<T, bool>) {
            v.kind = 1; v.integer = x;
        } else if constexpr (std::is_integral_v<T>) {
            v.kind = 2; v.integer = static_cast<int64_t>(x);
        } else {
            static_assert(std::is_floating_point_v<T>, "functions of an extension cannot return this type");
            v.kind = 3; v.real = x;
        }
    }
};
template <> struct To<Tensor> {
    static void put(fw_value& v, const Tensor& x, Result& r) { put_tensor(v, x, r); }
};
template <> struct To<std::string> {
    static void put(fw_value& v, const std::string& x, Result& r) {
        auto* text = r.keep(x);
        v.kind = 4; v.integer = static_cast<int64_t>(text->size()); v.data = const_cast<char*>(text->data());
    }
};
template <class T> struct To<std::vector<T>> {
    static void put(fw_value& v, const std::vector<T>& x, Result& r) {
        fw_value* items = put_list(v, x.size(), r);
        for (size_t i = 0; i < x.size(); ++i) To<T>::put(items[i], x[i], r);
    }
};
template <class... T> struct To<std::tuple<T...>> {
    static void put(fw_value& v, const std::tuple<T...>& x, Result& r) {
        fw_value* items = put_list(v, sizeof...(T), r);
        size_t i = 0;
        std::apply([&](const T&... parts) { (To<T>::put(items[i++], parts, r), ...); }, x);
    }
};

using Caller = std::function<void(fw_value*, int64_t, fw_value&, Result&)>;
struct Entry { Caller call; int64_t arguments; };
inline std::map<std::string, Entry>& table() {
    static std::map<std::string, Entry> found;
    return found;
}

template <class R, class... A, size_t... I>
void invoke(R (*function)(A...), fw_value* args, fw_value& v, Result& result, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
        function(From<std::decay_t<A>>::get(args[I], I)...);
        v.kind = 0;
    } else {
        To<std::decay_t<R>>::put(v, function(From<std::decay_t<A>>::get(args[I], I)...), result);
    }
}

template <class... A> constexpr bool plain() { return ((!std::is_lvalue_reference_v<A> ||
                                                        std::is_const_v<std::remove_reference_t<A>>) && ...); }

template <class R, class... A> bool add(const char* name, R (*function)(A...)) {
    static_assert(plain<A...>(), "functions of an extension take values or const references");
    table()[name] = {[function](fw_value* args, int64_t, fw_value& v, Result& result) {
        invoke(function, args, v, result, std::index_sequence_for<A...>());
    }, static_cast<int64_t>(sizeof...(A))};
    return true;
}

}  // namespace detail
}  // namespace fw

#define FW_EXPORT(function) \
    static const bool fw_exported_##function [[maybe_unused]] = fw::detail::add(#function, &function);

#define FW_VISIBLE extern "C" __attribute__((visibility("default"), weak))

FW_VISIBLE int fw_extension_names(char* text, int64_t size) {  // separated by spaces; how much room they need
    std::string names;
    for (const auto& entry : fw::detail::table()) names += (names.empty() ? "" : " ") + entry.first;
    if (static_cast<int64_t>(names.size()) < size) std::memcpy(text, names.c_str(), names.size() + 1);
    return static_cast<int>(names.size()) + 1;
}

FW_VISIBLE int fw_extension_call(const char* name, fw::fw_value* args, int64_t count, fw::fw_value* result,
                                 char* message, int64_t size) {
    std::string what;
    try {
        auto found = fw::detail::table().find(name);
        if (found == fw::detail::table().end()) throw std::invalid_argument("there is no such function");
        if (count != found->second.arguments)
            throw std::invalid_argument("takes " + std::to_string(found->second.arguments) + " arguments, got " +
                                        std::to_string(count));
        auto kept = std::make_unique<fw::detail::Result>();
        found->second.call(args, count, *result, *kept);
        result->owner = kept.release();
        return 0;
    } catch (const std::invalid_argument& error) {
        what = error.what();
    } catch (const std::exception& error) {
        what = error.what();
        std::strncpy(message, what.c_str(), size - 1);
        return 2;
    } catch (...) {
        what = "something was thrown that is no std::exception";
    }
    std::strncpy(message, what.c_str(), size - 1);
    return 1;
}

FW_VISIBLE void fw_extension_free(void* owner) { delete static_cast<fw::detail::Result*>(owner); }
