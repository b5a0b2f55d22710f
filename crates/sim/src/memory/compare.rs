//! Comparison of two memories, byte for byte and bit for bit.

use std::fmt;

use super::{Machine, Plane};

/// The first place where two memories differ. `None` for a byte means that side never wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `SBUF`, `PSUM` or the name of a DRAM tensor.
    pub space: String,
    /// Partition; 0 in DRAM.
    pub partition: usize,
    /// Byte offset in the partition or tensor.
    pub offset: usize,
    /// The first memory's byte.
    pub a: Option<u8>,
    /// The second memory's byte.
    pub b: Option<u8>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let byte = |b: Option<u8>| b.map_or_else(|| "never written".to_owned(), |b| format!("{b:02X}"));
        write!(
            f,
            "{} partition {} byte {}: {} against {}",
            self.space,
            self.partition,
            self.offset,
            byte(self.a),
            byte(self.b)
        )
    }
}

/// The first difference between two memories, in SBUF, then PSUM, then DRAM by name of the tensor;
/// `None` when every byte and every written bit agree. A tensor that one side lacks differs at byte 0.
pub fn compare(a: &Machine, b: &Machine) -> Option<Difference> {
    plane("SBUF", Some(&a.sbuf), Some(&b.sbuf))
        .or_else(|| plane("PSUM", Some(&a.psum), Some(&b.psum)))
        .or_else(|| {
            let names: std::collections::BTreeSet<&str> = a.dram.names().chain(b.dram.names()).collect();
            names.into_iter().find_map(|n| plane(n, a.dram.tensor(n), b.dram.tensor(n)))
        })
}

fn plane(space: &str, a: Option<&Plane>, b: Option<&Plane>) -> Option<Difference> {
    let (partition, offset) = match (a, b) {
        (Some(a), Some(b)) => a.first_difference(b)?,
        _ => (0, 0),
    };
    let byte = |p: Option<&Plane>| {
        p.filter(|p| p.is_written(partition, offset))
            .and_then(|p| p.get(partition, offset, 1)?.first().copied())
    };
    Some(Difference { space: space.to_owned(), partition, offset, a: byte(a), b: byte(b) })
}
