//! How a field's type is stored, and the trait that every typed bundle implements.

use super::row::{BundleInfo, Field, Layout, Shape, Span};
use crate::{Addr4, MxPattern, Pattern, Target, Word};

/// A field's value, borrowed from a typed bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// One byte, or one bit as 0 or 1.
    Byte(u8),
    /// Two bytes.
    Pair([u8; 2]),
    /// A pattern with three free dimensions.
    Pattern3(&'a Pattern<3>),
    /// A pattern with four free dimensions.
    Pattern4(&'a Pattern<4>),
    /// An MX descriptor.
    Mx(&'a MxPattern),
}

/// A field's value, to be changed in a typed bundle.
#[derive(Debug)]
pub enum ValueMut<'a> {
    /// One byte, or one bit as 0 or 1.
    Byte(&'a mut u8),
    /// Two bytes.
    Pair(&'a mut [u8; 2]),
    /// A pattern with three free dimensions.
    Pattern3(&'a mut Pattern<3>),
    /// A pattern with four free dimensions.
    Pattern4(&'a mut Pattern<4>),
    /// An MX descriptor.
    Mx(&'a mut MxPattern),
}

/// A typed bundle, as the table emits it.
pub trait Bundle: Copy + Default + PartialEq {
    /// The bundle's rows.
    const INFO: BundleInfo;
    /// For each [`Layout`], the bits that header constants, fields or neither define: set bits are
    /// the residue.
    const RESIDUE: [[u8; 64]; 3];

    /// Writes the header and the fields of a target's layout.
    fn encode(&self, target: Target) -> Word;

    /// Reads the fields of a target's layout; fields that the layout lacks are 0.
    fn decode(word: &Word, target: Target) -> Self;

    /// Visits the fields of a layout in table order.
    fn walk<'a>(&'a self, layout: Layout, visit: impl FnMut(&'static Field, Value<'a>));

    /// Visits the fields of a layout in table order, to change them.
    fn walk_mut(&mut self, layout: Layout, visit: impl FnMut(&'static Field, ValueMut<'_>));
}

/// A type that can be a field.
pub(super) trait Wire {
    const WIDTH: usize;
    fn put(&self, bytes: &mut [u8; 64], span: Span);
    fn take(bytes: &[u8; 64], span: Span) -> Self;
    fn value(&self) -> Value<'_>;
    fn value_mut(&mut self) -> ValueMut<'_>;
}

// Spans are constants of the table, proven in bounds by the compile-time integrity check, so the
// indexing below cannot fail and folds away once inlined.

impl Wire for u8 {
    const WIDTH: usize = 1;

    #[inline(always)]
    fn put(&self, bytes: &mut [u8; 64], span: Span) {
        match span.shape {
            // Or-ed: the rest of the byte belongs to a neighbour (D-10). Any nonzero value sets it.
            Shape::Bit(bit) => bytes[span.offset] |= u8::from(*self != 0) << bit,
            Shape::Whole | Shape::LessBit31 => bytes[span.offset] = *self,
        }
    }

    #[inline(always)]
    fn take(bytes: &[u8; 64], span: Span) -> Self {
        match span.shape {
            Shape::Bit(bit) => bytes[span.offset] >> bit & 1,
            Shape::Whole | Shape::LessBit31 => bytes[span.offset],
        }
    }

    fn value(&self) -> Value<'_> {
        Value::Byte(*self)
    }

    fn value_mut(&mut self) -> ValueMut<'_> {
        ValueMut::Byte(self)
    }
}

impl Wire for [u8; 2] {
    const WIDTH: usize = 2;

    #[inline(always)]
    fn put(&self, bytes: &mut [u8; 64], span: Span) {
        bytes[span.offset] = self[0];
        bytes[span.offset + 1] = self[1];
    }

    #[inline(always)]
    fn take(bytes: &[u8; 64], span: Span) -> Self {
        [bytes[span.offset], bytes[span.offset + 1]]
    }

    fn value(&self) -> Value<'_> {
        Value::Pair(*self)
    }

    fn value_mut(&mut self) -> ValueMut<'_> {
        ValueMut::Pair(self)
    }
}

#[inline(always)]
fn put_u16(bytes: &mut [u8; 64], at: usize, value: u16) {
    let [low, high] = value.to_le_bytes();
    bytes[at] = low;
    bytes[at + 1] = high;
}

#[inline(always)]
fn take_u16(bytes: &[u8; 64], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[inline(always)]
fn put_pattern<const N: usize>(pattern: &Pattern<N>, bytes: &mut [u8; 64], span: Span) {
    let at = span.offset;
    let mut start = pattern.start.0.to_le_bytes();
    if matches!(span.shape, Shape::LessBit31) {
        start[3] |= bytes[at + 3] & 0x80;
    }
    bytes[at..at + 4].copy_from_slice(&start);
    for i in 0..N {
        put_u16(bytes, at + 4 + 2 * i, pattern.strides[i].cast_unsigned());
        put_u16(bytes, at + 4 + 2 * N + 2 * i, pattern.counts[i]);
    }
}

#[inline(always)]
fn take_pattern<const N: usize>(bytes: &[u8; 64], span: Span) -> Pattern<N> {
    let at = span.offset;
    let start = Addr4(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    Pattern {
        start: if matches!(span.shape, Shape::LessBit31) { start.without_top_bit() } else { start },
        strides: std::array::from_fn(|i| take_u16(bytes, at + 4 + 2 * i).cast_signed()),
        counts: std::array::from_fn(|i| take_u16(bytes, at + 4 + 2 * N + 2 * i)),
    }
}

impl Wire for Pattern<3> {
    const WIDTH: usize = Self::BYTES;

    #[inline(always)]
    fn put(&self, bytes: &mut [u8; 64], span: Span) {
        put_pattern(self, bytes, span);
    }

    #[inline(always)]
    fn take(bytes: &[u8; 64], span: Span) -> Self {
        take_pattern(bytes, span)
    }

    fn value(&self) -> Value<'_> {
        Value::Pattern3(self)
    }

    fn value_mut(&mut self) -> ValueMut<'_> {
        ValueMut::Pattern3(self)
    }
}

impl Wire for Pattern<4> {
    const WIDTH: usize = Self::BYTES;

    #[inline(always)]
    fn put(&self, bytes: &mut [u8; 64], span: Span) {
        put_pattern(self, bytes, span);
    }

    #[inline(always)]
    fn take(bytes: &[u8; 64], span: Span) -> Self {
        take_pattern(bytes, span)
    }

    fn value(&self) -> Value<'_> {
        Value::Pattern4(self)
    }

    fn value_mut(&mut self) -> ValueMut<'_> {
        ValueMut::Pattern4(self)
    }
}

impl Wire for MxPattern {
    const WIDTH: usize = 16;

    #[inline(always)]
    fn put(&self, bytes: &mut [u8; 64], span: Span) {
        bytes[span.offset..span.offset + 16].copy_from_slice(&self.to_bytes());
    }

    #[inline(always)]
    fn take(bytes: &[u8; 64], span: Span) -> Self {
        MxPattern::from_bytes(std::array::from_fn(|i| bytes[span.offset + i]))
    }

    fn value(&self) -> Value<'_> {
        Value::Mx(self)
    }

    fn value_mut(&mut self) -> ValueMut<'_> {
        ValueMut::Mx(self)
    }
}
