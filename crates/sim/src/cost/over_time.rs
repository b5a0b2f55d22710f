//! The array over time: how busy it is in equal stretches of the program.

use super::formula::CELLS;
use super::{Cost, Kind};

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// First cycle.
    pub start: u64,
    /// Cycle after the last.
    pub end: u64,
    /// Utilization of the array: multiply-adds, each over its mode's packing, over cycles x 128 x 128.
    pub utilization: f64,
    /// Share of the time in which the array multiplies; the rest waits for loads.
    pub multiplying: f64,
}

impl Cost {
    /// The program in at most `count` stretches of equal length, to a cycle. Empty when it takes no time.
    pub fn over_time(&self, count: usize) -> Vec<Stretch> {
        let count = count.min(usize::try_from(self.cycles).unwrap_or(usize::MAX));
        let edge = |i: usize| (self.cycles as u128 * i as u128 / count.max(1) as u128) as u64;
        let mut out: Vec<Stretch> = (0..count)
            .map(|i| Stretch { start: edge(i), end: edge(i + 1), utilization: 0.0, multiplying: 0.0 })
            .collect();
        // Steps and stretches both ascend, so each step begins where the last one ended.
        let mut at = 0;
        for s in &self.steps {
            if !matches!(s.kind, Kind::Matmul | Kind::Transpose) || s.busy == 0 {
                continue;
            }
            let density = s.macs as f64 / (s.packing.max(1) * CELLS * s.busy) as f64;
            while let Some(stretch) = out.get_mut(at) {
                let cycles = s.end().min(stretch.end).saturating_sub(s.start.max(stretch.start));
                stretch.utilization += density * cycles as f64;
                stretch.multiplying += cycles as f64;
                if stretch.end > s.end() {
                    break;
                }
                at += 1;
            }
        }
        for s in &mut out {
            let length = (s.end - s.start).max(1) as f64;
            s.utilization /= length;
            s.multiplying /= length;
        }
        out
    }
}
