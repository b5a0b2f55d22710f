//! What the array holds: one stationary tile in each quadrant.

use crate::error::Fault;
use crate::fp32_pass::Pass;
use crate::kernel::{Weights, mx};

/// A loaded stationary tile. It holds values: later writes to the memory it came from do not change it.
#[derive(Debug, Clone)]
pub(crate) struct Latch {
    pub(crate) row_group: u8,
    pub(crate) col_group: u8,
    pub(crate) held: Held,
}

/// The values of a tile.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// Dense weights, and which float32 pass their load began.
    Dense(Weights, Pass),
    /// MX weights with their scales applied.
    Mx(mx::Weights),
}

/// All loaded tiles, the newest last. No two share a quadrant.
#[derive(Debug, Default)]
pub(crate) struct Latches {
    held: Vec<Latch>,
}

impl Latches {
    /// Loads a tile; whatever overlaps it on both axes is gone (D-26).
    pub(crate) fn load(&mut self, latch: Latch) {
        self.held.retain(|l| l.row_group & latch.row_group == 0 || l.col_group & latch.col_group == 0);
        self.held.push(latch);
    }

    fn find(&self, row: u8, col: u8) -> Result<&Held, Fault> {
        let found = self.held.iter().find(|l| l.row_group == row && l.col_group == col);
        found.map(|l| &l.held).ok_or(Fault::NotLoaded { row, col })
    }

    /// The dense weights of exactly these groups, or (`None`) those loaded last.
    pub(crate) fn dense(&self, groups: Option<(u8, u8)>) -> Result<(&Weights, Pass), Fault> {
        let held = match groups {
            Some((row, col)) => self.find(row, col)?,
            None => self.held.last().map(|l| &l.held).ok_or(Fault::NotLoaded { row: 0, col: 0 })?,
        };
        match held {
            Held::Dense(weights, pass) => Ok((weights, *pass)),
            Held::Mx(_) => Err(wrong_kind("a dense matmul", "MX weights")),
        }
    }

    /// The MX weights of exactly these groups.
    pub(crate) fn mx(&self, row: u8, col: u8) -> Result<&mx::Weights, Fault> {
        match self.find(row, col)? {
            Held::Mx(weights) => Ok(weights),
            Held::Dense(..) => Err(wrong_kind("an MX matmul", "dense weights")),
        }
    }
}

fn wrong_kind(got: &str, want: &str) -> Fault {
    Fault::LoadMismatch { what: "the bundle", got: got.to_owned(), want: want.to_owned() }
}
