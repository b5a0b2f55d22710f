//! Bytes in partitions, each with a bit that says whether it was ever written.

/// A two-dimensional byte array with a written bit for every byte.
///
/// Bytes that were never written hold 0, so two planes are equal exactly when their bytes and bits are.
#[derive(Debug, Clone)]
pub struct Plane {
    rows: usize,
    width: usize,
    words: usize,
    bytes: Vec<u8>,
    written: Vec<u64>,
}

impl Plane {
    /// A plane of `rows` partitions of `width` bytes, nothing written.
    pub(crate) fn new(rows: usize, width: usize) -> Self {
        let words = width.div_ceil(64);
        Plane { rows, width, words, bytes: vec![0; rows * width], written: vec![0; rows * words] }
    }

    /// Number of partitions.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes in a partition.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether bytes `offset..offset + len` of partition `row` exist.
    pub fn holds(&self, row: usize, offset: usize, len: usize) -> bool {
        row < self.rows && offset.checked_add(len).is_some_and(|end| end <= self.width)
    }

    /// Bytes `offset..offset + len` of partition `row`, written or not; `None` outside the plane.
    pub fn get(&self, row: usize, offset: usize, len: usize) -> Option<&[u8]> {
        if !self.holds(row, offset, len) {
            return None;
        }
        let start = row * self.width + offset;
        self.bytes.get(start..start + len)
    }

    /// All bytes from `offset` of partition `row` on, through the partitions after it.
    pub(crate) fn from(&self, row: usize, offset: usize) -> Option<&[u8]> {
        self.bytes.get(row.checked_mul(self.width)?.checked_add(offset)?..)
    }

    /// Whether a byte was written; `false` outside the plane.
    pub fn is_written(&self, row: usize, offset: usize) -> bool {
        self.holds(row, offset, 1)
            && self.written.get(row * self.words + offset / 64).is_some_and(|w| w >> (offset % 64) & 1 == 1)
    }

    /// Writes bytes and marks them; `false` (and nothing written) outside the plane.
    pub fn put(&mut self, row: usize, offset: usize, data: &[u8]) -> bool {
        self.update(row, offset, data.len(), |to| to.copy_from_slice(data))
    }

    /// Changes bytes in place and marks them written; `false` (and nothing done) outside the plane.
    pub(crate) fn update(
        &mut self,
        row: usize,
        offset: usize,
        len: usize,
        f: impl FnOnce(&mut [u8]),
    ) -> bool {
        if !self.holds(row, offset, len) {
            return false;
        }
        let start = row * self.width + offset;
        if let Some(to) = self.bytes.get_mut(start..start + len) {
            f(to);
        }
        let base = row * self.words;
        for (word, mask) in masks(offset, len) {
            if let Some(w) = self.written.get_mut(base + word) {
                *w |= mask;
            }
        }
        true
    }

    /// The first byte of the range that was never written. Bytes outside the plane are not looked at.
    pub fn first_unwritten(&self, row: usize, offset: usize, len: usize) -> Option<usize> {
        if !self.holds(row, offset, len) {
            return None;
        }
        let (base, end) = (row * self.words, offset + len);
        let missing = |(word, mask): (usize, u64)| {
            let missing = mask & !self.written.get(base + word).copied().unwrap_or(0);
            (missing != 0).then(|| word * 64 + missing.trailing_zeros() as usize)
        };
        // Usually everything was written: whole words tell fastest.
        let (from, to) = (offset.div_ceil(64), end / 64);
        let whole = if from < to { self.written.get(base + from..base + to) } else { None };
        if whole.is_some_and(|words| words.iter().all(|word| *word == u64::MAX)) {
            return masks(offset, from * 64 - offset).chain(masks(to * 64, end - to * 64)).find_map(missing);
        }
        masks(offset, len).find_map(missing)
    }

    /// Whether no byte of the range was written.
    pub(crate) fn is_blank(&self, row: usize, offset: usize, len: usize) -> bool {
        let base = row * self.words;
        !self.holds(row, offset, len)
            || masks(offset, len)
                .all(|(word, mask)| self.written.get(base + word).is_none_or(|written| written & mask == 0))
    }

    /// Number of bytes of the range that were written.
    pub fn count_written(&self, row: usize, offset: usize, len: usize) -> usize {
        if !self.holds(row, offset, len) {
            return 0;
        }
        let base = row * self.words;
        masks(offset, len)
            .map(|(word, mask)| {
                (self.written.get(base + word).copied().unwrap_or(0) & mask).count_ones() as usize
            })
            .sum()
    }

    /// The first place where two planes differ, in a byte or in a written bit: (partition, offset).
    /// Planes of different sizes differ at (0, 0).
    pub fn first_difference(&self, other: &Plane) -> Option<(usize, usize)> {
        if (self.rows, self.width) != (other.rows, other.width) {
            return Some((0, 0));
        }
        if self == other {
            return None;
        }
        (0..self.rows).find_map(|row| {
            let (a, b) = (self.get(row, 0, self.width)?, other.get(row, 0, self.width)?);
            let at = (0..self.width)
                .find(|&i| a.get(i) != b.get(i) || self.is_written(row, i) != other.is_written(row, i))?;
            Some((row, at))
        })
    }
}

impl PartialEq for Plane {
    /// Compares the bytes that were written; the others are 0 on both sides. A memory of which little is
    /// used compares fast.
    fn eq(&self, other: &Plane) -> bool {
        (self.rows, self.width) == (other.rows, other.width)
            && self.written == other.written
            && (0..self.rows).all(|row| {
                let bytes = |p: &Plane| row * p.width..(row + 1) * p.width;
                let words = self.written.get(row * self.words..(row + 1) * self.words);
                let (a, b) = (self.bytes.get(bytes(self)), other.bytes.get(bytes(other)));
                let (Some(words), Some(a), Some(b)) = (words, a, b) else { return false };
                words.iter().zip(a.chunks(64).zip(b.chunks(64))).all(|(w, (a, b))| *w == 0 || a == b)
            })
    }
}

impl Eq for Plane {}

/// Words of a row's bitmap that a byte range covers, each with the bits of the range.
fn masks(offset: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = offset + len;
    let last = if len == 0 { offset / 64 } else { (end - 1) / 64 + 1 };
    (offset / 64..last).map(move |word| {
        let lo = offset.saturating_sub(word * 64).min(63);
        let hi = (end - word * 64).min(64);
        let mut mask = u64::MAX << lo;
        if hi < 64 {
            mask &= (1 << hi) - 1;
        }
        (word, mask)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bits_follow_a_byte_map() {
        arbtest::arbtest(|u| {
            let width = u.int_in_range(1..=200usize)?;
            let mut plane = Plane::new(2, width);
            let mut model = vec![[None::<u8>; 2]; width];
            for _ in 0..u.int_in_range(0..=6)? {
                let row = u.int_in_range(0..=1usize)?;
                let offset = u.int_in_range(0..=width)?;
                let len = u.int_in_range(0..=width)?;
                let fill = u.arbitrary::<u8>()?;
                let fits = offset + len <= width;
                assert_eq!(plane.put(row, offset, &vec![fill; len]), fits);
                if fits {
                    for cell in &mut model[offset..offset + len] {
                        cell[row] = Some(fill);
                    }
                }
            }
            let offset = u.int_in_range(0..=width)?;
            let len = u.int_in_range(0..=width - offset)?;
            for row in 0..2 {
                let range = offset..offset + len;
                let missing = range.clone().find(|&i| model[i][row].is_none());
                assert_eq!(plane.first_unwritten(row, offset, len), missing);
                let count = model[range.clone()].iter().filter(|c| c[row].is_some()).count();
                assert_eq!(plane.count_written(row, offset, len), count);
                assert_eq!(plane.is_blank(row, offset, len), count == 0);
                let bytes: Vec<u8> = model[range].iter().map(|c| c[row].unwrap_or(0)).collect();
                assert_eq!(plane.get(row, offset, len), Some(bytes.as_slice()));
            }
            Ok(())
        });
    }

    #[test]
    fn differences_are_bytes_or_bits() {
        let mut a = Plane::new(2, 100);
        let mut b = a.clone();
        assert_eq!(a.first_difference(&b), None);
        // The same stored value, but written on one side only.
        a.put(1, 70, &[0]);
        assert_eq!(a.first_difference(&b), Some((1, 70)));
        b.put(1, 70, &[3]);
        assert_eq!(a.first_difference(&b), Some((1, 70)));
        a.put(1, 70, &[3]);
        assert_eq!(a.first_difference(&b), None);
    }
}
