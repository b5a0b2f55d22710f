//! TENSORnD and MEM_PATTERNnD: access patterns of 4 + 4n bytes, in source and destination role.

use crate::Addr4;

/// A static access pattern with `N` free dimensions: `start @0, N strides @4, N counts @4+2N`.
///
/// Word `i` describes free dimension `i + 1` of the access pattern, outermost first; the partition
/// dimension has no word (D-08). Strides are signed, in elements (containers); an unused trailing
/// dimension has stride 1 and count 1; a count of 0 is invalid.
///
/// When [`Addr4::is_indirect`] holds for the start, the same bytes are a gather/scatter form: see
/// [`Pattern::as_indirect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern<const N: usize> {
    /// First byte of the operand.
    pub start: Addr4,
    /// Step of each free dimension, in elements.
    pub strides: [i16; N],
    /// Elements of each free dimension.
    pub counts: [u16; N],
}

/// The gather/scatter form of a [`Pattern`]'s bytes: `data @0 | index @4 | counts @8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndirectPattern<const N: usize> {
    /// Base of the data, without the marker bit.
    pub data: Addr4,
    /// First byte of the index list.
    pub index: Addr4,
    /// Elements of each free dimension.
    pub counts: [u16; N],
}

impl<const N: usize> Default for Pattern<N> {
    /// Address 0 and `N` unit dimensions.
    fn default() -> Self {
        Pattern { start: Addr4(0), strides: [1; N], counts: [1; N] }
    }
}

impl<const N: usize> Pattern<N> {
    /// Bytes on the wire.
    pub const BYTES: usize = 4 + 4 * N;

    /// A pattern of the given `(stride, count)` dimensions, outermost first, padded with trailing
    /// unit dimensions. `None` when more than `N` are given.
    #[must_use]
    pub fn new(start: Addr4, dims: &[(i16, u16)]) -> Option<Self> {
        let mut pattern = Pattern { start, ..Pattern::default() };
        if dims.len() > N {
            return None;
        }
        for (at, &(stride, count)) in dims.iter().enumerate() {
            pattern.strides[at] = stride;
            pattern.counts[at] = count;
        }
        Some(pattern)
    }

    /// Elements that the pattern visits in one partition.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.counts.iter().map(|&c| u64::from(c)).product()
    }

    /// Dimension words after the start, strides then counts, as stored; `None` past the last.
    #[must_use]
    pub fn word(&self, at: usize) -> Option<u16> {
        if at < N {
            self.strides.get(at).map(|s| s.cast_unsigned())
        } else {
            self.counts.get(at - N).copied()
        }
    }

    fn set_word(&mut self, at: usize, value: u16) {
        if let Some(stride) = self.strides.get_mut(at) {
            *stride = value.cast_signed();
        } else if let Some(count) = at.checked_sub(N).and_then(|at| self.counts.get_mut(at)) {
            *count = value;
        }
    }

    /// The gather/scatter view of these bytes, when the marker is set and the form has room for
    /// its counts (`N >= 2`).
    #[must_use]
    pub fn as_indirect(&self) -> Option<IndirectPattern<N>> {
        if !self.start.is_indirect() || N < 2 {
            return None;
        }
        let index = u32::from(self.word(0)?) | u32::from(self.word(1)?) << 16;
        let mut counts = [0; N];
        for (at, count) in counts.iter_mut().enumerate() {
            *count = self.word(2 + at)?;
        }
        Some(IndirectPattern { data: Addr4(self.start.address()), index: Addr4(index), counts })
    }
}

impl<const N: usize> IndirectPattern<N> {
    /// The wire bytes of this form, as a pattern. Bytes after the counts are 0.
    ///
    /// `None` for `N < 2`, where the descriptor has no room for the index address and the counts.
    #[must_use]
    pub fn to_pattern(&self) -> Option<Pattern<N>> {
        if N < 2 {
            return None;
        }
        let mut pattern = Pattern { start: self.data.marked_indirect(), strides: [0; N], counts: [0; N] };
        pattern.set_word(0, self.index.0 as u16);
        pattern.set_word(1, (self.index.0 >> 16) as u16);
        for (at, &count) in self.counts.iter().enumerate() {
            pattern.set_word(2 + at, count);
        }
        Some(pattern)
    }
}
