/* vectors_x86.h - the widest vectors that the including file is compiled for, under common names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_VECTORS_X86_H
#define ST_BASE_VECTORS_X86_H

#include <immintrin.h>

#if defined(__AVX512F__)
typedef __m512i vector;
#define V(operation) _mm512_##operation
#elif defined(__AVX2__)
typedef __m256i vector;
#define V(operation) _mm256_##operation
#else
typedef __m128i vector;
#define V(operation) _mm_##operation
#endif

#endif
