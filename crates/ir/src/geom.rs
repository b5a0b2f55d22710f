//! Byte sets that access patterns touch.

use std::ops::Range;

use crate::program::{Ap, MemLoc, Pair, Space};

/// A set of bytes as sorted, disjoint, non-touching ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunSet {
    runs: Vec<Range<u64>>,
}

impl RunSet {
    /// The set of one range.
    pub fn single(r: Range<u64>) -> Self {
        if r.is_empty() { RunSet::default() } else { RunSet { runs: vec![r] } }
    }

    /// Builds a set from ranges in any order.
    pub fn from_ranges(mut runs: Vec<Range<u64>>) -> Self {
        runs.retain(|r| !r.is_empty());
        runs.sort_by_key(|r| r.start);
        let mut out: Vec<Range<u64>> = Vec::with_capacity(runs.len());
        for r in runs {
            match out.last_mut() {
                Some(last) if r.start <= last.end => last.end = last.end.max(r.end),
                _ => out.push(r),
            }
        }
        RunSet { runs: out }
    }

    /// The ranges, ascending.
    pub fn runs(&self) -> &[Range<u64>] {
        &self.runs
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|r| r.end - r.start).sum()
    }

    /// Union.
    pub fn union(&self, other: &RunSet) -> RunSet {
        if self == other {
            return self.clone();
        }
        RunSet::from_ranges(self.runs.iter().chain(&other.runs).cloned().collect())
    }

    /// Intersection.
    pub fn intersect(&self, other: &RunSet) -> RunSet {
        let (mut i, mut j) = (0, 0);
        let mut runs = Vec::new();
        while let (Some(a), Some(b)) = (self.runs.get(i), other.runs.get(j)) {
            let r = a.start.max(b.start)..a.end.min(b.end);
            if !r.is_empty() {
                runs.push(r);
            }
            if a.end <= b.end { i += 1 } else { j += 1 }
        }
        RunSet { runs }
    }

    /// What is in `self` and not in `other`.
    pub fn subtract(&self, other: &RunSet) -> RunSet {
        let mut runs = Vec::new();
        let mut j = 0;
        for a in &self.runs {
            let mut start = a.start;
            while let Some(b) = other.runs.get(j).filter(|b| b.end <= start) {
                let _ = b;
                j += 1;
            }
            let mut k = j;
            while let Some(b) = other.runs.get(k).filter(|b| b.start < a.end) {
                if b.start > start {
                    runs.push(start..b.start);
                }
                start = start.max(b.end);
                k += 1;
            }
            if start < a.end {
                runs.push(start..a.end);
            }
        }
        RunSet { runs }
    }

    /// Whether the sets share a byte.
    pub fn intersects(&self, other: &RunSet) -> bool {
        !self.intersect(other).is_empty()
    }

    /// Whether every byte of `other` is in `self`.
    pub fn contains(&self, other: &RunSet) -> bool {
        self.intersect(other).len() == other.len()
    }
}

/// Most ranges [`runs_of`] builds before it gives up.
pub const MAX_RUNS: u64 = 1 << 20;

/// The bytes that `pairs` touch, the first container at byte `start`, containers of `size` bytes.
///
/// `None` when the pattern reaches below byte 0 or would need more than [`MAX_RUNS`] ranges.
pub fn runs_of(pairs: &[Pair], size: u64, start: u64) -> Option<RunSet> {
    // `block` is the contiguous extent the inner dimensions have fused into so far.
    let mut block = size;
    let mut rest = pairs.len();
    for (i, p) in pairs.iter().enumerate().rev() {
        if p.num == 1 || u64::try_from(p.step).ok().and_then(|s| s.checked_mul(size)) == Some(block) {
            block = block.checked_mul(p.num)?;
            rest = i;
        } else {
            break;
        }
    }
    let outer = pairs.get(..rest)?;
    let count = outer.iter().try_fold(1u64, |n, p| n.checked_mul(p.num))?;
    if count > MAX_RUNS {
        return None;
    }
    let base = i64::try_from(start).ok()?;
    let mut starts = vec![base];
    for p in outer {
        let step = p.step.checked_mul(i64::try_from(size).ok()?)?;
        let mut next = Vec::with_capacity(starts.len() * usize::try_from(p.num).ok()?);
        for s in &starts {
            for k in 0..i64::try_from(p.num).ok()? {
                next.push(s.checked_add(step.checked_mul(k)?)?);
            }
        }
        starts = next;
    }
    let mut runs = Vec::with_capacity(starts.len());
    for s in starts {
        let s = u64::try_from(s).ok()?;
        runs.push(s..s.checked_add(block)?);
    }
    Some(RunSet::from_ranges(runs))
}

/// The bytes of one partition (DRAM: of the tensor) that an operand touches, relative to the start of
/// its location.
pub fn operand_runs(ap: &Ap, space: Space) -> Option<RunSet> {
    let pairs = if space == Space::Dram { ap.pattern.as_slice() } else { ap.free() };
    runs_of(pairs, ap.dtype.bytes() as u64, ap.offset)
}

/// The partitions an operand covers, relative to the start of its location (step 1 assumed).
pub fn operand_partitions(ap: &Ap) -> Range<u32> {
    let n = u32::try_from(ap.partitions()).unwrap_or(u32::MAX);
    ap.partition..ap.partition.saturating_add(n)
}

/// First partition of an operand, when its location is placed.
pub fn start_partition(ap: &Ap, loc: &MemLoc) -> Option<u32> {
    Some(loc.partition()?.saturating_add(ap.partition))
}

/// Byte offset of an operand's first container in its partition (PSUM: bank included), when placed.
pub fn start_byte(ap: &Ap, loc: &MemLoc) -> Option<u64> {
    Some(u64::from(loc.byte_offset()?).saturating_add(ap.offset))
}

/// A set of (partition, byte) cells: partition ranges, each with the bytes it holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Area {
    /// Disjoint partition ranges, ascending, none empty.
    bands: Vec<(Range<u32>, RunSet)>,
}

impl Area {
    /// A rectangle-like area: the same bytes on every partition.
    pub fn new(parts: Range<u32>, runs: RunSet) -> Self {
        if parts.is_empty() || runs.is_empty() {
            Area::default()
        } else {
            Area { bands: vec![(parts, runs)] }
        }
    }

    /// The area an SB or PSUM operand touches, relative to its location.
    pub fn of(ap: &Ap, space: Space) -> Option<Area> {
        Some(Area::new(operand_partitions(ap), operand_runs(ap, space)?))
    }

    /// Whether no cell is in the area.
    pub fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }

    /// Combines two areas band by band.
    fn combine(&self, other: &Area, f: impl Fn(&RunSet, &RunSet) -> RunSet) -> Area {
        if let ([(pa, ra)], [(pb, rb)]) = (self.bands.as_slice(), other.bands.as_slice())
            && pa == pb
        {
            return Area::new(pa.clone(), f(ra, rb));
        }
        let mut cuts: Vec<u32> =
            self.bands.iter().chain(&other.bands).flat_map(|(p, _)| [p.start, p.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let none = RunSet::default();
        let mut bands: Vec<(Range<u32>, RunSet)> = Vec::new();
        for w in cuts.windows(2) {
            let &[start, end] = w else { continue };
            let at = |a: &Area| a.bands.iter().position(|(p, _)| p.contains(&start));
            let a = at(self).and_then(|i| self.bands.get(i)).map_or(&none, |b| &b.1);
            let b = at(other).and_then(|i| other.bands.get(i)).map_or(&none, |b| &b.1);
            let runs = f(a, b);
            if runs.is_empty() {
                continue;
            }
            match bands.last_mut() {
                Some((p, r)) if p.end == start && *r == runs => p.end = end,
                _ => bands.push((start..end, runs)),
            }
        }
        Area { bands }
    }

    /// Union.
    pub fn union(&self, other: &Area) -> Area {
        self.combine(other, RunSet::union)
    }

    /// What is in `self` and not in `other`.
    pub fn subtract(&self, other: &Area) -> Area {
        self.combine(other, RunSet::subtract)
    }

    /// Intersection.
    pub fn intersect(&self, other: &Area) -> Area {
        self.combine(other, RunSet::intersect)
    }

    /// Whether the areas share a cell.
    pub fn intersects(&self, other: &Area) -> bool {
        self.bands.iter().any(|(p, r)| {
            other.bands.iter().any(|(q, s)| p.start < q.end && q.start < p.end && (r == s || r.intersects(s)))
        })
    }

    /// Whether every cell of `other` is in `self`.
    pub fn contains(&self, other: &Area) -> bool {
        other.subtract(self).is_empty()
    }

    /// The first cell: (partition, byte).
    pub fn first(&self) -> Option<(u32, u64)> {
        let (p, r) = self.bands.first()?;
        Some((p.start, r.runs.first()?.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(r: &[Range<u64>]) -> RunSet {
        RunSet::from_ranges(r.to_vec())
    }

    #[test]
    fn patterns_become_runs() {
        // 512 contiguous float32 fuse into one range.
        assert_eq!(runs_of(&[Pair::new(1, 512)], 4, 0).unwrap().runs(), std::slice::from_ref(&(0..2048)));
        // A row pair whose planes touch fuses too; strided columns do not.
        assert_eq!(
            runs_of(&[Pair::new(128, 2), Pair::new(1, 128)], 1, 64).unwrap().runs(),
            std::slice::from_ref(&(64..320))
        );
        assert_eq!(runs_of(&[Pair::new(2, 3)], 2, 0).unwrap().runs(), [0..2, 4..6, 8..10]);
        // Negative steps walk downwards; below the start of the location there is nothing.
        assert_eq!(runs_of(&[Pair::new(-1, 4)], 2, 6).unwrap().runs(), std::slice::from_ref(&(0..8)));
        assert!(runs_of(&[Pair::new(-1, 5)], 2, 6).is_none());
        assert!(runs_of(&[Pair::new(3, 1 << 24), Pair::new(7, 2)], 1, 0).is_none());
    }

    #[test]
    fn run_sets_agree_with_bitmaps() {
        arbtest::arbtest(|u| {
            let mut sets = Vec::new();
            for _ in 0..2 {
                let n = u.int_in_range(0..=5)?;
                let mut v = Vec::new();
                for _ in 0..n {
                    let s = u.int_in_range(0..=60u64)?;
                    v.push(s..s + u.int_in_range(0..=6u64)?);
                }
                sets.push(v);
            }
            let bits = |v: &Vec<Range<u64>>| v.iter().flat_map(|r| r.clone()).fold(0u128, |b, i| b | 1 << i);
            let (a, b) = (set(&sets[0]), set(&sets[1]));
            let (ba, bb) = (bits(&sets[0]), bits(&sets[1]));
            let back = |s: &RunSet| s.runs().iter().flat_map(|r| r.clone()).fold(0u128, |b, i| b | 1 << i);
            assert_eq!(back(&a.union(&b)), ba | bb);
            assert_eq!(back(&a.intersect(&b)), ba & bb);
            assert_eq!(back(&a.subtract(&b)), ba & !bb);
            assert_eq!(a.contains(&b), bb & !ba == 0);
            assert_eq!(a.len(), u64::from(ba.count_ones()));
            Ok(())
        });
    }

    #[test]
    fn areas_split_by_partition() {
        let a = Area::new(0..64, RunSet::single(0..8));
        let b = Area::new(32..128, RunSet::single(4..12));
        let u = a.union(&b);
        assert!(u.contains(&a) && u.contains(&b));
        assert!(!u.contains(&Area::new(0..33, RunSet::single(8..9))));
        assert!(u.subtract(&a).contains(&Area::new(64..128, RunSet::single(4..12))));
        assert_eq!(u.subtract(&a).first(), Some((32, 8)));
        assert!(!Area::new(0..32, RunSet::single(0..4)).intersects(&b));
    }
}
