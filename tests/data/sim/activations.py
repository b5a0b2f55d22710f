#!/usr/bin/env python3
"""Writes activations.txt: float32 arguments and the function's value rounded once to float32, nearest even.

Values are computed with mpmath at 200 bits. Each line is: function, argument bits, value bits.
"""

import random
import struct
from fractions import Fraction

import mpmath as mp

mp.mp.prec = 200


def f32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def round_f32(x):
    """Bits of the float32 nearest to an mpf, ties to even; a nonzero value below half the least gives zero."""
    if x == 0:
        return 0
    sign = 0x80000000 if x < 0 else 0
    x = abs(x)
    man, exp = x.man, x.exp  # x = man * 2^exp, exactly
    value = Fraction(int(man)) * Fraction(2) ** int(exp)
    top = man.bit_length() + exp - 1
    unit = Fraction(2) ** max(top - 23, -149)
    q, r = divmod(value, unit)
    q = int(q)
    if r * 2 > unit or (r * 2 == unit and q & 1):
        q += 1
    value = q * unit
    if value == 0:
        return sign
    if value >= Fraction(2) ** 128:
        return sign | 0x7F800000
    top = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** top > value:
        top -= 1
    if top < -126:
        return sign | int(value / Fraction(2) ** -149)
    return sign | (top + 127) << 23 | int(value / Fraction(2) ** (top - 23)) - (1 << 23)


FUNCTIONS = {
    "gelu": (lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, -14, 14),
    "exp": (mp.exp, -104, 89),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), -104, 40),
    "tanh": (mp.tanh, -12, 12),
    "square": (lambda x: x * x, -1e19, 1e19),
    "sqrt": (mp.sqrt, 0, 3e38),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), 0, 3e38),
    "reciprocal": (lambda x: 1 / x, -3e38, 3e38),
}


def main():
    rng = random.Random(31)
    bits_of = lambda v: struct.unpack("<I", struct.pack("<f", v))[0]
    print("# function, float32 argument bits, bits of the value rounded once; written by activations.py (mpmath)")
    for name, (f, lo, hi) in FUNCTIONS.items():
        args = set()
        while len(args) < 150:  # uniform in the range where the function has something to say
            args.add(bits_of(rng.uniform(lo, hi)))
        while len(args) < 300:  # any magnitude
            b = rng.getrandbits(32)
            x = f32(b)
            if x == x and lo <= x <= hi and x != 0:
                args.add(b)
        args |= {bits_of(v) for v in (1.0, 2.0, 0.5, 1e-40, 3.0) if lo <= v <= hi}
        for b in sorted(args):
            x = f32(b)
            print(f"{name} {b:08X} {round_f32(f(mp.mpf(x))):08X}")


main()
