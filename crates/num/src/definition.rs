//! Casts of buffers as the definitions give them: one code at a time, any type.

use crate::format::{decode_inline, encode_inline};
use crate::simd::{Kernel, Simd};
use crate::{Dtype, Format, Overflow, decode, encode};

/// [`widen`](crate::widen) one code at a time; the lengths agree.
pub(crate) struct Widen<'a> {
    pub(crate) dtype: Dtype,
    pub(crate) src: &'a [u8],
    pub(crate) dst: &'a mut [f32],
}

/// [`narrow`](crate::narrow) one code at a time; the lengths agree.
pub(crate) struct Narrow<'a> {
    pub(crate) dtype: Dtype,
    pub(crate) src: &'a [f32],
    pub(crate) overflow: Overflow,
    pub(crate) dst: &'a mut [u8],
}

/// Calls `$each` with a constant format, so that the loop inside is specialised to it.
macro_rules! for_format {
    ($format:expr, $f:ident => $each:expr) => {
        for_format!(@ $format, $f, $each; Float8E3m4 Float8E4m3 Float8E4m3fn Float8E5m2 Float8E8m0fnu
            Bfloat16 Float16 Float32 Float32r Uint8 Int8 Uint16 Int16 Uint32 Int32 Float4E2m1fn)
    };
    (@ $format:expr, $f:ident, $each:expr; $($name:ident)*) => {
        match $format {
            $(Format::$name => {
                const $f: Format = Format::$name;
                $each
            })*
        }
    };
}

// As kernels these also serve the types that have no other: the integers' rounding is then an instruction.
impl Kernel for Widen<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { dtype, src, dst } = self;
        match dtype {
            Dtype::Float4E2m1fnX4 => {
                for (pair, &byte) in dst.as_chunks_mut::<2>().0.iter_mut().zip(src) {
                    *pair = [byte & 15, byte >> 4].map(|code| decode(Format::Float4E2m1fn, u32::from(code)));
                }
            }
            Dtype::Uint64 => each(
                dst,
                src,
                #[inline(always)]
                |raw| u64::from_le_bytes(raw) as f32,
            ),
            Dtype::Int64 => each(
                dst,
                src,
                #[inline(always)]
                |raw| i64::from_le_bytes(raw) as f32,
            ),
            _ => {
                let Some(format) = dtype.format() else { return };
                for_format!(format, F => match dtype.bytes() / dtype.lanes() {
                    1 => each(dst, src, #[inline(always)] |[byte]| decode_inline(F, u32::from(byte))),
                    2 => each(dst, src, #[inline(always)] |raw| decode_inline(F, u32::from(u16::from_le_bytes(raw)))),
                    _ => each(dst, src, #[inline(always)] |raw| decode_inline(F, u32::from_le_bytes(raw))),
                });
            }
        }
    }
}

impl Kernel for Narrow<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { dtype, src, overflow, dst } = self;
        match dtype {
            Dtype::Float4E2m1fnX4 => {
                for (byte, &pair) in dst.iter_mut().zip(src.as_chunks::<2>().0) {
                    let [low, high] = pair.map(|x| encode(Format::Float4E2m1fn, x, overflow) as u8);
                    *byte = low | high << 4;
                }
            }
            Dtype::Uint64 => each_out(
                dst,
                src,
                #[inline(always)]
                |x| (x.round_ties_even() as u64).to_le_bytes(),
            ),
            Dtype::Int64 => each_out(
                dst,
                src,
                #[inline(always)]
                |x| (x.round_ties_even() as i64).to_le_bytes(),
            ),
            _ => {
                let Some(format) = dtype.format() else { return };
                for_format!(format, F => match dtype.bytes() / dtype.lanes() {
                    1 => each_out(dst, src, #[inline(always)] |x| [encode_inline(F, x, overflow) as u8]),
                    2 => each_out(dst, src, #[inline(always)] |x| (encode_inline(F, x, overflow) as u16).to_le_bytes()),
                    _ => each_out(dst, src, #[inline(always)] |x| encode_inline(F, x, overflow).to_le_bytes()),
                });
            }
        }
    }
}

#[inline(always)]
fn each<const N: usize>(dst: &mut [f32], src: &[u8], f: impl Fn([u8; N]) -> f32) {
    for (to, &from) in dst.iter_mut().zip(src.as_chunks::<N>().0) {
        *to = f(from);
    }
}

#[inline(always)]
fn each_out<const N: usize>(dst: &mut [u8], src: &[f32], f: impl Fn(f32) -> [u8; N]) {
    for (to, &from) in dst.as_chunks_mut::<N>().0.iter_mut().zip(src) {
        *to = f(from);
    }
}
