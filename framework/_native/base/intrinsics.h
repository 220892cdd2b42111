// The instructions of the processor as functions.
//
// GCC's <immintrin.h> declares those of every processor there has been, which takes as long to read as many kernels
// take to compile: where CMake found that it can be had in parts (FW_INTRINSICS_IN_PARTS) only what kernels use is read.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__) && !defined(FW_INTRINSICS_IN_PARTS)
#include <immintrin.h>
#elif defined(__x86_64__)
#define _IMMINTRIN_H_INCLUDED  // the parts ask for it
#include <x86gprintrin.h>
#include <smmintrin.h>
#include <wmmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <avxvnniintrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
#if defined(__AVX512F__)
#include <avx512fintrin.h>
#include <avx512vlintrin.h>
#include <avx512bwintrin.h>
#include <avx512dqintrin.h>
#include <avx512vlbwintrin.h>
#include <avx512vldqintrin.h>
#include <avx512vnniintrin.h>
#include <avx512vnnivlintrin.h>
#include <avx512bf16vlintrin.h>
#include <avx512bf16intrin.h>
#endif
#endif
