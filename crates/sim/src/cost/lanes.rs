//! Steps as they are drawn: a lane for the loads and one for the matmuls of each tile group.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::formula::CELLS;
use super::{Cost, Kind, Tile};

/// The loads or the matmuls of one tile group, in order; none overlaps another.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// Whether these are loads; matmuls and transposes otherwise.
    pub loads: bool,
    /// The tile group; `None` where nothing says.
    pub tile: Option<Tile>,
    /// What runs in it.
    pub spans: Vec<Span>,
}

/// One step of a lane, or a few that follow each other in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// First cycle.
    pub start: u64,
    /// Cycle after the last.
    pub end: u64,
    /// Index of the first step in [`Cost::steps`].
    pub first: usize,
    /// Index of the last step.
    pub last: usize,
    /// Steps in it: those of this lane from `first` to `last`.
    pub steps: usize,
    /// Cycles the array is busy with them.
    pub busy: u64,
    /// Cycles they add to the program.
    pub cycles: u64,
    /// Multiply-adds.
    pub macs: u64,
    /// Utilization of the array while they run.
    pub utilization: f64,
}

impl Cost {
    /// The lanes, the largest tile groups first, loads before matmuls. A program of more than `limit` steps has every few
    /// steps of a lane in one span, so that there are about `limit` spans in all.
    pub fn lanes(&self, limit: usize) -> Vec<Lane> {
        let drawn = |kind| kind != Kind::Other;
        let count = self.steps.iter().filter(|s| s.busy > 0 && drawn(s.kind)).count();
        let together = count.div_ceil(limit.max(1)).max(1);
        let mut lanes: BTreeMap<(Reverse<u32>, Option<Tile>, bool), Vec<Span>> = BTreeMap::new();
        let size = |t: Option<Tile>| t.map_or(0, |t| t.rows.count_ones() * t.columns.count_ones());
        for (i, s) in self.steps.iter().enumerate().filter(|(_, s)| s.busy > 0 && drawn(s.kind)) {
            // While it is gathered, `utilization` holds the packed multiply-adds.
            let packed = s.macs as f64 / s.packing.max(1) as f64;
            let spans = lanes.entry((Reverse(size(s.tile)), s.tile, s.kind != Kind::Load)).or_default();
            match spans.last_mut() {
                Some(span) if span.steps < together => {
                    span.end = s.end();
                    span.last = i;
                    span.steps += 1;
                    span.busy = span.busy.saturating_add(s.busy);
                    span.cycles = span.cycles.saturating_add(s.cycles);
                    span.macs = span.macs.saturating_add(s.macs);
                    span.utilization += packed;
                }
                _ => spans.push(Span {
                    start: s.start,
                    end: s.end(),
                    first: i,
                    last: i,
                    steps: 1,
                    busy: s.busy,
                    cycles: s.cycles,
                    macs: s.macs,
                    utilization: packed,
                }),
            }
        }
        lanes
            .into_iter()
            .map(|((_, tile, matmuls), mut spans)| {
                spans.iter_mut().for_each(|s| s.utilization /= s.busy as f64 * CELLS as f64);
                Lane { loads: !matmuls, tile, spans }
            })
            .collect()
    }

    /// The cycle at which each of `count` instructions begins: with its first matmul, else with its load. One
    /// without a bundle of the array takes no time, and begins where what came before it has ended.
    pub fn beginnings(&self, count: usize) -> Vec<u64> {
        let mut begin: Vec<Option<u64>> = vec![None; count];
        let mut end = vec![0; count];
        for s in self.steps.iter().filter(|s| s.kind != Kind::Other) {
            if let (Some(b), Some(e)) = (begin.get_mut(s.instr), end.get_mut(s.instr)) {
                let matmul = s.kind != Kind::Load;
                // The end stays 0 until the first matmul is seen.
                if b.is_none() || (matmul && *e == 0) {
                    *b = Some(s.start);
                }
                if matmul {
                    *e = s.end();
                }
            }
        }
        let mut now = 0;
        begin
            .into_iter()
            .zip(end)
            .map(|(b, e)| {
                let at = b.unwrap_or(now).max(now);
                now = now.max(e).max(at);
                at
            })
            .collect()
    }
}
