#!/usr/bin/env python3
"""Runs kernels through `hadal run` and compares every output bit with numpy.

usage: check.py HADAL KERNELS [--write DIR]

The arithmetic here is written apart from Hadal's: one float32 accumulator from +0, contraction index
ascending, the product rounded before it is added; bfloat16 and FP8 by their bit layouts. With --write, the
inputs and outputs of two kernels are kept in DIR as data.
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

    if write:
        for name, (inputs, outputs) in kept.items():
            for k, v in inputs.items():
                np.save(os.path.join(write, f"{name}.{k}.in.npy"), v)
            for k, v in outputs.items():
                np.save(os.path.join(write, f"{name}.{k}.out.npy"), v)
    print(f"{ran} kernels agree with numpy")


main()
