//! The sparse bundles: tags, then a matmul through weights loaded as for the dense one.

use hadal_ir::encode::Bundle;
use hadal_isa::{LoadTagsSparse, MatmultSparse, row_group, tag_dtype};
use hadal_num::Dtype;

use super::{Array, operand};
use crate::error::{Fault, OperandFault};
use crate::fp32_pass::Pass;
use crate::kernel::{Tile, sparse};

impl Array<'_> {
    pub(super) fn load_tags(&mut self, load: &LoadTagsSparse) -> Result<(), OperandFault> {
        let dtype = tag_dtype(load.tags_tag, self.core.target.generation)
            .ok_or_else(|| Fault::Tag { tag: load.tags_tag }.on("tags"))?;
        let view = operand::pattern("tags", &load.tags, dtype, load.rows)?;
        let tags = sparse::Tags::new(&Tile::read(&self.core, &view)?)?;
        if tags.columns != usize::from(load.active_cols) {
            return Err(Fault::Shape {
                what: "columns of the tags",
                got: tags.columns.to_string(),
                want: format!("{} active columns", load.active_cols),
            }
            .on("tags"));
        }
        self.core.stats.loads += 1;
        self.tags = Some(tags);
        self.fp32.other();
        Ok(())
    }

    pub(super) fn matmul_sparse(&mut self, mm: &MatmultSparse, bundle: &Bundle) -> Result<(), OperandFault> {
        let generation = self.core.target.generation;
        self.fp32.other();
        let tags = self.tags.as_ref().ok_or(Fault::NoTags)?;
        // The bundle's own row group is the density; the weights were loaded into all the rows they have.
        let (row, col) = (row_group(0, u32::from(mm.rows)), mm.col_group);
        let (weights, _) = self.latches.dense(Some((row, col)))?;
        if usize::from(mm.active_cols) != weights.columns {
            return Err(Fault::LoadMismatch {
                what: "active column count",
                got: mm.active_cols.to_string(),
                want: weights.columns.to_string(),
            }
            .into());
        }
        let dtype = |name, tag| {
            tag_dtype(tag, generation)
                .map(|d| operand::fp8(d, bundle.side))
                .ok_or(Fault::Tag { tag }.on(name))
        };
        let moving_type = match dtype("ifmap", mm.moving_tag)? {
            // The bundle has no perf variant: float32r shows in the weights it goes with.
            Dtype::Float32 if weights.tile.dtype == Dtype::Float32r => Dtype::Float32r,
            other => other,
        };
        let moving = operand::pattern("ifmap", &mm.moving, moving_type, mm.rows)?;
        let dst = operand::pattern("out", &mm.dst, dtype("out", mm.dst_tag)?, mm.active_cols)?;
        let ratio = usize::from(mm.moving.counts[0]);
        let moving = Tile::read(&self.core, &moving)?;
        let pass = match mm.pass {
            0 | 1 => Pass::First,
            2 => Pass::Second,
            other => {
                let what = format!("sparse float32 pass {other}");
                return Err(Fault::Unsupported { what, why: "the passes are 0, 1 and 2" }.into());
            }
        };
        sparse::issue(&mut self.core, weights, tags, &moving, ratio, &dst, pass)
    }
}
