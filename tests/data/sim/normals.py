"""First values of the seeded streams, computed without the project: ChaCha8, Box-Muller, FNV-1a.

Run as `python3 normals.py > normals.txt`. Each line: seed, location name, float32 bit patterns.
"""
import math
import struct

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def rotl(x, n):
    return (x << n | x >> (32 - n)) & M32


def quarter(s, a, b, c, d):
    for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & M32
        s[z] = rotl(s[z] ^ s[x], n)


def block(key, counter):
    start = list(struct.unpack("<4I", b"expand 32-byte k")) + list(struct.unpack("<8I", key))
    start += [counter & M32, counter >> 32, 0, 0]
    s = start[:]
    for _ in range(4):
        for i in range(4):
            quarter(s, i, i + 4, i + 8, i + 12)
        for i in range(4):
            quarter(s, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
    return [(a + b) & M32 for a, b in zip(s, start)]


def words(key):
    counter = 0
    while True:
        b = block(key, counter)
        for i in range(0, 16, 2):
            yield b[i] | b[i + 1] << 32
        counter += 1


def fnv(basis, name):
    for byte in name.encode():
        basis = (basis ^ byte) * 0x100000001B3 & M64
    return basis


def normals(seed, name, count):
    key = struct.pack("<4Q", seed, fnv(0xCBF29CE484222325, name), fnv(0x9E3779B97F4A7C15, name), len(name))
    stream = words(key)
    out = []
    while len(out) < count:
        u, v = (((next(stream) >> 11) + 1) * 2.0**-53 for _ in range(2))
        radius = math.sqrt(-2.0 * math.log(u))
        out += [radius * math.cos(math.tau * v), radius * math.sin(math.tau * v)]
    return [struct.unpack("<I", struct.pack("<f", x))[0] for x in out[:count]]


print("# seed, location name, float32 bit patterns; written by normals.py")
for seed, name, count in ((0, "x", 12), (7, "weights", 11), (2**40 + 3, "a", 40)):
    print(seed, name, *(f"{v:08x}" for v in normals(seed, name, count)))
