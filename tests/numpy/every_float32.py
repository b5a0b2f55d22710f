#!/usr/bin/env python3
"""Compares what all 2^32 float32 narrow to with ml_dtypes and numpy.

    cargo build --release -p hadal-num --example every_float32
    python3 -m venv /tmp/exact && /tmp/exact/bin/pip install numpy ml-dtypes
    /tmp/exact/bin/python tests/numpy/every_float32.py [--program PATH] [FORMAT...]

About a minute a format and overflow rule. Every code must be the same, except that a NaN may be any NaN of its
format. Differences are counted and shown; the exit code is 1 if there is one.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np

FLOATS = {
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
    "float8_e3m4": ml_dtypes.float8_e3m4,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
}
INTEGERS = ["int8", "uint8", "int16", "uint16"]
PART = 1 << 24


def nan_codes(dtype):
    """Which codes are NaN."""
    width = np.dtype(f"u{np.dtype(dtype).itemsize}")
    return np.isnan(np.arange(np.iinfo(width).max + 1, dtype=width).view(dtype).astype(np.float32))


def floats(name, overflow, bits):
    """The codes of a float format, and the NaNs among all its codes."""
    dtype = FLOATS[name]
    x = bits.view(np.float32)
    if overflow == "saturate":
        largest = np.float32(ml_dtypes.finfo(dtype).max)
        # A comparison leaves NaN alone.
        x = np.where(x > largest, largest, np.where(x < -largest, -largest, x))
    with np.errstate(all="ignore"):
        return x.astype(dtype).view(f"u{np.dtype(dtype).itemsize}")


def integers(name, bits):
    """To nearest, ties to even; what does not fit takes the nearest limit, NaN zero."""
    limits = np.iinfo(name)
    x = np.rint(bits.view(np.float32).astype(np.float64))
    return np.where(np.isnan(x), 0, np.clip(x, limits.min, limits.max)).astype(name)


def compare(program, name, overflow):
    asked = "float4_e2m1fn_x4" if name == "float4_e2m1fn" else name
    bad, shown = 0, []
    process = subprocess.Popen([program, asked, overflow], stdout=subprocess.PIPE)
    nan = nan_codes(FLOATS[name]) if name in FLOATS else None
    for first in range(0, 1 << 32, PART):
        bits = np.arange(first, first + PART, dtype=np.uint32)
        want = floats(name, overflow, bits) if name in FLOATS else integers(name, bits)
        size = PART // 2 if name == "float4_e2m1fn" else want.nbytes
        raw = process.stdout.read(size)
        if len(raw) != size:
            sys.exit(f"{name} {overflow}: the stream ended at {first:08X}")
        if name == "float4_e2m1fn":
            # Lane 0 is the low nibble of the first byte.
            byte = np.frombuffer(raw, np.uint8)
            got = np.stack([byte & 15, byte >> 4], axis=-1).reshape(-1)
        else:
            got = np.frombuffer(raw, want.dtype)
        differ = got != want
        if name == "float4_e2m1fn":
            # There is no NaN to become: hadal keeps its sign on the zero, ml_dtypes inverts it.
            x = bits.view(np.float32)
            differ[np.isnan(x)] = (got != np.where(np.signbit(x), 8, 0))[np.isnan(x)]
        if nan is not None and differ.any():
            differ &= ~(nan[got] & nan[want])
        if differ.any():
            bad += int(differ.sum())
            for i in np.flatnonzero(differ)[: max(0, 4 - len(shown))]:
                shown.append(f"{bits[i]:08X}: {got[i]:X}, not {want[i]:X}")
    if process.wait() != 0:
        sys.exit(f"{name} {overflow}: the stream ended with {process.returncode}")
    print(f"{name:15} {overflow:9} {bad} differences", "; ".join(shown), flush=True)
    return bad


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    parser = argparse.ArgumentParser(description="Compare all 2^32 conversions with ml_dtypes and numpy.")
    parser.add_argument("formats", nargs="*", metavar="FORMAT")
    parser.add_argument("--program", default=target / "release" / "examples" / "every_float32")
    args = parser.parse_args()
    names = args.formats or [*FLOATS, *INTEGERS]
    for name in names:
        if name not in FLOATS and name not in INTEGERS:
            parser.error(f"{name} is not one of {', '.join([*FLOATS, *INTEGERS])}")
    # Integers and scales have one rule.
    one = [*INTEGERS, "float8_e8m0fnu"]
    rules = {name: ["ieee"] if name in one else ["ieee", "saturate"] for name in names}
    bad = [compare(args.program, name, rule) for name in names for rule in rules[name]]
    sys.exit(1 if any(bad) else 0)


if __name__ == "__main__":
    main()
