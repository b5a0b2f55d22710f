//! Tile groups: which 32-lane quadrants of an axis of the array an operand uses, one bit each.

/// The group masks that the encoders produce: one quadrant, an aligned pair, or the whole axis.
pub const GROUPS_LEGAL: [u8; 7] = [1, 2, 4, 8, 3, 12, 15];

/// The whole axis.
const FULL: u8 = 0x0F;

/// The group of `size` lanes from `position`: a quadrant up to 32 lanes, a pair of quadrants up to
/// 64 (D-09), the whole axis beyond. Positions at or past 128 use the last quadrant or pair.
const fn group(position: u32, size: u32) -> u8 {
    if size <= 32 {
        let quadrant = position / 32;
        1 << if quadrant > 3 { 3 } else { quadrant }
    } else if size <= 64 {
        if position < 64 { 3 } else { 12 }
    } else {
        FULL
    }
}

/// Row group of `rows` array rows from row `position`.
#[must_use]
pub const fn row_group(position: u32, rows: u32) -> u8 {
    group(position, rows)
}

/// Column group of `cols` active columns from column `position`. `force` gives the whole axis:
/// transposes, float32r, background transposes and MX use it.
#[must_use]
pub const fn col_group(position: u32, cols: u32, force: bool) -> u8 {
    if force { FULL } else { group(position, cols) }
}

/// Lanes that a group covers: 32 for each set bit.
#[must_use]
pub const fn group_lanes(group: u8) -> u32 {
    (group & FULL).count_ones() * 32
}

/// The `col_grp` code of a sparse tags load, from its row group (D-39).
///
/// `None` for a row group that structured sparsity cannot use.
#[must_use]
pub const fn sparse_col_grp(row_group: u8) -> Option<u8> {
    match row_group {
        1 | 3 | 15 => Some(0x0),
        2 => Some(0x4),
        4 | 12 => Some(0x8),
        8 => Some(0xC),
        _ => None,
    }
}
