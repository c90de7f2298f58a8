/* functions.h - logarithm, exponential, sine and cosine with the same bits on every machine
 *
 * A libm's functions are good to an ulp or so, and that ulp differs from one C library to the next.
 * Where it may decide a byte of a batch (what is drawn, how a box is cut, what a filter weighs) these
 * are used instead: they are made of additions, multiplications, divisions and exact changes of the
 * exponent, which IEEE 754 rounds in one way only. They are within one ulp of the true value (power:
 * within a few), and so of any good libm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_FUNCTIONS_H
#define ST_BASE_FUNCTIONS_H

double st_ln(double x); /* of 0: minus infinity; below: NaN */
double st_exp(double x);
/* |x| up to 2^20; NaN beyond, where a reduction by so few digits of pi says nothing. */
double st_sin(double x);
double st_cos(double x);
double st_power(double base, double exponent); /* base >= 0 */

#endif
