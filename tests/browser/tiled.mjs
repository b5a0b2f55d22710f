// Writes a tiled matmul as a program (.bir.json) to standard output: C[512, 1024] = A[512, 1024] @ B[1024, 1024] in
// bfloat16, then four products of 64-row tiles, so that a report of it has several lanes, banks and lives.
const memlocs = [], instructions = [];
const ap = (loc, dtype, pattern, more = {}) => ({ loc, dtype, pattern, ...more });
const M = 512, N = 1024, K = 1024, T = 128, W = 512;
const sb = (name, bytes) => memlocs.push({ name, space: "SB", partitions: 128, bytes });
const add = (op, name, rest) => instructions.push({ op, name, ...rest });

memlocs.push({ name: "a", space: "DRAM", role: "input", dtype: "bfloat16", shape: [K, M] });
memlocs.push({ name: "b", space: "DRAM", role: "input", dtype: "bfloat16", shape: [K, N] });
memlocs.push({ name: "c", space: "DRAM", role: "output", dtype: "float32", shape: [M, N] });
for (let k = 0; k < K / T; k += 1) {
  for (const [side, length] of [["a", M], ["b", N]]) {
    const row = [[length, T], [1, length]], at = { offset: k * T * length * 2 };
    sb(`${side}_${k}`, length * 2);
    add("DmaCopy", `load_${side}_${k}`, { dst: ap(`${side}_${k}`, "bfloat16", [[1, T], [1, length]]), src: ap(side, "bfloat16", row, at) });
  }
}
for (let m = 0; m < M / T; m += 1) {
  for (let n = 0; n < N / W; n += 1) {
    const id = `${m}_${n}`;
    memlocs.push({ name: `acc_${id}`, space: "PSUM", partitions: 128, bytes: W * 4 });
    for (let k = 0; k < K / T; k += 1) {
      add("Matmult", `matmul_${id}_${k}`, {
        ifmap: ap(`b_${k}`, "bfloat16", [[1, T], [1, W]], { offset: n * W * 2 }),
        weights: ap(`a_${k}`, "bfloat16", [[1, T], [1, T]], { offset: m * T * 2 }),
        out: ap(`acc_${id}`, "float32", [[1, T], [1, W]]),
        calc: "auto",
      });
    }
    sb(`out_${id}`, W * 4);
    add("TensorCopy", `copy_${id}`, { dst: ap(`out_${id}`, "float32", [[1, T], [1, W]]), src: ap(`acc_${id}`, "float32", [[1, T], [1, W]]) });
    add("DmaCopy", `store_${id}`, {
      dst: ap("c", "float32", [[N, T], [1, W]], { offset: (m * T * N + n * W) * 4 }),
      src: ap(`out_${id}`, "float32", [[1, T], [1, W]]),
    });
  }
}
// Row tiles of 64: two products in the two halves of the array's rows, twice.
memlocs.push({ name: "small", space: "PSUM", partitions: 64, bytes: 2048 });
for (let i = 0; i < 4; i += 1) {
  const partition = (i % 2) * 64;
  add("Matmult", `small_${i}`, {
    ifmap: ap("b_0", "bfloat16", [[1, 64], [1, 256]], { partition, offset: i * 512 }),
    weights: ap("a_0", "bfloat16", [[1, 64], [1, 64]], { partition, offset: i * 128 }),
    out: ap("small", "float32", [[1, 64], [1, 256]], { offset: (i >> 1) * 1024 }),
    calc: "auto", tile_position: [partition, 0], tile_size: [64, 64],
  });
}
sb("out_small", 2048);
add("TensorCopy", "copy_small", { dst: ap("out_small", "float32", [[1, 64], [1, 512]]), src: ap("small", "float32", [[1, 64], [1, 512]]) });
process.stdout.write(JSON.stringify({ format: "hadal-bir", version: 1, memlocs, instructions }, null, 1) + "\n");
