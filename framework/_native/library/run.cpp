// framework-run model.fwk input.npy ... [--out PREFIX] [--threads N] [--times N]: a model on arrays, without Python.
//
// Inputs in the model's order, as NumPy writes them (np.save, row by row); output i is written to PREFIXi.npy
// (default: output). --times runs it so often and tells the median time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "library/framework.h"

namespace {

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "framework-run: %s\n", why.c_str());
    std::exit(1);
}

struct NpyType {
    const char* name;  // in a .npy file
    int type;
    int64_t bytes;
};
const NpyType kinds[] = {{"<f4", FW_FLOAT32, 4}, {"<f8", FW_FLOAT64, 8}, {"<i8", FW_INT64, 8}, {"<i4", FW_INT32, 4},
                      {"|b1", FW_BOOL, 1}, {"|u1", FW_UINT8, 1}, {"|i1", FW_INT8, 1}};

struct NpyArray {
    std::vector<char> data;
    std::vector<int64_t> shape, strides;
    const NpyType* kind = nullptr;

    fw_view view() { return {data.data(), kind->type, int(shape.size()), shape.data(), strides.data()}; }
    int64_t count() const {
        int64_t n = 1;
        for (int64_t size : shape)
            if (size < 0 || __builtin_mul_overflow(n, size, &n)) return -1;
        return n;
    }
};

std::string after(const std::string& head, const char* key) {
    const size_t at = head.find(key);
    return at == std::string::npos ? "" : head.substr(at + std::strlen(key));
}

NpyArray read_npy(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (!file) fail(std::string("cannot open ") + path);
    unsigned char start[12];
    const bool good = std::fread(start, 1, 10, file) == 10 && !std::memcmp(start, "\x93NUMPY", 6) && start[6] >= 1 &&
                      (start[6] == 1 || std::fread(start + 10, 1, 2, file) == 2);
    if (!good) fail(std::string(path) + " is not a .npy file");
    size_t length = size_t(start[8] | start[9] << 8);
    if (start[6] > 1) length |= size_t(start[10]) << 16 | size_t(start[11]) << 24;
    std::string head(std::min<size_t>(length, 1 << 16), 0);
    if (length > head.size() || std::fread(&head[0], 1, length, file) != length) fail(std::string(path) + " ends early");
    NpyArray a;
    const std::string type = after(head, "'descr': '"), order = after(head, "'fortran_order': "), sizes = after(head, "'shape': (");
    for (const NpyType& k : kinds)
        if (type.compare(0, 3, k.name) == 0) a.kind = &k;
    if (!a.kind) fail(std::string(path) + ": numbers of another type (" + type.substr(0, 4) + ")");
    if (order.compare(0, 5, "False") != 0) fail(std::string(path) + ": column by column; save np.ascontiguousarray(x)");
    for (const char* p = sizes.c_str(); *p && *p != ')';) {
        char* end;
        const int64_t n = std::strtoll(p, &end, 10);
        if (end == p) break;
        a.shape.push_back(n);
        for (p = end; *p == ',' || *p == ' '; ++p) {}
    }
    const int64_t count = a.count();
    if (count < 0 || count > (int64_t(1) << 40)) fail(std::string(path) + ": a shape that there is not");
    a.data.resize(size_t(count * a.kind->bytes));
    if (std::fread(a.data.data(), 1, a.data.size(), file) != a.data.size()) fail(std::string(path) + " ends early");
    std::fclose(file);
    a.strides.resize(a.shape.size());
    int64_t step = a.kind->bytes;
    for (size_t d = a.shape.size(); d-- > 0; step *= a.shape[d]) a.strides[d] = step;
    return a;
}

// The elements from place `p` on, row by row, behind one another.
void append(std::vector<char>& to, const char* p, const fw_view& v, int d, int64_t bytes) {
    if (d == v.ndim) {
        to.insert(to.end(), p, p + bytes);
        return;
    }
    for (int64_t i = 0; i < v.shape[d]; ++i) append(to, p + i * v.strides[d], v, d + 1, bytes);
}

void write_npy(const std::string& path, const fw_view& v) {
    const NpyType* kind = nullptr;
    for (const NpyType& k : kinds)
        if (k.type == v.type) kind = &k;
    if (!kind) fail("an output of a type that .npy files do not have");
    std::string head = std::string("{'descr': '") + kind->name + "', 'fortran_order': False, 'shape': (";
    for (int d = 0; d < v.ndim; ++d) head += std::to_string(v.shape[d]) + (v.ndim == 1 || d + 1 < v.ndim ? ", " : "");
    head += "), }";
    head.resize((head.size() + 10 + 1 + 63) / 64 * 64 - 10 - 1, ' ');
    head += '\n';
    std::vector<char> data;
    append(data, static_cast<const char*>(v.data), v, 0, kind->bytes);
    const unsigned char start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(head.size() & 255),
                                   (unsigned char)(head.size() >> 8)};
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (!file || std::fwrite(start, 1, 10, file) != 10 || std::fwrite(head.data(), 1, head.size(), file) != head.size() ||
        std::fwrite(data.data(), 1, data.size(), file) != data.size() || std::fclose(file) != 0)
        fail("cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) {
    std::string prefix = "output";
    int times = 0;
    std::vector<const char*> paths;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        const bool more = i + 1 < argc;
        if (arg == "--out" && more) prefix = argv[++i];
        else if (arg == "--threads" && more) fw_set_threads(std::atoi(argv[++i]));
        else if (arg == "--times" && more) times = std::atoi(argv[++i]);
        else if (arg.compare(0, 2, "--") == 0) fail("there is no " + arg + "; usage: framework-run model.fwk input.npy ... "
                                                    "[--out PREFIX] [--threads N] [--times N]");
        else paths.push_back(argv[i]);
    }
    if (paths.empty()) fail("usage: framework-run model.fwk input.npy ... [--out PREFIX] [--threads N] [--times N]");
    framework_model* model = nullptr;
    framework_request* request = nullptr;
    framework_message why;
    if (framework_model_load(paths[0], &model, &why) != FW_OK) fail(why.text);
    if (framework_request_new(model, &request) != FW_OK) fail("out of memory");
    std::vector<NpyArray> arrays;
    std::vector<fw_view> inputs;
    for (size_t i = 1; i < paths.size(); ++i) arrays.push_back(read_npy(paths[i]));
    for (NpyArray& a : arrays) inputs.push_back(a.view());
    std::vector<fw_view> outputs(size_t(framework_model_outputs(model)));
    auto run = [&] {
        if (framework_model_run(request, inputs.data(), int(inputs.size()), outputs.data(), int(outputs.size()), &why))
            fail(why.text);
    };
    run();
    if (times > 0) {
        std::vector<double> took;
        for (int i = 0; i < times; ++i) {
            const auto before = std::chrono::steady_clock::now();
            run();
            took.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before).count());
        }
        std::sort(took.begin(), took.end());
        std::printf("%s: %.1f us (median of %d, %s, %d threads)\n", paths[0], took[took.size() / 2], times,
                    fw_instruction_set(), fw_threads());
    }
    for (size_t i = 0; i < outputs.size(); ++i) write_npy(prefix + std::to_string(i) + ".npy", outputs[i]);
    framework_request_free(request);
    framework_model_free(model);
}
