//! What the array holds: the weight cache.
//!
//! One entry a tile group. A hit needs the same group, the same weights access, the same signature and
//! no write to the weights' memory since; loading a group evicts every entry that shares a quadrant
//! with it (D-26, D-41).

use std::collections::BTreeMap;

use hadal_isa::{Pattern, PerfMode, Target};

use crate::geom::Area;

/// (row group, column group) bytes.
pub(super) type Group = (u8, u8);

/// Everything that must be the same for a loaded tile to serve another matmul.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tile {
    pub weights: Pattern<3>,
    pub partitions: u64,
    pub tag: u8,
    pub e4m3fn: bool,
    pub zero_point: u8,
    pub perf_mode: PerfMode,
    pub transpose: bool,
    pub replication: u8,
    pub tile_size: Option<[u32; 2]>,
}

#[derive(Debug)]
struct Entry {
    tile: Tile,
    area: Option<Area>,
}

#[derive(Debug)]
pub(super) struct WeightCache {
    enabled: bool,
    /// Above level 40 a Matmul names no group and takes the last load: one entry is all there is.
    last_only: bool,
    held: BTreeMap<Group, Entry>,
    elided: usize,
}

impl WeightCache {
    pub(super) fn new(enabled: bool, target: Target) -> Self {
        WeightCache { enabled, last_only: target.level > 40, held: BTreeMap::new(), elided: 0 }
    }

    /// Whether the array already holds the tile; counts the elided load.
    pub(super) fn hit(&mut self, group: Group, tile: &Tile) -> bool {
        let hit = self.enabled && self.held.get(&group).is_some_and(|e| e.tile == *tile);
        self.elided += usize::from(hit);
        hit
    }

    /// A tile was loaded from `area`.
    pub(super) fn loaded(&mut self, group: Group, tile: Tile, area: Option<Area>) {
        self.evict(group);
        self.held.insert(group, Entry { tile, area });
    }

    /// A load of any kind took a group's quadrants.
    pub(super) fn evict(&mut self, group: Group) {
        if self.last_only {
            return self.held.clear();
        }
        self.held.retain(|g, _| g.0 & group.0 == 0 || g.1 & group.1 == 0);
    }

    /// A float32 matmul leaves nothing to reuse.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }

    /// SBUF bytes were overwritten.
    pub(super) fn written(&mut self, area: &Area) {
        self.held.retain(|_, e| e.area.as_ref().is_some_and(|a| !a.intersects(area)));
    }

    /// Number of hits so far.
    pub(super) fn elided(&self) -> usize {
        self.elided
    }
}
