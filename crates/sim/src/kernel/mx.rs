//! MX: block-scaled products, and quantization into blocks.

use hadal_num::mx::{self, MxFormat, Source};
use hadal_num::{Dtype, matmul};

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

/// An MX matrix as float32, its scales applied: `[4 partitions, columns]`, partition then lane (D-18).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) partitions: usize,
    pub(crate) columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// Reads an operand.
    pub(crate) fn read(core: &Core<'_>, operand: &Operand) -> Result<Matrix, OperandFault> {
        let format = operand.format()?;
        operand.dim()?;
        let tile = Tile::read(core, &operand.data)?;
        let mut scales = Vec::new();
        for row in 0..operand.scale_rows()? {
            scales.extend(core.read(&operand.scales(row)?)?);
        }
        let mut values = vec![0.0; tile.rows * tile.cols * 4];
        let rule = core.options.mx_rule;
        mx::expand(format, rule, &tile.bytes, &scales, tile.rows, tile.cols, &mut values)?;
        Ok(Matrix { partitions: tile.rows, columns: tile.cols, values })
    }
}

/// `out[m, n] = sum over p, then lane q, of w[p, m, q] * x[p, n, q]`, into PSUM.
pub(crate) fn issue(
    core: &mut Core<'_>,
    weights: &Matrix,
    moving: &Matrix,
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
    let (k, m, n) = (4 * weights.partitions, weights.columns, moving.columns);
    core.check_destination(dst, m, n)?;
    let mut sums = vec![0.0; m * n];
    matmul::matmul_blocked(&weights.values, &moving.values, k, m, n, &mut sums)?;
    core.write_psum(dst, &sums, how)
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
