"""What the comparisons with other libraries share: options, clocks, and examples that answer line by line."""

import json
import os
import pathlib
import subprocess
import sys
import time


def parse(parser, passes):
    """Parses the arguments with those that all comparisons take, and sets how many threads libraries will use.

    To be called before numpy and torch are imported, which read the variables set here.
    """
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--passes", type=int, default=passes)
    parser.add_argument("--json", type=pathlib.Path, help="also write the measurements here")
    args = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    # Settings for another machine would slow OpenBLAS down.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    return args


def built(example, given):
    """The path of a built example of hadal-num, `given` if there is one."""
    root = pathlib.Path(__file__).resolve().parent.parent
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    binary = given or target / "release" / "examples" / example
    if not binary.exists():
        sys.exit(f"{binary} is missing: cargo build --release -p hadal-num --example {example}")
    return binary


class Hadal:
    """A built example, kept running so that it can be interleaved with others."""

    def __init__(self, binary, threads, *numbers):
        self.threads = threads
        self.amounts = {}
        command = [binary, str(threads), *map(str, numbers)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def times(self, operation, repeat):
        """The seconds of each of `repeat` runs: processor time with one thread, the clock's with more."""
        if self.threads > 1:
            # Other libraries' threads spin for a while after their work, on the processor that this wants.
            time.sleep(0.25)
        self.process.stdin.write(f"{operation} {repeat}\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            sys.exit(f"{operation}: {answer['error']}")
        self.amounts[operation] = answer["amount"]
        return [ns / 1e9 for ns in answer["processor" if self.threads == 1 else "wall"]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def times(work, repeat, threads):
    """As `Hadal.times`, of a function."""
    clock = time.process_time if threads == 1 else time.perf_counter
    all_times = []
    for _ in range(repeat):
        start = clock()
        work()
        all_times.append(clock() - start)
    return all_times
