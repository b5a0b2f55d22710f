//! The rows. Each line is one field of one bundle: layouts and place, kind, recovered name,
//! confidence, decision, meaning. Names are those of the checks that the public bindings carry;
//! a byte whose name was not recovered has none.

use super::LENGTH_WORDS;
use super::emit::{bundles, span};
use super::integrity::{prove, residue_bits};
use super::row::{
    BundleInfo, Confidence, Engine, Field, Generations, Kind, Layout, Layouts, Reserved, Shape, Span,
};
use super::wire::{Bundle, Value, ValueMut, Wire};
use crate::{MxPattern, Pattern, Target, Word};

bundles! {
    /// Loads the stationary operand (weights) into a tile of the array (S3_LW, opcode 01).
    bundle LoadStationary = 0x01 {
        doc: "Load the stationary operand (weights) into a tile of the array.",
        wire: Some("S3_LW"),
        opcode_name: Some("s3_lw_opcode"),
        reserved_name: Some("lw_reserved_zero"),
        engine: Pe,
        generations: ALL,
        fields: {
            /// Transpose code: 2 on gen3/4 (a byte), 1 on gen2 (a bit); 0 when not a transpose.
            /// See [`LoadStationary::transpose_code`].
            transpose: u8 =
                [G34 at 0x0C, Kind::Code, None, Confirmed, None, "2 when the load is a transpose, else 0"]
                [G2 bit 0x13 7, Kind::Flag, None, Confirmed, Some(10), "1 when the load is a transpose; or-ed into bit 31 of the weights' start address (the or is assumed)"];
            /// The weights. On gen2 bit 31 of the start is the transpose flag, so decoding masks it.
            weights: Pattern<3> =
                [G34 at 0x10, Kind::Source, None, Confirmed, None, "weights, TENSOR3D"]
                [G2 less31 0x10, Kind::Source, None, Confirmed, Some(10), "weights, TENSOR3D; bit 31 of the start address is the transpose flag"];
            /// Type tag of the weights; 0A for float32r.
            weights_tag: u8 =
                [ALL at 0x20, Kind::Tag("weights"), Some("lw_dtype"), Confirmed, None, "type tag of the weights; 0A for float32r"];
            /// Perf variant: see [`PerfVariant`](crate::PerfVariant).
            perf_variant: u8 =
                [ALL at 0x21, Kind::PerfVariant, Some("lw_perf_opt_src"), Confirmed, None, "00 default, 02 perf load or float32r, 80 float32"];
            /// Ordinal of the performance mode: see [`PerfMode`](crate::PerfMode).
            perf_mode: u8 =
                [ALL at 0x23, Kind::PerfMode, Some("lw_perf_opt_dtype"), Assumed, Some(11), "performance mode: the MatmultPerfMode ordinal"];
            /// Replication code, gen2 only, both bytes alike; default 0.
            replication: [u8; 2] =
                [G2 at 0x24, Kind::Code, None, Confirmed, None, "replication code, both bytes alike, default 0 (the value is assumed)"];
            /// Rows: partitions of the weights.
            rows: u8 =
                [ALL at 0x26, Kind::Count, Some("lw_valid_num_rows"), Strong, Some(12), "rows: partitions of the weights"];
            /// Active columns: weight elements per partition, halved in the DoubleRow modes.
            active_cols: u8 =
                [ALL at 0x27, Kind::Count, None, Confirmed, Some(13), "active columns: weight elements per partition, halved in the DoubleRow modes"];
            /// Row group: see [`row_group`](crate::row_group).
            row_group: u8 =
                [ALL at 0x2C, Kind::Group, Some("lw_valid_row_group"), Confirmed, Some(9), "row group: quadrants of array rows"];
            /// Column group: see [`col_group`](crate::col_group).
            col_group: u8 =
                [ALL at 0x2D, Kind::Group, Some("lw_valid_col_group_active_column"), Confirmed, Some(9), "column group: quadrants of array columns"];
            /// Crossbar byte, gen2 only: 10.
            xbus: u8 =
                [G2 at 0x2E, Kind::Code, Some("lw_valid_xbus"), Confirmed, None, "crossbar byte: 0x10"];
        },
        reserved: [
            0x04..0x0C ALL, 0x0C..0x0D G2, 0x0D..0x10 ALL, 0x22..0x23 ALL, 0x24..0x26 G34, 0x28..0x2C ALL,
            0x2E..0x2F G34, 0x2F..0x40 ALL,
        ],
    }

    /// Streams the moving operand through a loaded tile into PSUM (S3D3_MM, opcode 02).
    bundle Matmul = 0x02 {
        doc: "Stream the moving operand through a loaded tile and write PSUM.",
        wire: Some("S3D3_MM"),
        opcode_name: Some("s_s3d3_mm_opcode"),
        reserved_name: None,
        engine: Pe,
        generations: ALL,
        fields: {
            /// The moving operand.
            moving: Pattern<3> =
                [ALL at 0x10, Kind::Source, None, Confirmed, None, "moving operand, TENSOR3D"];
            /// Type tag of the moving operand; 0A for float32r.
            moving_tag: u8 =
                [ALL at 0x20, Kind::Tag("moving"), Some("d3_mm_dtype"), Strong, Some(35), "type tag of the moving operand; bytes 20..21 are 0A 02 for float32r"];
            /// Perf variant: see [`PerfVariant`](crate::PerfVariant).
            perf_variant: u8 =
                [ALL at 0x21, Kind::PerfVariant, Some("d3_mm_perf_opt_src"), Strong, None, "00 default, 02 any perf mode or float32r, 80 float32"];
            /// Type tag of the destination.
            dst_tag: u8 =
                [ALL at 0x23, Kind::Tag("dst"), None, Confirmed, Some(36), "type tag of the destination; on gen4 by the inherited gen3 encoder, which is assumed"];
            /// Replication code, gen2 only, both bytes alike; default 0.
            replication: [u8; 2] =
                [G2 at 0x24, Kind::Code, None, Confirmed, None, "replication code, both bytes alike, default 0 (the value is assumed)"];
            /// Rows: partitions of the moving operand.
            rows: u8 =
                [ALL at 0x26, Kind::Count, None, Strong, Some(12), "rows: partitions of the moving operand"];
            /// Active columns, as for the load it pairs with.
            active_cols: u8 =
                [ALL at 0x27, Kind::Count, None, Strong, Some(13), "active columns, as for the load it pairs with"];
            /// Accumulate flags; not a field above level 40.
            accumulate: u8 =
                [LE40 at 0x2B, Kind::Accumulate, Some("mm_psum_flags"), Confirmed, Some(25), "accumulate flags: 1 START, 2 STOP, 4 ACCUMULATE"];
            /// Row group; not a field above level 40.
            row_group: u8 =
                [LE40 at 0x2C, Kind::Group, None, Strong, Some(9), "row group: quadrants of array rows"];
            /// Column group; not a field above level 40.
            col_group: u8 =
                [LE40 at 0x2D, Kind::Group, Some("d3_mm_valid_col_group_active_col"), Strong, Some(9), "column group: quadrants of array columns"];
            /// Crossbar byte, gen2 only: 10.
            xbus: u8 =
                [G2 at 0x2E, Kind::Code, Some("d3_mm_valid_xbus"), Assumed, Some(34), "crossbar byte: 0x10"];
            /// log2 of the number of banks that START clears.
            psum_zero_region: u8 =
                [ALL at 0x2F, Kind::Count, None, Confirmed, Some(17), "log2 of the number of banks that START clears (the place is confirmed)"];
            /// The destination in PSUM.
            dst: Pattern<3> =
                [ALL at 0x30, Kind::Destination, None, Confirmed, None, "destination in PSUM, MEM_PATTERN3D"];
        },
        reserved: [
            0x04..0x10 ALL, 0x22..0x23 ALL, 0x24..0x26 G34, 0x28..0x2B ALL, 0x2B..0x2E GT40, 0x2E..0x2F G34,
        ],
    }

    /// Loads the structured-sparsity tags (opcode 06, gen3).
    bundle LoadTagsSparse = 0x06 {
        doc: "Load the position tags of a structured-sparse operand.",
        wire: None,
        opcode_name: None,
        reserved_name: None,
        engine: Pe,
        generations: G3,
        fields: {
            /// The tags.
            tags: Pattern<3> =
                [ALL at 0x10, Kind::Source, None, Confirmed, Some(20), "tags, TENSOR3D of int16: four 4-bit positions an element"];
            /// Type tag of the tags.
            tags_tag: u8 =
                [ALL at 0x20, Kind::Tag("tags"), None, Confirmed, None, "type tag of the tags"];
            /// Column code derived from the row group: see [`sparse_col_grp`](crate::sparse_col_grp).
            col_grp: u8 =
                [ALL at 0x21, Kind::Code, Some("col_grp"), Confirmed, Some(39), "from the row group: 1, 3, 15 give 0; 2 gives 4; 4, 12 give 8; 8 gives 0C"];
            /// Rows: partitions of the tags.
            rows: u8 =
                [ALL at 0x26, Kind::Count, None, Strong, Some(12), "rows"];
            /// Active columns.
            active_cols: u8 =
                [ALL at 0x27, Kind::Count, Some("num_active_cols"), Strong, Some(13), "active columns"];
            /// Row group of (row position, 128 / compression ratio): the density.
            row_group: u8 =
                [ALL at 0x2C, Kind::Group, None, Confirmed, Some(39), "row group of (row position, 128 / compression ratio): the density"];
            /// Auxiliary byte, bounded by 0F and written 0F.
            aux: u8 =
                [ALL at 0x2D, Kind::Code, None, Strong, None, "auxiliary byte bounded by 0F, written 0F"];
        },
        reserved: [0x04..0x10 ALL, 0x22..0x26 ALL, 0x28..0x2C ALL, 0x2E..0x40 ALL],
    }

    /// Structured-sparse multiply (opcode 07, gen3).
    bundle MatmultSparse = 0x07 {
        doc: "Multiply with structured-sparse weights, by the loaded tags, and write PSUM.",
        wire: None,
        opcode_name: None,
        reserved_name: None,
        engine: Pe,
        generations: G3,
        fields: {
            /// The moving operand, ratio dimension first.
            moving: Pattern<4> =
                [ALL at 0x10, Kind::Source, None, Confirmed, Some(40), "moving operand, TENSOR4D: the ratio dimension first, padded with unit dimensions"];
            /// Type tag of the moving operand.
            moving_tag: u8 =
                [ALL at 0x24, Kind::Tag("moving"), None, Assumed, Some(14), "type tag of the moving operand"];
            /// Type tag of the destination.
            dst_tag: u8 =
                [ALL at 0x25, Kind::Tag("dst"), None, Assumed, Some(14), "type tag of the destination"];
            /// Rows.
            rows: u8 =
                [ALL at 0x26, Kind::Count, None, Strong, Some(12), "rows"];
            /// Active columns.
            active_cols: u8 =
                [ALL at 0x27, Kind::Count, Some("num_active_cols"), Strong, Some(13), "active columns"];
            /// float32 pass: 0 single, 1 low, 2 high. Not the accumulate byte.
            pass: u8 =
                [ALL at 0x2B, Kind::Code, None, Confirmed, None, "float32 pass: 0 single, 1 low, 2 high; not the accumulate byte"];
            /// Row group: the density.
            row_group: u8 =
                [ALL at 0x2C, Kind::Group, None, Confirmed, Some(39), "row group of (row position, 128 / compression ratio): the density"];
            /// Column group.
            col_group: u8 =
                [ALL at 0x2D, Kind::Group, None, Strong, Some(9), "column group: quadrants of array columns"];
            /// The destination in PSUM.
            dst: Pattern<3> =
                [ALL at 0x30, Kind::Destination, None, Confirmed, None, "destination in PSUM, MEM_PATTERN3D"];
        },
        reserved: [0x04..0x10 ALL, 0x28..0x2B ALL, 0x2E..0x30 ALL],
    }

    /// Loads MX weights and their block scales (opcode 09, gen4).
    bundle LdWeightMx = 0x09 {
        doc: "Load MX weights and their block scales into a row tile of the array.",
        wire: None,
        opcode_name: None,
        reserved_name: None,
        engine: Pe,
        generations: G4,
        fields: {
            /// The weights and their scales.
            weights: MxPattern =
                [ALL at 0x10, Kind::Mx, None, Confirmed, None, "weights and scales, MXMEM_PATTERN1D; bytes 1C..1F are fields of the gather form only"];
            /// Type tag of the weights, from the MX table.
            weights_tag: u8 =
                [ALL at 0x20, Kind::MxTag("weights"), None, Confirmed, None, "type tag of the weights, MX table"];
            /// Rows: partitions of the weights.
            rows: u8 =
                [ALL at 0x26, Kind::Count, None, Confirmed, Some(12), "rows: partitions of the weights"];
            /// Active columns.
            active_cols: u8 =
                [ALL at 0x27, Kind::Count, None, Confirmed, Some(13), "active columns"];
            /// Row group.
            row_group: u8 =
                [ALL at 0x2C, Kind::Group, None, Confirmed, Some(9), "row group: quadrants of array rows"];
            /// Column group: 0F.
            col_group: u8 =
                [ALL at 0x2D, Kind::Group, None, Confirmed, None, "column group, always the whole axis: 0F"];
        },
        reserved: [0x04..0x10 ALL, 0x21..0x26 ALL, 0x28..0x2C ALL, 0x2E..0x40 ALL],
    }

    /// Streams an MX moving operand through loaded MX weights into PSUM (opcode 0A, gen4).
    bundle MatmultMx = 0x0A {
        doc: "Stream an MX moving operand and its block scales through loaded MX weights and write PSUM.",
        wire: None,
        opcode_name: None,
        reserved_name: None,
        engine: Pe,
        generations: G4,
        fields: {
            /// The moving operand and its scales.
            moving: MxPattern =
                [ALL at 0x10, Kind::Mx, None, Confirmed, None, "moving operand and scales, MXMEM_PATTERN1D; bytes 1C..1F are fields of the gather form only"];
            /// Type tag of the moving operand, from the MX table.
            moving_tag: u8 =
                [ALL at 0x20, Kind::MxTag("moving"), Some("d3_mm_dtype"), Confirmed, None, "type tag of the moving operand, MX table"];
            /// Rows: partitions of the weights.
            rows: u8 =
                [ALL at 0x26, Kind::Count, None, Confirmed, Some(12), "rows: partitions of the weights"];
            /// Active columns of the weights.
            active_cols: u8 =
                [ALL at 0x27, Kind::Count, None, Confirmed, Some(13), "active columns of the weights"];
            /// Type tag of the destination.
            dst_tag: u8 =
                [ALL at 0x28, Kind::Tag("dst"), None, Confirmed, None, "type tag of the destination"];
            /// Accumulate flags, copied as given.
            accumulate: u8 =
                [ALL at 0x2B, Kind::Accumulate, Some("mm_psum_flags"), Confirmed, Some(25), "accumulate flags, copied as given: 1 START, 2 STOP, 4 ACCUMULATE"];
            /// Row group.
            row_group: u8 =
                [ALL at 0x2C, Kind::Group, None, Confirmed, Some(9), "row group: quadrants of array rows"];
            /// Column group: 0F.
            col_group: u8 =
                [ALL at 0x2D, Kind::Group, Some("d3_mm_valid_col_group_active_col"), Confirmed, None, "column group, always the whole axis: 0F"];
            /// log2 of the number of banks that START clears.
            psum_zero_region: u8 =
                [ALL at 0x2F, Kind::Count, None, Confirmed, Some(17), "log2 of the number of banks that START clears"];
            /// The destination in PSUM.
            dst: Pattern<3> =
                [ALL at 0x30, Kind::Destination, None, Confirmed, None, "destination in PSUM, MEM_PATTERN3D"];
        },
        reserved: [0x04..0x10 ALL, 0x21..0x26 ALL, 0x29..0x2B ALL, 0x2E..0x2F ALL],
    }

    /// Quantizes a 16-bit tensor to packed data and block scales (S3DMX1_QUANT, opcode E3, gen4, DVE).
    bundle QuantizeMx = 0xE3 {
        doc: "Quantize a 16-bit tensor to packed MX data and block scales.",
        wire: Some("S3DMX1_QUANT"),
        opcode_name: None,
        reserved_name: None,
        engine: Dve,
        generations: G4,
        fields: {
            /// 1 when saturation is not already configured by the program (bit 0 of byte 1).
            saturate: u8 =
                [ALL bit 0x01 0, Kind::Flag, None, Confirmed, None, "1 when output saturation is not already configured (fp8_conv_config byte 0 is 0)"];
            /// The source tensor.
            src: Pattern<3> =
                [ALL at 0x10, Kind::Source, None, Confirmed, None, "source, TENSOR3D"];
            /// Type tag of the source.
            src_tag: u8 =
                [ALL at 0x20, Kind::Tag("src"), None, Confirmed, None, "type tag of the source"];
            /// Source partitions: 32, 64, 96 or 128.
            src_partitions: u8 =
                [ALL at 0x21, Kind::Count, None, Confirmed, None, "source partitions: 32, 64, 96 or 128"];
            /// Type tag of the data, from the MX table.
            data_tag: u8 =
                [ALL at 0x28, Kind::MxTag("out"), None, Assumed, Some(15), "type tag of the data, MX table"];
            /// The packed data and its scales.
            out: MxPattern =
                [ALL at 0x30, Kind::Mx, None, Confirmed, None, "packed data and scales, MXMEM_PATTERN1D; bytes 3C..3F are fields of the gather form only"];
        },
        reserved: [0x04..0x10 ALL, 0x22..0x28 ALL, 0x29..0x30 ALL],
    }
}

impl LoadStationary {
    /// The transpose code of a target: 1 on gen2, 2 on gen3 and gen4.
    #[must_use]
    pub const fn transpose_code(target: Target) -> u8 {
        match Layout::of(target) {
            Layout::Gen2 => 1,
            Layout::Gen34 | Layout::Above40 => 2,
        }
    }
}
