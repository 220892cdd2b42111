// The functions of the instruction set that this processor is to use; nullptr where it has none of those built in.
#pragma once

#include "library/table.h"

#define FW_PUBLIC extern "C" __attribute__((visibility("default")))

const FwTable* chosen();
