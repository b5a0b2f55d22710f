//! The vector engine's transpose of 32 x 32 blocks.

use super::{Core, narrow};
use crate::error::{Fault, OperandFault};
use crate::memory::View;

/// Side of a block.
const BLOCK: usize = 32;

/// Up to 32 x 32: `dst[f, p] = src[p, f]`. Larger: partitions and elements are multiples of 32 and every
/// block is transposed in its own place, so the destination has the source's shape.
pub(crate) fn transpose(core: &mut Core<'_>, dst: &View, src: &View) -> Result<(), OperandFault> {
    let shape = |v: &View| {
        (usize::try_from(v.rows).unwrap_or(usize::MAX), usize::try_from(v.per_row()).unwrap_or(usize::MAX))
    };
    let ((p, f), got) = (shape(src), shape(dst));
    let small = p <= BLOCK && f <= BLOCK;
    let want = if small { (f, p) } else { (p, f) };
    if got != want {
        return Err(Fault::Shape {
            what: "destination of a transpose",
            got: format!("[{}, {}]", got.0, got.1),
            want: format!("[{}, {}]", want.0, want.1),
        }
        .on(dst.operand));
    }
    let whole_blocks = p.is_multiple_of(BLOCK) && f.is_multiple_of(BLOCK);
    if !small && !whole_blocks {
        let got = format!("[{p}, {f}]");
        let want = "at most 32 x 32, or multiples of 32".to_owned();
        return Err(Fault::Shape { what: "source of a transpose", got, want }.on(src.operand));
    }
    let bytes = if dst.dtype == src.dtype {
        core.read(src)?
    } else if dst.dtype.lanes() == src.dtype.lanes() {
        narrow(dst.dtype, &core.read_f32(src)?, core.overflow(dst.dtype))?
    } else {
        let text = "a transpose keeps the number of lanes of a container";
        return Err(Fault::Type { text, dtype: dst.dtype }.on(dst.operand));
    };
    let size = dst.dtype.bytes();
    let mut out = Vec::with_capacity(bytes.len());
    for row in 0..want.0 {
        for col in 0..want.1 {
            let (from_p, from_f) = if small {
                (col, row)
            } else {
                (row / BLOCK * BLOCK + col % BLOCK, col / BLOCK * BLOCK + row % BLOCK)
            };
            let at = (from_p * f + from_f) * size;
            out.extend_from_slice(bytes.get(at..at + size).unwrap_or(&[]));
        }
    }
    core.machine.scatter(dst, &out)
}
