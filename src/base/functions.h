/* functions.h - logarithm, exponential, sine and cosine with bit-identical results on every machine
 *
 * The functions of a libm are accurate to an ulp or so, but their last bit differs between C libraries.
 * Where that could change a byte of a batch (random draws, crop boxes, filter weights), these functions
 * are used instead. They consist of additions, multiplications, divisions and exact changes of the
 * exponent, for which IEEE 754 defines the rounding. They are within one ulp of the true value (power: a
 * few ulps), as is any good libm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_FUNCTIONS_H
#define ST_BASE_FUNCTIONS_H

double st_ln(double x); /* 0: minus infinity; negative: NaN */
double st_exp(double x);
/* |x| up to 2^20; NaN beyond, because the reduction uses too few digits of pi for larger arguments. */
double st_sin(double x);
double st_cos(double x);
double st_power(double base, double exponent); /* base >= 0 */

#endif
