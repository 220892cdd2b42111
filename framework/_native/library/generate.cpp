// Text from a GPT of characters, without Python.
//
//     c++ -std=c++17 generate.cpp -I. -L.. -lframework -Wl,-rpath,.. -o generate
//     ./generate gpt.fwk characters.txt "To be" 200 [LENGTH]
//
// The model takes (1, length) positions in the alphabet, whose characters stand in characters.txt one after another, and
// gives (1, length, characters) scores. The most likely character comes next, and so on. LENGTH: how many characters it looks
// back on at most, 128 unless the model has one length.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "framework.h"

[[noreturn]] static void fail(const std::string& why) {
    std::fprintf(stderr, "generate: %s\n", why.c_str());
    std::exit(1);
}

int main(int argc, char** argv) {
    if (argc != 5 && argc != 6) fail("usage: generate gpt.fwk characters.txt PROMPT COUNT [LENGTH]");
    framework_message why;
    framework_model* loaded = nullptr;
    if (framework_model_load(argv[1], &loaded, &why) != FW_OK) fail(why.text);
    const std::unique_ptr<framework_model, void (*)(framework_model*)> model(loaded, framework_model_free);
    framework_request* made = nullptr;
    if (framework_request_new(model.get(), &made) != FW_OK) fail("out of memory");
    const std::unique_ptr<framework_request, void (*)(framework_request*)> request(made, framework_request_free);

    std::ifstream file(argv[2], std::ios::binary);
    const std::string alphabet{std::istreambuf_iterator<char>(file), {}};
    framework_port port;
    if (framework_model_input(model.get(), 0, &port) != FW_OK || port.type != FW_INT64 || port.ndim != 2)
        fail("not a model of text");
    std::vector<int64_t> text;
    for (char c : std::string(argv[3])) {
        const size_t at = alphabet.find(c);
        if (at == std::string::npos) fail(std::string("no such character: ") + c);
        text.push_back(int64_t(at));
    }
    if (text.empty()) fail("the prompt is empty");
    const int given = argc > 5 ? std::atoi(argv[5]) : 128;
    if (given < 1) fail("a length of 1 at least");
    const size_t longest = size_t(port.shape[1] < 0 ? given : port.shape[1]);  // what the model sees at once
    for (int left = std::atoi(argv[4]); left > 0; --left) {
        const size_t length = std::min(text.size(), longest);
        const int64_t shape[] = {1, int64_t(length)}, strides[] = {int64_t(8 * length), 8};
        const fw_view input{text.data() + (text.size() - length), FW_INT64, 2, shape, strides};
        fw_view scores;
        if (framework_model_run(request.get(), &input, 1, &scores, 1, &why) != FW_OK) fail(why.text);
        if (scores.type != FW_FLOAT32 || scores.ndim != 3 || size_t(scores.shape[2]) > alphabet.size())
            fail("not a model of this alphabet");
        const char* last = static_cast<const char*>(scores.data) + int64_t(length - 1) * scores.strides[1];
        auto score = [&](int64_t i) { return *reinterpret_cast<const float*>(last + i * scores.strides[2]); };
        int64_t best = 0;
        for (int64_t i = 1; i < scores.shape[2]; ++i)
            if (score(i) > score(best)) best = i;
        text.push_back(best);
    }
    for (int64_t c : text) std::putchar(alphabet[size_t(c)]);
    std::putchar('\n');
}
