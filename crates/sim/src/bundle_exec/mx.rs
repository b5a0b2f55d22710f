//! The MX bundles: weights with their scales, the matmul through them, and quantization.

use hadal_isa::{LdWeightMx, MatmultMx, MxPattern, QuantizeMx, mx_tag_dtype, tag_dtype};
use hadal_num::Dtype;

use super::latch::{Held, Latch};
use super::{Array, operand};
use crate::error::{Fault, OperandFault};
use crate::kernel::{Writeback, mx};
use crate::memory::{Dim, Store, View};

fn data_type(operand: &'static str, tag: u8) -> Result<Dtype, OperandFault> {
    mx_tag_dtype(tag).ok_or(Fault::Tag { tag }.on(operand))
}

/// Resolves an MX descriptor over `rows` partitions.
fn resolve(
    (name, scale_name): (&'static str, &'static str),
    p: &MxPattern,
    dtype: Dtype,
    rows: u8,
) -> Result<mx::Operand, OperandFault> {
    let shape = |what, got: String, want: &str| Fault::Shape { what, got, want: want.to_owned() }.on(name);
    let (store, partition, offset) = operand::place(name, p.data)?;
    let (scale_store, scale_quadrant, scale_offset) = operand::place(scale_name, p.scale)?;
    if scale_store != Store::Sbuf {
        return Err(Fault::WrongSpace { got: "PSUM".into(), want: "SBUF" }.on(scale_name));
    }
    if p.k == 0 || !p.k.is_multiple_of(4) || rows == 0 {
        let got = format!("{} over {rows} partitions", p.k);
        return Err(shape("K extent", got, "a positive multiple of 4 over at least one partition"));
    }
    let step = match p.step {
        0x01 => 1,
        0xFF => -1,
        other => return Err(shape("step direction", format!("{other:02X}"), "01 or FF")),
    };
    Ok(mx::Operand {
        data: View {
            operand: name,
            store,
            dtype,
            partition,
            partition_step: 1,
            row_step: None,
            rows: u64::from(rows),
            offset,
            dims: vec![Dim { step, num: u64::from(p.k / 4) }],
        },
        scale_name,
        scale_store,
        scale_partition: scale_quadrant + i64::from(p.scale_partition),
        scale_offset,
    })
}

impl Array<'_> {
    pub(super) fn load_mx(&mut self, load: &LdWeightMx) -> Result<(), OperandFault> {
        self.fp32.other();
        let dtype = data_type("weights", load.weights_tag)?;
        let operand = resolve(("weights", "weights_scale"), &load.weights, dtype, load.rows)?;
        let weights = mx::Weights::read(&self.core, &operand)?;
        if weights.columns != usize::from(load.active_cols) {
            return Err(Fault::Shape {
                what: "columns of the weights",
                got: weights.columns.to_string(),
                want: format!("{} active columns", load.active_cols),
            }
            .on("weights"));
        }
        self.core.stats.loads += 1;
        let (row_group, col_group) = (load.row_group, load.col_group);
        self.latches.load(Latch { row_group, col_group, held: Held::Mx(weights) });
        Ok(())
    }

    pub(super) fn matmul_mx(&mut self, mm: &MatmultMx) -> Result<(), OperandFault> {
        self.fp32.other();
        let weights = self.latches.mx(mm.row_group, mm.col_group)?;
        let differ = |what, got: u8, want: usize| {
            Err(Fault::LoadMismatch { what, got: got.to_string(), want: want.to_string() }.into())
        };
        if usize::from(mm.rows) != weights.partitions {
            return differ("row count", mm.rows, weights.partitions);
        }
        if usize::from(mm.active_cols) != weights.columns {
            return differ("active column count", mm.active_cols, weights.columns);
        }
        let dtype = data_type("ifmap", mm.moving_tag)?;
        let moving = resolve(("ifmap", "ifmap_scale"), &mm.moving, dtype, mm.rows)?;
        let moving = mx::Moving::read(&self.core, &moving)?;
        let tag = mm.dst_tag;
        let dst_type = tag_dtype(tag, self.core.target.generation).ok_or(Fault::Tag { tag }.on("out"))?;
        let dst = operand::pattern("out", &mm.dst, dst_type, mm.active_cols)?;
        let how = Writeback::decide_mx(&self.core, Some(mm.accumulate), mm.psum_zero_region)?;
        mx::issue(&mut self.core, weights, &moving, &dst, how)
    }

    pub(super) fn quantize_mx(&mut self, q: &QuantizeMx) -> Result<(), OperandFault> {
        let src_type = data_type("src", q.src_tag)?;
        let src = operand::pattern("src", &q.src, src_type, q.src_partitions)?;
        let dtype = data_type("data", q.data_tag)?;
        let out = resolve(("data", "scale"), &q.out, dtype, q.src_partitions)?;
        mx::quantize(&mut self.core, &src, &out)
    }
}
