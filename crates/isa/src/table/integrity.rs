//! Compile-time proof that each bundle's rows cover its 512 bits exactly once in every layout.

use super::row::{BundleInfo, Field, Layout, Shape};

/// The bits of byte `at` that a field takes.
const fn bits_at(field: &Field, at: usize) -> u8 {
    let span = field.span;
    if at < span.offset || at >= span.offset + field.width {
        return 0;
    }
    match span.shape {
        Shape::Whole => 0xFF,
        Shape::Bit(bit) => 1 << bit,
        Shape::LessBit31 => {
            if at == span.offset + 3 {
                0x7F
            } else {
                0xFF
            }
        }
    }
}

/// The bits that fields take in a layout.
///
/// Fails to compile when two fields overlap or a field leaves the bundle.
pub(super) const fn field_bits(info: &BundleInfo, layout: Layout) -> [u8; 64] {
    let mut taken = [0u8; 64];
    let mut row = 0;
    while row < info.fields.len() {
        let field = &info.fields[row];
        if field.layouts.holds(layout) {
            assert!(field.span.offset + field.width <= 64, "a field leaves the bundle");
            let mut at = 0;
            while at < 64 {
                let bits = bits_at(field, at);
                assert!(taken[at] & bits == 0, "two fields overlap");
                taken[at] |= bits;
                at += 1;
            }
        }
        row += 1;
    }
    taken
}

/// The bits that no field covers, reserved bits and header constants alike.
pub(super) const fn residue_bits(info: &BundleInfo, layout: Layout) -> [u8; 64] {
    let mut bits = field_bits(info, layout);
    let mut at = 0;
    while at < 64 {
        bits[at] = !bits[at];
        at += 1;
    }
    bits
}

/// Proves that header, fields and reserved ranges cover every bit once in each layout that the
/// bundle has.
pub(super) const fn prove(info: &BundleInfo) {
    let mut layout = 0;
    while layout < Layout::ALL.len() {
        if info.has_layout(Layout::ALL[layout]) {
            prove_layout(info, Layout::ALL[layout]);
        }
        layout += 1;
    }
}

const fn prove_layout(info: &BundleInfo, layout: Layout) {
    let mut taken = field_bits(info, layout);
    // Header: opcode, length, two reserved bytes. A flag may sit in the length byte's low bit.
    assert!(
        taken[0] == 0 && taken[1] & !1 == 0 && taken[2] == 0 && taken[3] == 0,
        "a field overlaps the header"
    );
    taken[0] = 0xFF;
    taken[1] = 0xFF;
    taken[2] = 0xFF;
    taken[3] = 0xFF;
    let mut row = 0;
    while row < info.reserved.len() {
        let range = info.reserved[row];
        assert!(range.first < range.end && range.end <= 64, "a reserved range is empty or leaves the bundle");
        if range.layouts.holds(layout) {
            let mut at = range.first;
            while at < range.end {
                assert!(taken[at] == 0, "a reserved byte overlaps a field");
                taken[at] = 0xFF;
                at += 1;
            }
        }
        row += 1;
    }
    let mut at = 0;
    while at < 64 {
        assert!(taken[at] == 0xFF, "a bit is neither a field nor reserved");
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matmul;
    use crate::table::{Bundle, Layouts, Reserved, Span};

    fn changed(fields: Vec<Field>, reserved: Vec<Reserved>) -> BundleInfo {
        BundleInfo { fields: fields.leak(), reserved: reserved.leak(), ..Matmul::INFO }
    }

    fn fields() -> Vec<Field> {
        Matmul::INFO.fields.to_vec()
    }

    fn reserved() -> Vec<Reserved> {
        Matmul::INFO.reserved.to_vec()
    }

    #[test]
    fn the_table_as_it_is_passes() {
        prove(&changed(fields(), reserved()));
    }

    #[test]
    #[should_panic(expected = "two fields overlap")]
    fn a_field_moved_onto_another_fails() {
        let mut rows = fields();
        rows[1].span = Span { offset: 0x21, shape: Shape::Bit(3) };
        prove(&changed(rows, reserved()));
    }

    #[test]
    #[should_panic(expected = "a field leaves the bundle")]
    fn a_field_past_the_end_fails() {
        let mut rows = fields();
        rows[0].span.offset = 0x31;
        prove(&changed(rows, reserved()));
    }

    #[test]
    #[should_panic(expected = "neither a field nor reserved")]
    fn a_gap_fails() {
        let mut rows = fields();
        rows.remove(1);
        prove(&changed(rows, reserved()));
    }

    #[test]
    #[should_panic(expected = "neither a field nor reserved")]
    fn a_gap_in_one_layout_fails() {
        let mut ranges = reserved();
        ranges.retain(|range| range.layouts != Layouts::GT40);
        prove(&changed(fields(), ranges));
    }

    #[test]
    #[should_panic(expected = "a reserved byte overlaps a field")]
    fn a_reserved_range_over_a_field_fails() {
        let mut ranges = reserved();
        ranges.push(Reserved { first: 0x20, end: 0x21, layouts: Layouts::ALL });
        prove(&changed(fields(), ranges));
    }

    #[test]
    #[should_panic(expected = "a field overlaps the header")]
    fn a_field_in_the_header_fails() {
        let mut rows = fields();
        rows[1].span.offset = 2;
        prove(&changed(rows, reserved()));
    }
}
