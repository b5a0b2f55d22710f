//! Dense float32 products in the one order the results are defined by (D-18).
//!
//! Every output is a single float32 accumulator that starts at +0 and takes the products in ascending order
//! of the contraction index; each product is rounded to float32 before it is added. Nothing here splits the contraction,
//! changes the order with the shape or the machine, or fuses a multiply with an add but where the product is a float32
//! anyway, so [`matmul_blocked`] returns the bits of [`matmul_ref`]. A NaN comes out as [`canonical`] makes it (D-63).

mod decode;
mod extent;
mod operand;
mod pack;
mod product;
mod tile;

pub use operand::{Blocks, Codes, Operand};
pub use product::{Prepared, product, product_tiled};

use crate::NumError;
use crate::error::{area, check_len};

/// A result of arithmetic as it is stored: any NaN becomes 7FC00000 (D-63).
///
/// Which of two NaN operands an addition hands on, and the sign of the NaN that infinity minus infinity makes,
/// depend on the machine and on how the compiler orders operands; results must not.
#[inline]
#[must_use]
pub fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(0x7FC0_0000) } else { x }
}

fn settle(out: &mut [f32]) {
    for x in out {
        *x = canonical(*x);
    }
}

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
    settle(out);
    Ok(())
}

/// Same arguments, same bits and same errors as [`matmul_ref`], many times faster: [`product`] of two operands that are
/// float32 already.
///
/// # Errors
/// As [`matmul_ref`].
pub fn matmul_blocked(
    w: &[f32],
    x: &[f32],
    k: usize,
    m: usize,
    n: usize,
    out: &mut [f32],
) -> Result<(), NumError> {
    product(Operand::Values(w), Operand::Values(x), [k, m, n], out)
}

fn check_shapes(w: &[f32], x: &[f32], k: usize, m: usize, n: usize, out: &[f32]) -> Result<(), NumError> {
    check_len("stationary operand", "elements", w.len(), area(k, m)?)?;
    check_len("moving operand", "elements", x.len(), area(k, n)?)?;
    check_len("matmul output", "elements", out.len(), area(m, n)?)
}
