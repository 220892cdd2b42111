// Model files. Everything is read through a cursor that knows where the file ends; see runtime/README.md for the format.
#include <array>
#include <cstdio>
#include <cstring>

#include "runtime/model.h"

namespace fw::runtime {

void refuse(fw_status status, std::string why) { throw Refused{status, std::move(why)}; }

namespace {

constexpr char MAGIC[8] = {'F', 'W', 'M', 'O', 'D', 'E', 'L', '\n'};
constexpr uint32_t VERSION = 1;
constexpr size_t HEAD = 64, COUNTED_FROM = 16;  // the checksum counts what follows it
constexpr int64_t MOST_ROWS = 1 << 20;          // of a table

[[noreturn]] void damaged(const char* what) { refuse(FW_INVALID, std::string("damaged model file: ") + what); }

// CRC-32 (ISO 3309), eight bytes at a time.
uint32_t checksum(const unsigned char* p, size_t n) {
    static const auto table = [] {
        std::array<std::array<uint32_t, 256>, 8> t{};
        for (uint32_t i = 0; i < 256; ++i) {
            uint32_t c = i;
            for (int k = 0; k < 8; ++k) c = (c >> 1) ^ (c & 1 ? 0xedb88320u : 0);
            t[0][i] = c;
        }
        for (uint32_t i = 0; i < 256; ++i)
            for (size_t k = 1; k < 8; ++k) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
        return t;
    }();
    uint32_t crc = ~0u;
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t low, high;
        std::memcpy(&low, p, 4), std::memcpy(&high, p + 4, 4);
        low ^= crc;
        crc = 0;
        for (int k = 0; k < 4; ++k)
            crc ^= table[size_t(7 - k)][(low >> (8 * k)) & 255] ^ table[size_t(3 - k)][(high >> (8 * k)) & 255];
    }
    for (; n; ++p, --n) crc = (crc >> 8) ^ table[0][(crc ^ *p) & 255];
    return ~crc;
}

// The words of a file's program, one after the other.
class Cursor {
  public:
    Cursor(const char* p, size_t words) : p(p), left(words) {}

    int64_t word() {
        if (!left) damaged("it ends early");
        int64_t w;
        std::memcpy(&w, p, 8);
        p += 8, --left;
        return w;
    }
    // a number of [least, most]
    int64_t word(int64_t least, int64_t most, const char* what) {
        const int64_t w = word();
        if (w < least || w > most) damaged(what);
        return w;
    }
    // how many rows of at least one word follow
    int64_t count() { return word(0, std::min<int64_t>(MOST_ROWS, int64_t(left)), "a count"); }
    double real() {
        const int64_t w = word();
        double d;
        std::memcpy(&d, &w, 8);
        return d;
    }
    std::string text() {
        const size_t n = size_t(word(0, 1 << 12, "the length of a name")), words = (n + 7) / 8;
        if (words > left) damaged("it ends early");
        std::string s(p, n);
        p += 8 * words, left -= words;
        return s;
    }
    bool done() const { return left == 0; }

  private:
    const char* p;
    size_t left;
};

struct Head {
    uint64_t size, words, data;  // of the file in bytes, of the program; where the constants begin
};

Head head_of(const char* bytes, size_t count) {
    uint32_t version, sum;
    Head h;
    if (count < HEAD || std::memcmp(bytes, MAGIC, 8) != 0) refuse(FW_INVALID, "this is not a model file");
    std::memcpy(&version, bytes + 8, 4), std::memcpy(&sum, bytes + 12, 4);
    std::memcpy(&h, bytes + 16, sizeof h);
    if (version != VERSION)
        refuse(FW_INVALID, "this model file has version " + std::to_string(version) + ", this library reads version " +
                               std::to_string(VERSION));
    if (h.size != count) damaged("it is longer or shorter than it was written");
    if (h.words > (count - HEAD) / 8 || h.data < HEAD + 8 * h.words || h.data > count || h.data % 64)
        damaged("a place outside of it");
    if (sum != checksum(reinterpret_cast<const unsigned char*>(bytes) + COUNTED_FROM, count - COUNTED_FROM))
        damaged("its checksum is another one");
    return h;
}

void read_sizes(Cursor& c, Model& m) {
    const int64_t mask = (int64_t(1) << m.symbols.size()) - 1, most = int64_t(1) << 56;
    for (int64_t n = c.count(); n > 0; --n) {
        Size s;
        s.factor = c.word(-most, most, "a size"), s.more = c.word(-most, most, "a size");
        s.over = c.word(1, most, "a size"), s.symbols = uint32_t(c.word(0, mask, "a symbol"));
        if (s.fixed() && (s.factor || s.over != 1)) damaged("a size");
        m.sizes.push_back(s);
    }
}

// Sizes of inputs are numbers or symbols.
bool names_a_size(const Size& s) {
    if (s.fixed()) return s.more > 0 && s.more <= MOST_NUMBERS;
    return s.factor == 1 && s.more == 0 && s.over == 1 && (s.symbols & (s.symbols - 1)) == 0;
}

void read_values(Cursor& c, Model& m, uint64_t data) {
    const std::vector<int64_t> none;
    for (int64_t n = c.count(); n > 0; --n) {
        Value v;
        v.kind = Kind(c.word(0, 2, "the kind of a value"));
        v.type = Type(c.word(0, FW_INT8, "the type of a value"));
        v.name = c.text();
        if (v.kind != Kind::result) {
            for (int64_t d = c.word(0, MOST_AXES, "a number of dimensions"); d > 0; --d)
                v.sizes.push_back(int(c.word(0, int64_t(m.sizes.size()) - 1, "a size")));
            if (v.kind == Kind::input) {
                for (int s : v.sizes)
                    if (!names_a_size(m.sizes[size_t(s)])) damaged("the size of an input");
                m.inputs.push_back(int(m.values.size()));
            }
        }
        if (v.kind == Kind::constant) {
            int64_t count = 1;
            for (int s : v.sizes) {
                if (!m.sizes[size_t(s)].fixed()) damaged("the size of a constant");
                const int64_t size = m.sizes[size_t(s)].at(none);
                if (size < 1 || __builtin_mul_overflow(count, size, &count) || count > MOST_NUMBERS)
                    damaged("the size of a constant");
            }
            const uint64_t bytes = uint64_t(count) * uint64_t(bytes_of(v.type));
            v.place = c.word(0, int64_t(data), "the place of a constant");
            if (v.place % 64 || bytes > data || uint64_t(v.place) > data - bytes) damaged("the place of a constant");
        }
        m.values.push_back(std::move(v));
    }
}

void read_steps(Cursor& c, Model& m) {
    const int64_t values = int64_t(m.values.size());
    std::vector<bool> known;
    for (const Value& v : m.values) known.push_back(v.kind != Kind::result);
    m.last_use.assign(m.values.size(), -1);
    for (int64_t n = c.count(), at = 0; at < n; ++at) {
        Step s;
        s.name = c.text();
        s.prepare = operation(s.name);
        if (!s.prepare) refuse(FW_UNSUPPORTED, "this library has no operation " + s.name + "; use a newer one");
        for (int64_t k = c.count(); k > 0; --k) {
            const int v = int(c.word(-1, values - 1, "an operand"));
            if (v >= 0 && !known[size_t(v)]) damaged("a step before its operands");
            if (v >= 0) m.last_use[size_t(v)] = int(at);
            s.inputs.push_back(v);
        }
        for (int64_t k = c.count(); k > 0; --k)
            s.numbers.push_back(int(c.word(0, int64_t(m.sizes.size()) - 1, "a number")));
        for (int64_t k = c.count(); k > 0; --k) s.reals.push_back(c.real());
        for (int64_t k = c.count(); k > 0; --k) s.words.push_back(c.text());
        for (int64_t k = c.count(); k > 0; --k) {
            const int v = int(c.word(-1, values - 1, "a result"));
            if (v >= 0 && known[size_t(v)]) damaged("a value with two origins");
            if (v >= 0) known[size_t(v)] = true;
            s.outputs.push_back(v);
        }
        m.steps.push_back(std::move(s));
    }
    for (int64_t k = c.count(); k > 0; --k) {
        const int v = int(c.word(0, values - 1, "an output"));
        if (!known[size_t(v)]) damaged("an output that no step makes");
        m.last_use[size_t(v)] = int(m.steps.size());
        m.outputs.push_back({v, c.text()});
    }
}

void* aligned(size_t bytes) {
    void* p = std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!p) throw std::bad_alloc();
    return p;
}

}  // namespace

int64_t Size::at(const std::vector<int64_t>& of_symbols) const {
    int64_t n = factor;
    bool good = true;
    for (size_t i = 0; i < of_symbols.size(); ++i)
        if (symbols >> i & 1) good = good && !__builtin_mul_overflow(n, of_symbols[i], &n);
    if (!good || __builtin_add_overflow(n, more, &n)) refuse(FW_INVALID, "sizes whose product cannot be counted");
    return n / over - (n % over < 0);
}

std::unique_ptr<Model> read_model(const void* given, size_t count) {
    const char* bytes = static_cast<const char*>(given);
    const Head h = head_of(bytes, count);
    auto m = std::make_unique<Model>();
    Cursor c(bytes + HEAD, h.words);
    for (int64_t n = c.word(0, std::min<int64_t>(MOST_SYMBOLS - 1, int64_t(h.words)), "a count"); n > 0; --n)
        m->symbols.push_back(c.text());
    read_sizes(c, *m);
    read_values(c, *m, count - h.data);
    read_steps(c, *m);
    if (!c.done() || m->outputs.empty()) damaged("what follows its outputs");
    m->data = {static_cast<char*>(aligned(count - h.data)), std::free};
    m->data_bytes = int64_t(count - h.data);
    std::memcpy(m->data.get(), bytes + h.data, count - h.data);
    return m;
}

std::unique_ptr<Model> read_model(const char* path) {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), std::fclose);
    if (!file || std::fseek(file.get(), 0, SEEK_END) != 0) refuse(FW_INVALID, std::string("cannot open ") + path);
    const long size = std::ftell(file.get());
    if (size < 0 || std::fseek(file.get(), 0, SEEK_SET) != 0) refuse(FW_INVALID, std::string("cannot read ") + path);
    std::unique_ptr<char, void (*)(void*)> bytes(static_cast<char*>(aligned(size_t(size))), std::free);
    if (std::fread(bytes.get(), 1, size_t(size), file.get()) != size_t(size))
        refuse(FW_INVALID, std::string("cannot read ") + path);
    return read_model(bytes.get(), size_t(size));
}

}  // namespace fw::runtime
