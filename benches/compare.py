#!/usr/bin/env python3
"""Times casts and MX quantization beside ml_dtypes, torch and torchao, on one tensor shape.

    python3 -m venv /tmp/compare && /tmp/compare/bin/pip install numpy ml-dtypes torch torchao
    cargo build --release -p hadal-num --example rates
    /tmp/compare/bin/python benches/compare.py [--threads 1] [--passes 5] [--rows 4096 --cols 4096] [--rates PATH]

What is compared is run in turn, pass after pass, and a ratio is the median of the ratios within a pass: whole passes
differ by a factor of two on a shared machine. The last column is the ratio that a plain copy of the same bytes
reaches, which on a tensor larger than the caches is what memory allows. Times are processor time with one thread, the
clock's with more, the median of a few runs. Libraries that are not installed are left out.

Quantizing in numpy is timed twice: to the same containers and scales as hadal's, from blocks of 8 x 4, and in blocks of
32 in a row without packing, which is less work. torchao quantizes blocks of 32 in a row.
"""

import argparse
import json
import pathlib
import statistics
import sys

import beside

parser = argparse.ArgumentParser(description="Compare hadal's casts and MX quantizer with other libraries.")
parser.add_argument("--rows", type=int, default=4096)
parser.add_argument("--cols", type=int, default=4096)
parser.add_argument("--rates", type=pathlib.Path, help="the built example `rates`")
parser.add_argument("--skip", action="append", default=[], choices=["torch", "torchao"], help="a library to leave out")
args = beside.parse(parser, passes=5)
binary = beside.built("rates", args.rates)

import ml_dtypes  # noqa: E402  (the variables that `parse` sets must come first)
import numpy as np  # noqa: E402

try:
    import torch

    torch.set_num_threads(args.threads)
except ImportError:
    torch = None
try:
    import warnings

    warnings.filterwarnings("ignore")
    from torchao.prototype.mx_formats.mx_tensor import to_mx
except ImportError:
    to_mx = None

# Enough runs to lift a small tensor above the clock's grain.
repeat = max(5, min(200, (1 << 22) // (args.rows * args.cols)))


def seconds(work):
    once = beside.times(work, 1, args.threads)[0]
    runs = max(1, min(repeat, int(0.2 / max(once, 1e-9))))
    return statistics.median(beside.times(work, runs, args.threads))


rng = np.random.default_rng(1)
scales = np.exp2(np.arange(args.rows) % 8)[:, None]
wide = (rng.standard_normal((args.rows, args.cols)) * scales).astype(np.float32)
half = wide.astype(ml_dtypes.bfloat16)
narrow = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}


def numpy_blocks(blocks, axes, dtype, emax):
    """Codes and scales of blocks that lie along `axes`: scale by the largest exponent, clamp, cast."""
    _, exponent = np.frexp(np.abs(blocks).max(axis=axes, keepdims=True))
    scale = np.clip(exponent - 1 - emax + 127, 0, 254)
    limit = float(ml_dtypes.finfo(dtype).max)
    return np.clip(np.ldexp(blocks, 127 - scale), -limit, limit).astype(dtype), scale.astype(np.uint8)


def numpy_rows(source, dtype, emax):
    """Blocks of 32 in a row as numpy and ml_dtypes have it."""
    return numpy_blocks(source.astype(np.float32).reshape(-1, 32), 1, dtype, emax)


def numpy_containers(source, dtype, emax):
    """Blocks of 8 x 4 to containers and scales: but for blocks of zeros the bytes of hadal's rule `ocp`."""
    rows, cols = source.shape
    blocks = source.astype(np.float32).reshape(rows // 8, 8, cols // 4, 4)
    codes, scale = numpy_blocks(blocks, (1, 3), dtype, emax)
    codes, container = codes.view(np.uint8).reshape(rows, cols), np.uint32
    if dtype == ml_dtypes.float4_e2m1fn:
        codes, container = codes[:, ::2] | codes[:, 1::2] << 4, np.uint16
    return codes.view(container), scale[:, 0, :, 0]


cases = []  # (what, hadal's operation, library, work)
for name, dtype in narrow.items():
    codes = wide.clip(-400, 400).astype(dtype)
    cases += [
        (f"float32 > {name}", f"float32>{name}", "ml_dtypes", lambda d=dtype: wide.astype(d)),
        (f"bfloat16 > {name}", f"bfloat16>{name}", "ml_dtypes", lambda d=dtype: half.astype(d)),
        (f"{name} > float32", f"{name}>float32", "ml_dtypes", lambda c=codes: c.astype(np.float32)),
        (f"{name} > bfloat16", f"{name}>bfloat16", "ml_dtypes", lambda c=codes: c.astype(ml_dtypes.bfloat16)),
    ]
for name, dtype, emax in [
    ("float8_e4m3fn", ml_dtypes.float8_e4m3fn, 8),
    ("float4_e2m1fn", ml_dtypes.float4_e2m1fn, 2),
]:
    for kind, source in [("float32", wide), ("bfloat16", half)]:
        for library, function in [("numpy, 8 x 4", numpy_containers), ("numpy, rows", numpy_rows)]:
            work = lambda f=function, s=source, d=dtype, e=emax: f(s, d, e)  # noqa: E731
            cases.append((f"quantize {kind} > {name}", f"quantize-{kind}>{name}", library, work))
if torch is not None and "torch" not in args.skip:
    t_wide = torch.from_numpy(wide)
    t_half = t_wide.to(torch.bfloat16)
    for name in narrow:
        dtype = getattr(torch, name)
        codes = t_wide.clamp(-400, 400).to(dtype)
        cases += [
            (f"float32 > {name}", f"float32>{name}", "torch", lambda d=dtype: t_wide.to(d)),
            (f"bfloat16 > {name}", f"bfloat16>{name}", "torch", lambda d=dtype: t_half.to(d)),
            (f"{name} > float32", f"{name}>float32", "torch", lambda c=codes: c.to(torch.float32)),
            (f"{name} > bfloat16", f"{name}>bfloat16", "torch", lambda c=codes: c.to(torch.bfloat16)),
        ]
if to_mx is not None and not {"torch", "torchao"} & set(args.skip):
    for name, dtype in [("float8_e4m3fn", torch.float8_e4m3fn), ("float4_e2m1fn", torch.float4_e2m1fn_x2)]:
        for kind, source in [("float32", t_wide), ("bfloat16", t_half)]:
            eager = lambda s=source, d=dtype: to_mx(s, d, 32)  # noqa: E731
            cases.append((f"quantize {kind} > {name}", f"quantize-{kind}>{name}", "torchao eager", eager))
            compiled = torch.compile(lambda s, d=dtype: to_mx(s, d, 32), dynamic=False)
            try:
                compiled(source)
            except Exception as error:  # what a compiler can throw is not listed anywhere
                print(f"torchao compiled, {kind} > {name}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            work = lambda f=compiled, s=source: f(s)  # noqa: E731
            cases.append((f"quantize {kind} > {name}", f"quantize-{kind}>{name}", "torchao compiled", work))

hadal = beside.Hadal(binary, args.threads, args.rows, args.cols)


def mine(operation):
    return statistics.median(hadal.times(operation, repeat))


ours = [[] for _ in cases]
theirs = [[] for _ in cases]
for case in cases:
    mine(case[1])
    case[3]()
copies = []  # the seconds a plain copy takes for a byte read or written
for number in range(args.passes):
    copies.append(mine("copy") / hadal.amounts["copy"])
    for i, (_, operation, _, work) in enumerate(cases):
        theirs[i].append(seconds(work))
        ours[i].append(mine(operation))
    print(f"pass {number + 1} of {args.passes}", file=sys.stderr)
hadal.close()

count = args.rows * args.cols
print(f"{args.rows} x {args.cols}, {args.threads} thread(s), medians of {args.passes} passes")
print(f"{'':34} {'':18} {'hadal':>12} {'other':>12} {'ratio':>7} {'a copy':>8}")
rows = []
for (what, operation, library, _), own, other in zip(cases, ours, theirs):
    # What the ratio would be of a plain copy of the same bytes: no conversion that goes through memory beats it by much.
    copy = statistics.median(b / (c * hadal.amounts[operation]) for b, c in zip(other, copies))
    ratio = statistics.median(b / a for a, b in zip(own, other))
    a, b = (statistics.median(times) / count * 1e9 for times in (own, other))
    rows.append({"what": what, "library": library, "hadal_ns": a, "other_ns": b, "ratio": ratio, "copy": copy})
    print(f"{what:34} {library:18} {a:7.3f} ns/e {b:7.3f} ns/e {ratio:6.1f}x {copy:7.1f}x")
if args.json:
    args.json.write_text(json.dumps(rows, indent=1) + "\n")
