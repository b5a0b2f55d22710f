#!/usr/bin/env python3
"""Runs kernels through `hadal run` and compares every output bit with numpy.

usage: check.py HADAL KERNELS [--write DIR]

The arithmetic here is written apart from Hadal's: one float32 accumulator from +0, contraction index
ascending, the product rounded before it is added; bfloat16 and FP8 by their bit layouts. With --write, the
inputs and outputs of three kernels are kept in DIR as data.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np


def bf16_to_f32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    assert not np.isnan(x).any()
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def fp8_to_f32(codes, exponent_bits, bias):
    """Legacy float8_e4m3 (4, 7) and float8_e5m2 (5, 15): finite codes only."""
    mantissa_bits = 7 - exponent_bits
    c = codes.astype(np.int32)
    e = (c >> mantissa_bits) & ((1 << exponent_bits) - 1)
    m = (c & ((1 << mantissa_bits) - 1)) / float(1 << mantissa_bits)
    assert (e < (1 << exponent_bits) - 1).all()
    value = np.where(e == 0, np.ldexp(m, 1 - bias), np.ldexp(1 + m, e - bias))
    return np.where(c & 0x80, -value, value).astype(np.float32)


def matmul(w, x):
    """out[m, n] = sum over k of w[k, m] * x[k, n]."""
    acc = np.zeros((w.shape[1], x.shape[1]), np.float32)
    for k in range(w.shape[0]):
        acc = acc + w[k][:, None] * x[k][None, :]
    return acc


def fp8_table(exponent_bits, bias, count):
    """Values of the finite codes without sign, in order."""
    codes = np.arange(count)
    mantissa_bits = 7 - exponent_bits
    e, m = codes >> mantissa_bits, (codes & ((1 << mantissa_bits) - 1)) / float(1 << mantissa_bits)
    return np.where(e == 0, np.ldexp(m, 1 - bias), np.ldexp(1 + m, e - bias))


E4M3FN, E5M2 = fp8_table(4, 7, 0x7F), fp8_table(5, 15, 0x7C)


def f32_to_fp8(x, table):
    """The nearest code of a table, ties to the even one; too large is the largest."""
    magnitude = np.abs(x.astype(np.float64))
    between = (table[1:] + table[:-1]) / 2
    code = np.searchsorted(between, magnitude, side="left")
    tie = (code < len(between)) & (magnitude == between[np.minimum(code, len(between) - 1)])
    code = np.where(tie & (code % 2 == 1), code + 1, code)
    return (code | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)


def quantize_mx(x, table, emax):
    """The reference rule on float32 [P, F]: codes [P, F], scales [P/8, F/4]."""
    p, f = x.shape
    exponent = (x.view(np.uint32) >> 23 & 0xFF).astype(np.int64)
    top = exponent.reshape(p // 8, 8, f // 4, 4).max(axis=(1, 3))
    scale = np.maximum(1, np.maximum(0, top - emax))
    factor = np.ldexp(1.0, 127 - scale).astype(np.float32).repeat(8, 0).repeat(4, 1)
    return f32_to_fp8(x * factor, table), scale.astype(np.uint8)


def mx_operand(codes, scales, table):
    """Float32 values [4 P, F/4]: partition, then lane."""
    p, f = codes.shape
    value = np.where(codes & 0x80, -1.0, 1.0) * table[codes & 0x7F]
    value = np.ldexp(value, scales.astype(np.int64).repeat(8, 0).repeat(4, 1) - 127).astype(np.float32)
    return value.reshape(p, f // 4, 4).transpose(0, 2, 1).reshape(4 * p, f // 4)


class Case:
    def __init__(self, hadal, kernels, name, target, extra=()):
        self.hadal, self.path = hadal, os.path.join(kernels, name + ".klr")
        self.name, self.target, self.extra = name, target, list(extra)

    def run(self, inputs, outputs):
        """`outputs` are names of arrays to read back as bit patterns."""
        with tempfile.TemporaryDirectory() as d:
            args = [self.hadal, "run", self.path, "--target", self.target, "--executor", "both", "-q"]
            for k, v in inputs.items():
                np.save(os.path.join(d, k + ".in.npy"), v)
                args += ["--in", f"{k}={d}/{k}.in.npy"]
            for k in outputs:
                args += ["--dump", f"{k}={d}/{k}.out.npy"]
            r = subprocess.run(args + self.extra, capture_output=True, text=True)
            if r.returncode != 0:
                sys.exit(f"{self.name} on {self.target}: exit {r.returncode}\n{r.stderr}")
            return {k: np.load(os.path.join(d, k + ".out.npy")) for k in outputs}

    def expect(self, inputs, outputs):
        got = self.run(inputs, outputs)
        for k, want in outputs.items():
            have = got[k].reshape(want.shape)
            if have.tobytes() != want.tobytes():
                bad = np.argwhere(have != want)
                sys.exit(f"{self.name} on {self.target}: {k} differs at {bad[:4].tolist()}")
        return inputs, got


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


def main():
    args = sys.argv[1:]
    write = args[args.index("--write") + 1] if "--write" in args else None
    hadal, kernels = args[0], args[1]
    rng = np.random.default_rng(20)
    normal = lambda *s: f32_to_bf16(rng.standard_normal(s).astype(np.float32))
    kept = {}
    ran = 0

    for target in ("trn1", "trn2", "trn3"):
        case = lambda name, *extra: Case(hadal, kernels, name, target, extra)
        a, b = normal(4, 3), normal(4, 5)
        kept["tiny_mm"] = case("tiny_mm").expect({"a": a, "b": b}, {"p": bits(matmul(bf16_to_f32(a), bf16_to_f32(b)))})
        case("tiny_mm_placeholder_props").expect({"a": a, "b": b}, {"p": bits(matmul(bf16_to_f32(a), bf16_to_f32(b)))})

        w, x = normal(128, 128), normal(128, 512)
        fw, fx = bf16_to_f32(w), bf16_to_f32(x)
        for name in ("a_dense_kernel", "a_dense_bf16_128x128x512"):
            case(name).expect({"lhsT": w, "rhs": x}, {"out": bits(matmul(fw, fx))})

        # Four row blocks of 128, added into one PSUM tile one after the other, then narrowed.
        w4, x4 = normal(512, 128), normal(512, 512)
        acc = None
        for k in range(0, 512, 128):
            part = matmul(bf16_to_f32(w4[k : k + 128]), bf16_to_f32(x4[k : k + 128]))
            acc = part if acc is None else acc + part
        case("b_k512_accumulate4").expect({"lhsT": w4, "rhs": x4}, {"out": f32_to_bf16(acc)})

        # Rows 0..64 and 64..128 in two PSUM tiles, then one float32 addition.
        case("c_tile64x64").expect(
            {"lhsT": w, "rhs": x}, {"out": bits(matmul(fw[:64], fx[:64]) + matmul(fw[64:], fx[64:]))}
        )

        w2 = normal(128, 256)
        fw2 = bf16_to_f32(w2)
        case("h_lnc2_two_cores").expect(
            {"lhsT": w2, "rhs": x}, {"out": bits(np.vstack([matmul(fw2[:, :128], fx), matmul(fw2[:, 128:], fx)]))}
        )
        ran += 7
        if target == "trn1":
            continue

        t, y = normal(128, 64), normal(128, 128)
        case("e_transpose", "--klr-transpose", "moving").expect(
            {"x": t, "y": y}, {"out": np.ascontiguousarray(t.T), "out2": np.ascontiguousarray(y.T)}
        )

        # DoubleRow: contraction over partitions, then the pair.
        e4 = rng.integers(0, 0x70, (128, 2, 128), np.uint8) | rng.integers(0, 2, (128, 2, 128), np.uint8) << 7
        e5 = rng.integers(0x20, 0x58, (128, 2, 512), np.uint8) | rng.integers(0, 2, (128, 2, 512), np.uint8) << 7
        fe4 = fp8_to_f32(e4, 4, 7).reshape(256, 128)
        fe5 = fp8_to_f32(e5, 5, 15).reshape(256, 512)
        kept["f_doublerow_fp8"] = case("f_doublerow_fp8").expect(
            {"lhsT": e4, "rhs": e5}, {"out": bits(matmul(fe4, fe5))}
        )
        ran += 2

    # MX. Rows and columns of different size, so that the blocks need different scales.
    def spread(p, f):
        size = np.ldexp(1.0, rng.integers(-12, 13, (p // 8, f // 4))).repeat(8, 0).repeat(4, 1)
        return f32_to_bf16((rng.standard_normal((p, f)) * size).astype(np.float32))

    case = lambda name: Case(hadal, kernels, name, "trn3")
    a, b = spread(32, 128), spread(32, 256)
    a_codes, a_scales = quantize_mx(bf16_to_f32(a), E4M3FN, 8)
    b_codes, b_scales = quantize_mx(bf16_to_f32(b), E4M3FN, 8)
    product = matmul(mx_operand(a_codes, a_scales, E4M3FN), mx_operand(b_codes, b_scales, E4M3FN))
    kept["d2_mx_rowtile32"] = case("d2_mx_rowtile32").expect({"a": a, "b": b}, {"out": bits(product)})

    codes = rng.integers(0, 0x7F, (128, 512), np.uint8) | rng.integers(0, 2, (128, 512), np.uint8) << 7
    scales = rng.integers(118, 137, (16, 128), np.uint8)
    m = spread(128, 2048)
    m_codes, m_scales = quantize_mx(bf16_to_f32(m), E5M2, 15)
    product = matmul(mx_operand(codes, scales, E4M3FN), mx_operand(m_codes, m_scales, E5M2))
    inputs = {"stationary_mx_data": codes.view("<u4"), "stationary_mx_scale": scales, "moving_bf16": m}
    case("d_mx_scattered").expect(inputs, {"out": f32_to_bf16(product)})
    ran += 2

    if write:
        for name, (inputs, outputs) in kept.items():
            for k, v in inputs.items():
                np.save(os.path.join(write, f"{name}.{k}.in.npy"), v)
            for k, v in outputs.items():
                np.save(os.path.join(write, f"{name}.{k}.out.npy"), v)
    print(f"{ran} kernels agree with numpy")


main()
