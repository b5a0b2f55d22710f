//! Slices of an access pattern's linear element order.

use crate::program::Pair;

/// Longest piece, from linear element `at`, of at most `want` elements, that both patterns can express
/// as one sub-pattern each.
///
/// Patterns are free dimensions, outermost first, of the same number of elements. Always at least 1
/// when `want` is.
pub fn common_piece(a: &[Pair], b: &[Pair], at: u64, want: u64) -> u64 {
    let mut best = want.min(1);
    for (block_a, limit_a) in levels(a, at) {
        for (block_b, limit_b) in levels(b, at) {
            let Some(block) = lcm(block_a, block_b) else { continue };
            let limit = limit_a.min(limit_b).min(want);
            best = best.max(limit / block * block);
        }
    }
    best
}

/// For each dimension that `at` is aligned to: (elements in one step of it, elements left in it).
fn levels(pairs: &[Pair], at: u64) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    let mut block = 1u64;
    for p in pairs.iter().rev() {
        if !at.is_multiple_of(block) {
            break;
        }
        let index = at / block % p.num.max(1);
        out.push((block, (p.num - index).saturating_mul(block)));
        block = block.saturating_mul(p.num);
    }
    if out.is_empty() {
        out.push((1, 1));
    }
    out
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b)
}

/// The sub-pattern of elements `at .. at + len`, and the distance in containers to its first element.
///
/// `None` when the range is not one sub-pattern.
pub fn slice(pairs: &[Pair], at: u64, len: u64) -> Option<(i64, Vec<Pair>)> {
    let mut block = 1u64;
    for (i, p) in pairs.iter().enumerate().rev() {
        let whole = block.checked_mul(p.num)?;
        let index = at / block % p.num;
        if at.is_multiple_of(block) && len.is_multiple_of(block) && index + len / block <= p.num {
            let mut distance = 0i64;
            let mut rest = at / block;
            for q in pairs.get(..=i)?.iter().rev() {
                let k = i64::try_from(rest % q.num).ok()?;
                distance = distance.checked_add(q.step.checked_mul(k)?)?;
                rest /= q.num;
            }
            let mut sub = vec![Pair::new(p.step, len / block)];
            sub.extend_from_slice(pairs.get(i + 1..)?);
            return Some((distance, sub));
        }
        block = whole;
    }
    (pairs.is_empty() && at == 0 && len == 1).then(|| (0, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(pairs: &[Pair]) -> Vec<i64> {
        let mut out = vec![0i64];
        for p in pairs {
            out = out.iter().flat_map(|o| (0..p.num as i64).map(move |k| o + k * p.step)).collect();
        }
        out
    }

    #[test]
    fn pieces_cover_the_range_in_order() {
        arbtest::arbtest(|u| {
            let mut dims = || -> arbtest::arbitrary::Result<Vec<Pair>> {
                let shapes: [&[u64]; 5] = [&[24], &[4, 6], &[2, 3, 4], &[6, 4], &[12, 2]];
                let s = shapes[u.int_in_range(0..=4usize)?];
                s.iter().map(|n| Ok(Pair::new(u.int_in_range(-9..=9i64)?, *n))).collect()
            };
            let (a, b) = (dims()?, dims()?);
            let start = u.int_in_range(0..=23u64)?;
            let end = u.int_in_range(start..=24u64)?;
            let (oa, ob) = (offsets(&a), offsets(&b));
            let mut at = start;
            while at < end {
                let len = common_piece(&a, &b, at, end - at);
                assert!(len >= 1 && len <= end - at);
                for (pairs, want) in [(&a, &oa), (&b, &ob)] {
                    let (d, sub) = slice(pairs, at, len).expect("a common piece slices");
                    let got: Vec<i64> = offsets(&sub).iter().map(|o| o + d).collect();
                    assert_eq!(got, want[at as usize..(at + len) as usize]);
                }
                at += len;
            }
            Ok(())
        });
    }

    #[test]
    fn one_dimension_is_one_piece() {
        let p = [Pair::new(1, 512)];
        assert_eq!(common_piece(&p, &p, 100, 300), 300);
        assert_eq!(slice(&p, 100, 300), Some((100, vec![Pair::new(1, 300)])));
    }
}
