//! Reads a square of an operand as float32: rows of [`SQUARE`] contraction indices by [`GROUP`] columns.

use super::extent::{Extent, Seen};
use super::operand::{Blocks, Codes, Operand};
use crate::codec::{Codec, copy_prefix};
use crate::lane::{self, Bfloat16, Float4E2m1fn, Float8E3m4, Float8E4m3, Float8E4m3fn, Float8E5m2, Float16};
use crate::mx::{BLOCK_COLS, BLOCK_ROWS, MxFormat};
use crate::simd::{Kernel, Level, RUN, Simd, launch};
use crate::{Dtype, mx};

/// Columns that are read together: whole cache lines, whatever the type.
pub(super) const GROUP: usize = 2 * RUN;
/// Contraction indices that are read together: those that share scales in an MX operand.
pub(super) const SQUARE: usize = BLOCK_ROWS * BLOCK_COLS;

/// Room for a square of values, which stays in the first cache until it is packed.
pub(super) type Square = [[f32; GROUP]; SQUARE];

/// Which part of an operand to read. What is read past `rows` and `width` is left as it is, or zero.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Elements in a row of the whole operand.
    pub(super) columns: usize,
    /// First contraction index; a multiple of [`SQUARE`] in an MX operand.
    pub(super) row: usize,
    /// Contraction indices, at most [`SQUARE`].
    pub(super) rows: usize,
    /// First column.
    pub(super) column: usize,
    /// Columns, at most [`GROUP`].
    pub(super) width: usize,
}

/// Whether [`read`] takes the operand. What it does not has to be given as its values.
pub(super) fn takes(operand: &Operand<'_>) -> bool {
    match operand {
        Operand::Values(_) | Operand::Mx(_) => true,
        Operand::Codes(Codes { dtype, zero_point, .. }) => match dtype {
            Dtype::Uint8 => true,
            Dtype::Float8E3m4
            | Dtype::Float8E4m3
            | Dtype::Float8E4m3fn
            | Dtype::Float8E5m2
            | Dtype::Bfloat16
            | Dtype::Float16
            | Dtype::Float32
            | Dtype::Float32r => *zero_point == 0,
            _ => false,
        },
    }
}

/// Reads the square at `place`, and tells what bounds its values have.
pub(super) fn read(level: Level, operand: &Operand<'_>, place: Place, to: &mut Square) -> Extent {
    match operand {
        Operand::Values(values) => launch(level, Values { values, place, to }),
        Operand::Codes(codes) => {
            let known = Extent::of_type(codes.dtype);
            match codes.dtype {
                Dtype::Float8E3m4 => rows::<Float8E3m4>(level, codes, place, known, to),
                Dtype::Float8E4m3 => rows::<Float8E4m3>(level, codes, place, known, to),
                Dtype::Float8E4m3fn => rows::<Float8E4m3fn>(level, codes, place, known, to),
                Dtype::Float8E5m2 => rows::<Float8E5m2>(level, codes, place, known, to),
                Dtype::Bfloat16 => rows::<Bfloat16>(level, codes, place, known, to),
                Dtype::Float16 => rows::<Float16>(level, codes, place, known, to),
                Dtype::Float32r => rows::<Single<true>>(level, codes, place, known, to),
                Dtype::Uint8 => rows::<Byte>(level, codes, place, known, to),
                // Nothing else gets past `takes`.
                _ => rows::<Single<false>>(level, codes, place, known, to),
            }
        }
        Operand::Mx(blocks) => read_blocks(level, blocks, place, to),
    }
}

/// Copies values and takes their bounds.
struct Values<'a> {
    values: &'a [f32],
    place: Place,
    to: &'a mut Square,
}

impl Kernel for Values<'_> {
    type Output = Extent;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Extent {
        let Place { columns, row, rows, column, width } = self.place;
        let mut seen = Seen::new(s);
        for (i, to) in self.to.iter_mut().take(rows).enumerate() {
            let at = (row + i) * columns + column;
            let from = self.values.get(at..at + width).unwrap_or_default();
            match from.first_chunk::<GROUP>() {
                Some(whole) => *to = *whole,
                None => {
                    *to = [0.0; GROUP];
                    copy_prefix(to, from);
                }
            }
            for run in to.as_chunks_mut::<RUN>().0 {
                let from = *run;
                s.store_f32(
                    run,
                    false,
                    #[inline(always)]
                    |i| {
                        let v = s.load_f32(&from, i);
                        seen.take(s, v);
                        v
                    },
                );
            }
        }
        seen.extent(s)
    }
}

/// A type of one element a container, as this module reads it.
trait Element: Copy + Send + Sync + 'static {
    /// Bytes of a container.
    type Unit: Copy + Default;
    /// Whole containers of a row.
    fn units(bytes: &[u8]) -> &[Self::Unit];
    /// Register `i` of a run.
    fn load<S: Simd>(s: S, run: &[Self::Unit; RUN], zero_point: u8, i: usize) -> S::V;
}

macro_rules! elements {
    ($($name:ident: $unit:ty, $units:expr;)*) => {$(
        impl Element for $name {
            type Unit = $unit;
            #[inline(always)]
            fn units(bytes: &[u8]) -> &[$unit] {
                $units(bytes)
            }
            #[inline(always)]
            fn load<S: Simd>(s: S, run: &[$unit; RUN], _zero_point: u8, i: usize) -> S::V {
                <$name as Codec>::load(s, &<$name as Codec>::open(run), i)
            }
        }
    )*};
}

#[inline(always)]
fn bytes(bytes: &[u8]) -> &[u8] {
    bytes
}

#[inline(always)]
fn pairs(bytes: &[u8]) -> &[[u8; 2]] {
    bytes.as_chunks().0
}

elements! {
    Float8E3m4: u8, bytes;
    Float8E4m3: u8, bytes;
    Float8E4m3fn: u8, bytes;
    Float8E5m2: u8, bytes;
    Bfloat16: [u8; 2], pairs;
    Float16: [u8; 2], pairs;
}

/// float32 containers, rounded to float32r if `REDUCED`.
#[derive(Clone, Copy)]
struct Single<const REDUCED: bool>;

impl<const REDUCED: bool> Element for Single<REDUCED> {
    type Unit = [u8; 4];
    #[inline(always)]
    fn units(bytes: &[u8]) -> &[[u8; 4]] {
        bytes.as_chunks().0
    }
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &[[u8; 4]; RUN], _zero_point: u8, i: usize) -> S::V {
        let v = s.load_u32(&containers(run), i);
        if !REDUCED {
            return v;
        }
        // Half a step less one, plus one if the last bit kept is odd; infinities and NaNs stay.
        let odd = s.and(s.shr(v, 13), s.splat(1));
        let rounded = s.and(s.add(s.add(v, s.splat(0xFFF)), odd), s.splat(!0x1FFF));
        let mag = s.and(v, s.splat(0x7FFF_FFFF));
        s.select(s.gt(s.splat(0x7F80_0000), mag), rounded, v)
    }
}

/// uint8 less its zero point.
#[derive(Clone, Copy)]
struct Byte;

impl Element for Byte {
    type Unit = u8;
    #[inline(always)]
    fn units(bytes: &[u8]) -> &[u8] {
        bytes
    }
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &[u8; RUN], zero_point: u8, i: usize) -> S::V {
        // 2^23 with a byte in its lowest places is their sum; the difference of two such is exact.
        let magic = s.splat(0x4B00_0000);
        s.subf(s.or(s.load_u8(run, i), magic), s.or(s.splat(u32::from(zero_point)), magic))
    }
}

/// Containers of four bytes as integers.
#[inline(always)]
fn containers(run: &[[u8; 4]; RUN]) -> [u32; RUN] {
    let mut out = [0; RUN];
    for (to, from) in out.iter_mut().zip(run) {
        *to = u32::from_le_bytes(*from);
    }
    out
}

fn rows<T: Element>(
    level: Level,
    codes: &Codes<'_>,
    place: Place,
    known: Option<Extent>,
    to: &mut Square,
) -> Extent {
    match known {
        Some(extent) => {
            launch(level, Rows::<T, false> { codes, place, to, element: std::marker::PhantomData });
            extent
        }
        None => launch(level, Rows::<T, true> { codes, place, to, element: std::marker::PhantomData }),
    }
}

/// Widens codes, and takes the bounds of their values if `LOOK`.
struct Rows<'a, T, const LOOK: bool> {
    codes: &'a Codes<'a>,
    place: Place,
    to: &'a mut Square,
    element: std::marker::PhantomData<T>,
}

impl<T: Element, const LOOK: bool> Kernel for Rows<'_, T, LOOK> {
    type Output = Extent;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Extent {
        let Place { row, rows, column, width, .. } = self.place;
        let size = size_of::<T::Unit>();
        let zero_point = self.codes.zero_point;
        let mut seen = Seen::new(s);
        for (i, to) in self.to.iter_mut().take(rows).enumerate() {
            let at = (row + i) * self.codes.row_bytes + column * size;
            let units = T::units(self.codes.bytes.get(at..at + width * size).unwrap_or_default());
            let mut padded;
            let whole = match units.first_chunk::<GROUP>() {
                Some(whole) => whole,
                None => {
                    padded = [T::Unit::default(); GROUP];
                    copy_prefix(&mut padded, units);
                    &padded
                }
            };
            for (to, from) in to.as_chunks_mut::<RUN>().0.iter_mut().zip(whole.as_chunks::<RUN>().0) {
                s.store_f32(
                    to,
                    false,
                    #[inline(always)]
                    |i| {
                        let v = T::load(s, from, zero_point, i);
                        if LOOK {
                            seen.take(s, v);
                        }
                        v
                    },
                );
            }
        }
        seen.extent(s)
    }
}

fn read_blocks(level: Level, blocks: &Blocks<'_>, place: Place, to: &mut Square) -> Extent {
    let Place { columns, row, column, width, .. } = place;
    let at = row / SQUARE * columns + column;
    let scales = blocks.scales.get(at..at + width).unwrap_or_default();
    let (mut least, mut most) = (255, 0);
    // A scale without a float32 of its own is applied in two steps.
    let mut factors = [1.0; GROUP];
    let mut twice = [1.0; GROUP];
    for ((factor, twice), &scale) in factors.iter_mut().zip(&mut twice).zip(scales) {
        (least, most) = (scale.min(least), scale.max(most));
        [*factor, *twice] = mx::factors(scale, blocks.rule);
    }
    let twice = (most == 255).then_some(&twice);
    match blocks.format {
        MxFormat::Float4E2m1fn => unpack::<Nibbles>(level, blocks, place, &factors, twice, to),
        MxFormat::Float8E4m3fn => unpack::<Bytes<Float8E4m3fn>>(level, blocks, place, &factors, twice, to),
        MxFormat::Float8E5m2 => unpack::<Bytes<Float8E5m2>>(level, blocks, place, &factors, twice, to),
    }
    Extent::of_type(blocks.format.dtype()).unwrap_or(Extent::NONE).scaled(least.min(most), most)
}

fn unpack<L: Lanes>(
    level: Level,
    blocks: &Blocks<'_>,
    place: Place,
    factors: &[f32; GROUP],
    twice: Option<&[f32; GROUP]>,
    to: &mut Square,
) {
    launch(level, Unpack::<L> { blocks, place, factors, twice, to, lanes: std::marker::PhantomData });
}

/// A container of four lanes, as this module reads it.
trait Lanes {
    /// Bytes of a container.
    type Unit: Copy + Default;
    /// Whole containers of a row.
    fn units(bytes: &[u8]) -> &[Self::Unit];
    /// Register `i` of lane `q` of a run.
    fn load<S: Simd>(s: S, run: &[Self::Unit; RUN], q: u32, i: usize) -> S::V;
}

/// Four bytes, each a code of `T`.
struct Bytes<T>(std::marker::PhantomData<T>);

impl<T: lane::Narrow> Lanes for Bytes<T> {
    type Unit = [u8; 4];
    #[inline(always)]
    fn units(bytes: &[u8]) -> &[[u8; 4]] {
        bytes.as_chunks().0
    }
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &[[u8; 4]; RUN], q: u32, i: usize) -> S::V {
        let v = s.load_u32(&containers(run), i);
        lane::decode::<S, T>(s, s.and(s.shr(v, 8 * q), s.splat(0xFF)))
    }
}

/// Four nibbles in two bytes.
struct Nibbles;

impl Lanes for Nibbles {
    type Unit = [u8; 2];
    #[inline(always)]
    fn units(bytes: &[u8]) -> &[[u8; 2]] {
        bytes.as_chunks().0
    }
    #[inline(always)]
    fn load<S: Simd>(s: S, run: &[[u8; 2]; RUN], q: u32, i: usize) -> S::V {
        lane::decode::<S, Float4E2m1fn>(s, s.and(s.shr(s.load_u16(run, i), 4 * q), s.splat(0xF)))
    }
}

/// Deals the lanes of containers out to rows and scales them.
struct Unpack<'a, L> {
    blocks: &'a Blocks<'a>,
    place: Place,
    factors: &'a [f32; GROUP],
    twice: Option<&'a [f32; GROUP]>,
    to: &'a mut Square,
    lanes: std::marker::PhantomData<L>,
}

impl<L: Lanes> Kernel for Unpack<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Place { row, column, width, rows, .. } = self.place;
        let size = size_of::<L::Unit>();
        let factors = self.factors.as_chunks::<RUN>().0;
        for (p, four) in
            self.to.as_chunks_mut::<BLOCK_COLS>().0.iter_mut().take(rows / BLOCK_COLS).enumerate()
        {
            let at = (row / BLOCK_COLS + p) * self.blocks.row_bytes + column * size;
            let units = L::units(self.blocks.data.get(at..at + width * size).unwrap_or_default());
            let mut padded;
            let whole = match units.first_chunk::<GROUP>() {
                Some(whole) => whole,
                None => {
                    padded = [L::Unit::default(); GROUP];
                    copy_prefix(&mut padded, units);
                    &padded
                }
            };
            let [a, b, c, d] = four;
            for (half, (from, factor)) in whole.as_chunks::<RUN>().0.iter().zip(factors).enumerate() {
                lane_row::<S, L, 0>(s, a, half, from, factor);
                lane_row::<S, L, 1>(s, b, half, from, factor);
                lane_row::<S, L, 2>(s, c, half, from, factor);
                lane_row::<S, L, 3>(s, d, half, from, factor);
            }
        }
        if let Some(twice) = self.twice {
            for row in self.to.iter_mut().take(rows) {
                for (x, factor) in row.iter_mut().zip(twice) {
                    *x *= factor;
                }
            }
        }
    }
}

#[inline(always)]
fn lane_row<S: Simd, L: Lanes, const Q: u32>(
    s: S,
    to: &mut [f32; GROUP],
    half: usize,
    from: &[L::Unit; RUN],
    factor: &[f32; RUN],
) {
    if let Some(to) = to.as_chunks_mut::<RUN>().0.get_mut(half) {
        s.store_f32(
            to,
            false,
            #[inline(always)]
            |i| s.mulf(L::load(s, from, Q, i), s.load_f32(factor, i)),
        );
    }
}
