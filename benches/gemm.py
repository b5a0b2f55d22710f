#!/usr/bin/env python3
"""Times products of matrices beside numpy, torch and a plain numpy simulation of an MX matmul.

    python3 -m venv /tmp/compare && /tmp/compare/bin/pip install numpy ml-dtypes torch
    cargo build --release -p hadal-num --example products
    /tmp/compare/bin/python benches/gemm.py [--threads 1] [--passes 9] [--shape 128,128,512] ...

What is compared is run in turn, pass after pass, and a ratio is the median of the ratios within a pass: whole passes
differ by a factor of two on a shared machine. Times are processor time with one thread, the clock's with more; a
measurement is the fastest of a few runs. Libraries that are not installed are left out. Hadal's sums have one order
and every product is rounded; the other libraries promise neither.

The numpy simulation is what one writes without a library: unpack the containers, cast with ml_dtypes, scale with
ldexp, and one einsum over partitions and lanes.
"""

import argparse
import json
import pathlib
import statistics
import sys

import beside

parser = argparse.ArgumentParser(description="Compare hadal's products with other libraries.")
parser.add_argument("--shape", action="append", metavar="K,M,N", help="default: the tile, its MX form, 1024 and 2048")
parser.add_argument("--limit", type=float, default=1.0, help="leave out what takes longer than this, in seconds")
parser.add_argument("--products", type=pathlib.Path, help="the built example `products`")
args = beside.parse(parser, passes=9)
binary = beside.built("products", args.products)

import numpy as np  # noqa: E402  (the variables that `parse` sets must come first)

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import torch

    torch.set_num_threads(args.threads)
except ImportError:
    torch = None


def seconds(work, repeat):
    return min(beside.times(work, repeat, args.threads))


def mx_operand(rng, k, columns):
    """Codes and scales of an MX operand: `[k / 4, columns]` containers, `[k / 32, columns]` scales."""
    codes = rng.standard_normal((k // 4, columns, 4)).astype(ml_dtypes.float8_e4m3fn).view(np.uint32)
    return codes.reshape(k // 4, columns), rng.integers(120, 134, (k // 32, columns), dtype=np.uint8)


def numpy_mx(w, x):
    """An MX matmul as a simulator in numpy has it."""

    def dequantize(containers, scales):
        values = containers.view(ml_dtypes.float8_e4m3fn).reshape(*containers.shape, 4).astype(np.float32)
        return np.ldexp(values, np.repeat(scales.astype(np.int32) - 127, 8, axis=0)[:, :, None])

    return np.einsum("pmq,pnq->mn", dequantize(*w), dequantize(*x))


def others(shape):
    """(what, hadal's operation, work) for everything there is to compare with."""
    k, m, n = shape
    rng = np.random.default_rng(1)
    w = rng.standard_normal((k, m)).astype(np.float32)
    x = rng.standard_normal((k, n)).astype(np.float32)
    cases = [("numpy float32", "float32", lambda: w.T @ x), ("numpy float32", "bfloat16", lambda: w.T @ x)]
    if torch is not None:
        a, b = torch.from_numpy(w.T.copy()), torch.from_numpy(x)
        a16, b16 = a.to(torch.bfloat16), b.to(torch.bfloat16)
        cases.append(("torch float32", "float32", lambda: a @ b))
        cases.append(("torch float32", "bfloat16", lambda: a @ b))
        cases.append(("torch bfloat16", "bfloat16", lambda: a16 @ b16))
        a8 = a.to(torch.float8_e4m3fn)
        b8 = b.T.contiguous().to(torch.float8_e4m3fn).T
        one = torch.tensor(1.0)
        scaled = lambda: torch._scaled_mm(a8, b8, one, one, out_dtype=torch.float32)  # noqa: E731
        try:
            scaled()
        except (RuntimeError, AttributeError) as error:
            print(f"torch scaled FP8: {str(error).splitlines()[0]}", file=sys.stderr)
        else:
            cases.append(("torch scaled FP8", "float8_e4m3fn", scaled))
            cases.append(("torch scaled FP8", "mx-float8_e4m3fn", scaled))
    if ml_dtypes is not None and k % 32 == 0 and k * m * n <= 1 << 26:
        wq, xq = mx_operand(rng, k, m), mx_operand(rng, k, n)
        cases.append(("numpy MX simulation", "mx-float8_e4m3fn", lambda: numpy_mx(wq, xq)))
    return cases


rows = []
shapes = [tuple(map(int, shape.split(","))) for shape in args.shape or []]
for shape in shapes or [(128, 128, 512), (512, 128, 512), (1024, 1024, 1024), (2048, 2048, 2048)]:
    k, m, n = shape
    repeat = max(2, min(20, (1 << 28) // (k * m * n)))
    hadal = beside.Hadal(binary, args.threads, *shape)
    cases = []
    for case in others(shape):
        once = seconds(case[2], 1)
        if once > args.limit:
            print(f"{case[0]} takes {once:.1f} s for {k} x {m} x {n}: left out", file=sys.stderr)
        else:
            cases.append((*case, 1 if once > 0.1 else repeat))
    ours = [[] for _ in cases]
    theirs = [[] for _ in cases]
    for _ in range(args.passes + 1):  # the first one warms up
        for i, (_, operation, work, times) in enumerate(cases):
            theirs[i].append(seconds(work, times))
            ours[i].append(min(hadal.times(operation, repeat)))
    print(f"{k} x {m} x {n}, {args.threads} thread(s), medians of {args.passes} passes, GFLOP/s")
    for (what, operation, *_), mine, other in zip(cases, ours, theirs):
        mine, other = mine[1:], other[1:]
        ratio = statistics.median(b / a for a, b in zip(mine, other))
        a, b = (2e-9 * k * m * n / statistics.median(times) for times in (mine, other))
        rows.append({"shape": shape, "hadal": operation, "other": what, "rates": [a, b], "ratio": ratio})
        print(f"  {operation:18} {a:7.1f}   {what:20} {b:7.1f}   {ratio:6.2f}x")
    hadal.close()
if args.json:
    args.json.write_text(json.dumps(rows, indent=1) + "\n")
