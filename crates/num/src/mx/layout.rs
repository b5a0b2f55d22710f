//! Where the lanes, the scales and the contraction indices of a quantized tensor lie.

use super::{BLOCK_COLS, BLOCK_ROWS, MxFormat};
use crate::NumError;
use crate::error::{area, check_len};

/// Packs one code a byte into `x4` containers, lane 0 lowest (D-06).
///
/// `codes` holds four codes a container; of a float4_e2m1fn code only the low nibble is used.
///
/// # Errors
/// [`NumError::Length`] when `containers` does not hold exactly the codes.
pub fn pack(format: MxFormat, codes: &[u8], containers: &mut [u8]) -> Result<(), NumError> {
    let want = codes.len().div_ceil(BLOCK_COLS) * format.container_bytes();
    check_len("codes to pack", "elements", codes.len(), codes.len().next_multiple_of(BLOCK_COLS))?;
    check_len("packed containers", "bytes", containers.len(), want)?;
    match format {
        MxFormat::Float4E2m1fn => {
            for (byte, &[low, high]) in containers.iter_mut().zip(codes.as_chunks::<2>().0) {
                *byte = low & 15 | high << 4;
            }
        }
        MxFormat::Float8E4m3fn | MxFormat::Float8E5m2 => containers.copy_from_slice(codes),
    }
    Ok(())
}

/// Unpacks `x4` containers into one code a byte, the inverse of [`pack`].
///
/// # Errors
/// [`NumError::PartialContainer`] when `containers` ends inside one, [`NumError::Length`] when `codes` does not hold
/// exactly four codes a container.
pub fn unpack(format: MxFormat, containers: &[u8], codes: &mut [u8]) -> Result<(), NumError> {
    let size = format.container_bytes();
    if !containers.len().is_multiple_of(size) {
        return Err(NumError::PartialContainer { dtype: format.dtype(), bytes: containers.len() });
    }
    check_len("unpacked codes", "elements", codes.len(), area(containers.len() / size, BLOCK_COLS)?)?;
    match format {
        MxFormat::Float4E2m1fn => {
            for (pair, &byte) in codes.as_chunks_mut::<2>().0.iter_mut().zip(containers) {
                *pair = [byte & 15, byte >> 4];
            }
        }
        MxFormat::Float8E4m3fn | MxFormat::Float8E5m2 => codes.copy_from_slice(containers),
    }
    Ok(())
}

/// Where in its quadrant a tensor's scales start: 0, 4, 8 or 12 partitions in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScaleOffset(u8);

impl ScaleOffset {
    /// The offset of that many partitions.
    ///
    /// # Errors
    /// [`NumError::ScaleOffset`] for any but 0, 4, 8 and 12.
    pub fn new(partitions: u8) -> Result<Self, NumError> {
        match partitions {
            0 | 4 | 8 | 12 => Ok(Self(partitions)),
            offset => Err(NumError::ScaleOffset { offset }),
        }
    }

    /// The partitions.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The partition that holds logical scale row `row`: each quadrant of 32 holds the four rows of its own data.
    pub const fn partition(self, row: usize) -> usize {
        row % 4 + 32 * (row / 4) + self.0 as usize
    }
}

/// Writes logical scale rows to their partitions.
///
/// `scales` is `[rows, columns]`; `memory` is `[partitions, columns]` and reaches at least to the last row's partition.
/// Partitions that hold no scales keep their bytes. A tensor of 8 to 128 partitions has 1 to 16 rows.
///
/// # Errors
/// [`NumError::Length`] when `scales` is not whole rows or `memory` too short for them.
pub fn scatter_scales(
    scales: &[u8],
    columns: usize,
    offset: ScaleOffset,
    memory: &mut [u8],
) -> Result<(), NumError> {
    check_memory(scales.len(), columns, offset, memory.len())?;
    for (row, from) in scales.chunks(columns.max(1)).enumerate() {
        let start = offset.partition(row) * columns;
        if let Some(to) = memory.get_mut(start..start + columns) {
            to.copy_from_slice(from);
        }
    }
    Ok(())
}

/// Reads logical scale rows from their partitions, the inverse of [`scatter_scales`].
///
/// # Errors
/// As [`scatter_scales`].
pub fn gather_scales(
    memory: &[u8],
    columns: usize,
    offset: ScaleOffset,
    scales: &mut [u8],
) -> Result<(), NumError> {
    check_memory(scales.len(), columns, offset, memory.len())?;
    for (row, to) in scales.chunks_mut(columns.max(1)).enumerate() {
        let start = offset.partition(row) * columns;
        if let Some(from) = memory.get(start..start + columns) {
            to.copy_from_slice(from);
        }
    }
    Ok(())
}

fn check_memory(scales: usize, columns: usize, offset: ScaleOffset, memory: usize) -> Result<(), NumError> {
    let rows = scales.div_ceil(columns.max(1));
    check_len("block scales", "bytes", scales, area(rows, columns)?)?;
    let partitions = rows.checked_sub(1).map_or(0, |last| offset.partition(last) + 1);
    let want = area(partitions, columns)?;
    if memory < want { check_len("scale memory", "bytes", memory, want) } else { Ok(()) }
}

/// Contraction indices of one full MX matmul: 128 partitions of 4 lanes.
pub const TILE_K: usize = 512;
/// Consecutive contraction indices that share a scale in a checkpoint quantized the common way.
pub const CHECKPOINT_BLOCK: usize = BLOCK_ROWS * BLOCK_COLS;

/// Where index `k` of a checkpoint quantized in blocks of 32 consecutive indices goes: its place in the
/// contraction of tiles of 512, so that every such block becomes one 8 x 4 block and keeps its scale.
///
/// In a tile, place `t` is lane `t / 128` of partition `t % 128`. Index `k` goes to partition
/// `8 (k / 32) + (k % 32) / 4`, lane `k % 4`, counted within its tile. Both operands have to be permuted alike.
pub const fn checkpoint_to_tile(k: usize) -> usize {
    let (tile, k) = (k / TILE_K, k % TILE_K);
    let partition = BLOCK_ROWS * (k / CHECKPOINT_BLOCK) + (k % CHECKPOINT_BLOCK) / BLOCK_COLS;
    let lane = k % BLOCK_COLS;
    tile * TILE_K + lane * (TILE_K / BLOCK_COLS) + partition
}

/// The checkpoint index at place `t`; the inverse of [`checkpoint_to_tile`].
pub const fn tile_to_checkpoint(t: usize) -> usize {
    let (tile, t) = (t / TILE_K, t % TILE_K);
    let (lane, partition) = (t / (TILE_K / BLOCK_COLS), t % (TILE_K / BLOCK_COLS));
    let block = partition / BLOCK_ROWS;
    tile * TILE_K + block * CHECKPOINT_BLOCK + partition % BLOCK_ROWS * BLOCK_COLS + lane
}
