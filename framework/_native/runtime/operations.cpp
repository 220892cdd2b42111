// The operations of models, by name.
#include "runtime/operations.h"


namespace fw::runtime {

Prepare operation(const std::string& name) {
    static const struct {
        const char* name;
        Prepare prepare;
    } all[] = {
        {"matmul", matmul}, {"linear", linear}, {"softmax", softmax}, {"program", program},
        {"reshape", reshape}, {"permute", permute}, {"slice", slice}, {"expand", expand},
        {"conv", conv}, {"max_pool", max_pool}, {"mean_pool", mean_pool},
        {"rnn_tanh", rnn_tanh}, {"rnn_relu", rnn_relu}, {"lstm", lstm}, {"gru", gru},
        {"layer_norm", layer_norm}, {"rms_norm", rms_norm}, {"attention", attention_of},
        {"sum", sum}, {"mean", mean}, {"amax", largest}, {"amin", smallest}, {"batch_norm", batch_norm}, {"cast", cast},
        {"transposed", transposed}, {"resample", resample}, {"grid_sample", grid_sample}, {"adaptive_max", adaptive_max},
        {"int8_linear", int8_linear}, {"int8_conv", int8_conv}, {"group_norm", group_norm},
        {"scatter", scatter}, {"take", take}, {"pad", pad}, {"triangle", triangle}, {"one_hot", one_hot},
        {"max", max_along}, {"min", min_along}, {"logic", logic}, {"measure", measure}, {"windows", windows},
        {"embedding", embedding}, {"join", join}, {"contiguous", contiguous}, {"arange", arange},
        {"sort", sorted}, {"topk", topk}, {"cumulate", cumulated}, {"gather", gathered},
    };
    for (const auto& o : all)
        if (name == o.name) return o.prepare;
    return nullptr;
}

}  // namespace fw::runtime
