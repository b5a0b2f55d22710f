//! MX: block-scaled products, and quantization into blocks.

use hadal_num::Dtype;
use hadal_num::matmul::{Blocks, Operand as Factor, Prepared};
use hadal_num::mx::{self, MxFormat, Source};

use super::{Core, Tile, Writeback};
use crate::error::{Fault, OperandFault};
use crate::memory::{Dim, Store, View};

/// An MX operand in memory: containers, and the scales of their blocks.
///
/// Scale row `i`, of partitions `8i..8i + 8`, lies at partition `i % 4 + 32 (i / 4)` from the first; its
/// bytes follow the direction of the data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operand {
    pub(crate) data: View,
    /// Name of the scales in messages.
    pub(crate) scale_name: &'static str,
    pub(crate) scale_store: Store,
    /// Partition of scale row 0.
    pub(crate) scale_partition: i64,
    /// Byte of the first scale in its partition.
    pub(crate) scale_offset: i64,
}

impl Operand {
    /// The one free dimension of the data.
    fn dim(&self) -> Result<Dim, OperandFault> {
        match self.data.dims.as_slice() {
            [] => Ok(Dim { step: 1, num: 1 }),
            [d, rest @ ..] if matches!(d.step, 1 | -1) && rest.iter().all(|d| d.num == 1) => Ok(*d),
            _ => {
                let got = format!("{} dimensions", self.data.dims.len());
                let want = "one free dimension with step 1 or -1".to_owned();
                Err(Fault::Shape { what: "MX operand", got, want }.on(self.data.operand))
            }
        }
    }

    /// One row of scales.
    fn scales(&self, row: u64) -> Result<View, OperandFault> {
        let at = i64::try_from(row % 4 + 32 * (row / 4)).unwrap_or(i64::MAX);
        Ok(View {
            operand: self.scale_name,
            store: self.scale_store,
            dtype: Dtype::Float8E8m0fnu,
            partition: self.scale_partition.saturating_add(at),
            partition_step: 1,
            row_step: None,
            rows: 1,
            offset: self.scale_offset,
            dims: vec![self.dim()?],
        })
    }

    /// Rows of scales: the partitions come in blocks of eight.
    fn scale_rows(&self) -> Result<u64, OperandFault> {
        if self.data.rows.is_multiple_of(8) {
            return Ok(self.data.rows / 8);
        }
        let got = self.data.rows.to_string();
        Err(Fault::Shape { what: "partitions of an MX operand", got, want: "a multiple of 8".into() }
            .on(self.data.operand))
    }

    fn format(&self) -> Result<MxFormat, OperandFault> {
        let text = "MX dtype must be packed with 4 elements into 1";
        MxFormat::try_from(self.data.dtype)
            .map_err(|_| Fault::Type { text, dtype: self.data.dtype }.on(self.data.operand))
    }
}

/// Stationary MX weights, packed for the product: `[4 partitions, columns]`, partition then lane (D-18).
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    pub(crate) partitions: usize,
    pub(crate) columns: usize,
    packed: Prepared,
}

impl Weights {
    /// Reads an operand.
    pub(crate) fn read(core: &Core<'_>, operand: &Operand) -> Result<Weights, OperandFault> {
        let moving = Moving::read(core, operand)?;
        let (partitions, columns) = (moving.partitions, moving.columns);
        let packed = Prepared::new(Factor::Mx(moving.blocks(core)), 4 * partitions, columns)?;
        Ok(Weights { partitions, columns, packed })
    }
}

/// A moving MX operand: its scales, and its containers unless they can be read from where they lie.
#[derive(Debug, Clone)]
pub(crate) struct Moving {
    partitions: usize,
    columns: usize,
    format: MxFormat,
    scales: Vec<u8>,
    data: View,
    gathered: Option<Vec<u8>>,
}

impl Moving {
    /// Reads an operand.
    pub(crate) fn read(core: &Core<'_>, operand: &Operand) -> Result<Moving, OperandFault> {
        let format = operand.format()?;
        operand.dim()?;
        let data = operand.data.clone();
        let in_place = core.machine.rows(&data, core.options.uninit).is_some();
        let gathered = if in_place { None } else { Some(core.read(&data)?) };
        let mut scales = Vec::new();
        for row in 0..operand.scale_rows()? {
            scales.extend(core.read(&operand.scales(row)?)?);
        }
        let partitions = usize::try_from(data.rows).unwrap_or(usize::MAX);
        let columns = usize::try_from(data.per_row()).unwrap_or(usize::MAX);
        Ok(Moving { partitions, columns, format, scales, data, gathered })
    }

    fn blocks<'a>(&'a self, core: &'a Core<'_>) -> Blocks<'a> {
        let gathered = self.gathered.as_deref().unwrap_or(&[]);
        let blocks = Blocks::dense(self.format, core.options.mx_rule, gathered, &self.scales, self.columns);
        if self.gathered.is_some() {
            return blocks;
        }
        let rows = core.machine.rows(&self.data, core.options.uninit);
        rows.map_or(blocks, |(data, row_bytes)| Blocks { data, row_bytes, ..blocks })
    }
}

/// `out[m, n] = sum over p, then lane q, of w[p, m, q] * x[p, n, q]`, into PSUM.
pub(crate) fn issue(
    core: &mut Core<'_>,
    weights: &Weights,
    moving: &Moving,
    dst: &View,
    how: Writeback,
) -> Result<(), OperandFault> {
    if moving.partitions != weights.partitions {
        return Err(Fault::Shape {
            what: "partitions of the moving operand",
            got: moving.partitions.to_string(),
            want: format!("{} as the weights have", weights.partitions),
        }
        .into());
    }
    let (m, n) = (weights.columns, moving.columns);
    core.check_destination(dst, m, n)?;
    let mut sums = std::mem::take(&mut core.scratch.sums);
    // Every sum is written, whatever was here.
    sums.resize(m * n, 0.0);
    weights.packed.product(Factor::Mx(moving.blocks(core)), n, &mut sums)?;
    let done = core.write_psum(dst, &sums, how);
    core.scratch.sums = sums;
    done
}

/// Quantizes a bfloat16 or float16 operand into data and scales.
pub(crate) fn quantize(core: &mut Core<'_>, src: &View, out: &Operand) -> Result<(), OperandFault> {
    let format = out.format()?;
    if format == MxFormat::Float4E2m1fn {
        let text = "QuantizeMx writes float8_e4m3fn_x4 or float8_e5m2_x4";
        return Err(Fault::Type { text, dtype: out.data.dtype }.on(out.data.operand));
    }
    let (rows, elements) = (src.rows, src.per_row());
    if out.data.rows != rows || out.data.per_row().checked_mul(4) != Some(elements) {
        return Err(Fault::Shape {
            what: "quantized data",
            got: format!("[{}, {}] containers", out.data.rows, out.data.per_row()),
            want: format!("a quarter of the source's [{rows}, {elements}]"),
        }
        .on(out.data.operand));
    }
    let scale_views = (0..out.scale_rows()?).map(|r| out.scales(r)).collect::<Result<Vec<_>, _>>()?;
    core.machine.check(&out.data)?;
    for view in &scale_views {
        core.machine.check(view)?;
    }
    let tile = Tile::read(core, src)?;
    let source = match tile.dtype {
        Dtype::Bfloat16 => Source::Bfloat16(&tile.bytes),
        Dtype::Float16 => Source::Float16(&tile.bytes),
        dtype => {
            let text = "QuantizeMx reads bfloat16 or float16";
            return Err(Fault::Type { text, dtype }.on(src.operand));
        }
    };
    let columns = tile.cols / 4;
    let mut data = vec![0; tile.rows * columns * format.container_bytes()];
    let mut scales = vec![0; tile.rows / 8 * columns];
    let rule = core.options.mx_rule;
    let counts = mx::quantize_counted(source, tile.rows, tile.cols, format, rule, &mut data, &mut scales)?;
    if matches!(rule, mx::ScaleRule::Reference | mx::ScaleRule::ReferenceAlt) {
        core.stats.nan_suppressed += counts.nan;
    }
    core.machine.scatter(&out.data, &data)?;
    for (view, row) in scale_views.iter().zip(scales.chunks(columns.max(1))) {
        core.machine.scatter(view, row)?;
    }
    Ok(())
}
