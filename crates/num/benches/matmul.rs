//! The blocked product beside the definition, in operations a second.

#![allow(missing_docs, unreachable_pub, dead_code)] // the helpers are shared by benchmarks

mod support;

use std::hint::black_box;

use hadal_num::matmul::{matmul_blocked, matmul_ref};
use support::{Job, compare, on_pools, values};

fn main() {
    on_pools(|setting| {
        for (k, m, n) in [(128, 128, 512), (128, 128, 128), (512, 128, 512), (1024, 1024, 1024)] {
            let (w, x) = (values(k * m), values(k * n));
            let (mut a, mut b) = (vec![0.0; m * n], vec![0.0; m * n]);
            let operations = 2 * k * m * n;
            let mut jobs = [
                Job::new("definition", operations, || {
                    let _ = matmul_ref(&w, &x, k, m, n, black_box(&mut a));
                }),
                Job::new("blocked", operations, || {
                    let _ = matmul_blocked(&w, &x, k, m, n, black_box(&mut b));
                }),
            ];
            compare(&format!("{k} x {m} x {n}, {setting}"), 7, ((1 << 28) / operations).max(1), &mut jobs);
        }
    });
}
