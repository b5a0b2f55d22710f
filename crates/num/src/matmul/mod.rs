//! Dense float32 products in the one order the results are defined by (D-18).
//!
//! Every output is a single float32 accumulator that starts at +0 and takes the products in ascending order
//! of the contraction index; each product is rounded to float32 before it is added. Nothing here fuses a
//! multiply with an add, splits the contraction, or changes the order with the shape or the machine, so
//! [`matmul_blocked`] returns the bits of [`matmul_ref`] (a NaN may differ in payload).

mod blocked;

pub use blocked::matmul_blocked;

use crate::NumError;
use crate::error::{area, check_len};

/// The definition: `out[i, j] = (..((+0 + w[0, i] x[0, j]) + w[1, i] x[1, j]) + ..)`, every step rounded.
///
/// `w` is the stationary operand, `[k, m]`; `x` the moving one, `[k, n]`; `out` is `[m, n]`; all row-major.
///
/// # Errors
/// [`NumError::Length`] when a slice does not have the length its shape asks for, [`NumError::Shape`] when a
/// shape overflows.
pub fn matmul_ref(
    w: &[f32],
    x: &[f32],
    k: usize,
    m: usize,
    n: usize,
    out: &mut [f32],
) -> Result<(), NumError> {
    check_shapes(w, x, k, m, n, out)?;
    out.fill(0.0);
    if m == 0 || n == 0 {
        return Ok(());
    }
    for (w_row, x_row) in w.chunks_exact(m).zip(x.chunks_exact(n)) {
        for (&weight, out_row) in w_row.iter().zip(out.chunks_exact_mut(n)) {
            for (sum, &value) in out_row.iter_mut().zip(x_row) {
                *sum += weight * value;
            }
        }
    }
    Ok(())
}

fn check_shapes(w: &[f32], x: &[f32], k: usize, m: usize, n: usize, out: &[f32]) -> Result<(), NumError> {
    check_len("stationary operand", "elements", w.len(), area(k, m)?)?;
    check_len("moving operand", "elements", x.len(), area(k, n)?)?;
    check_len("matmul output", "elements", out.len(), area(m, n)?)
}
