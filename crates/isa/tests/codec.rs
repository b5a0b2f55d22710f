//! The codec against words from outside, against every single-bit word, and against random words.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Rng, golden, goldens, random_inst};
use hadal_isa::table::{BUNDLES, Bundle, Layout};
use hadal_isa::*;

fn targets() -> Vec<Target> {
    ["trn1", "trn2", "trn3", "level:41"].iter().map(|t| t.parse().unwrap()).collect()
}

fn round_trips(word: &Word, target: Target) {
    let decoded = decode(word, target);
    assert_eq!(decoded.encode(target), *word, "{target}");
    // The residue is the exclusive or with the instruction's own encoding.
    assert_eq!(decoded.inst.encode(target).xor(word), decoded.residue, "{target} {word}");
}

#[test]
fn golden_words_decode_without_residue_and_encode_back() {
    let mut words = 0;
    for (name, target, list) in goldens() {
        for word in list {
            let decoded = decode(&word, target);
            assert!(!matches!(decoded.inst, Inst::Raw(_)), "{name}: {word}");
            assert!(decoded.residue.is_zero(), "{name}: {word} leaves {}", decoded.residue);
            assert_eq!(decoded.inst.encode(target), word, "{name}");
            words += 1;
        }
    }
    assert!(words > 300, "{words} words");
}

#[test]
fn every_single_bit_word_round_trips_under_every_opcode() {
    for target in targets() {
        for opcode in 0..=255u8 {
            for bit in 0..512usize {
                let mut bytes = [0u8; 64];
                bytes[0] = opcode;
                bytes[bit / 8] ^= 1 << (bit % 8);
                round_trips(&Word(bytes), target);
            }
        }
    }
}

#[test]
fn a_field_bit_is_never_residue_and_a_residue_bit_never_a_field() {
    for target in targets() {
        let layout = Layout::of(target);
        for info in BUNDLES.iter().filter(|b| b.generations.holds(target.generation)) {
            for bit in 8..512usize {
                let mut bytes = [0u8; 64];
                bytes[0] = info.opcode;
                bytes[1] = 0x10;
                let plain = decode(&Word(bytes), target);
                bytes[bit / 8] ^= 1 << (bit % 8);
                let changed = decode(&Word(bytes), target);
                let at = bit / 8;
                let reserved =
                    info.reserved.iter().any(|r| r.layouts.holds(layout) && (r.first..r.end).contains(&at));
                let header = (1..4).contains(&at) && !(info.name == "QuantizeMx" && bit == 8);
                if reserved || header {
                    assert_eq!(plain.inst, changed.inst, "{} byte {at:02x} {target}", info.name);
                    assert!(!changed.residue.is_zero());
                } else {
                    assert_ne!(plain.inst, changed.inst, "{} byte {at:02x} {target}", info.name);
                    assert_eq!(plain.residue, changed.residue);
                }
            }
        }
    }
}

#[test]
fn random_words_round_trip() {
    let mut rng = Rng(7);
    for _ in 0..250_000 {
        let mut word = rng.word();
        if rng.below(4) != 0 {
            word.0[0] = BUNDLES[rng.below(BUNDLES.len())].opcode;
        }
        for target in targets() {
            round_trips(&word, target);
        }
    }
}

#[test]
fn random_structs_survive_encoding() {
    let mut rng = Rng(11);
    for _ in 0..20_000 {
        for target in targets() {
            for info in BUNDLES.iter().filter(|b| b.generations.holds(target.generation)) {
                let inst = random_inst(info, target, &mut rng);
                let back = decode(&inst.encode(target), target);
                assert_eq!(back.inst, inst, "{target}");
                assert!(back.residue.is_zero());
            }
        }
    }
}

#[test]
fn opcodes_belong_to_their_generations() {
    // Opcode, generations that have it.
    let table: [(u8, [bool; 3]); 8] = [
        (0x01, [true, true, true]),
        (0x02, [true, true, true]),
        (0x06, [false, true, false]),
        (0x07, [false, true, false]),
        (0x09, [false, false, true]),
        (0x0A, [false, false, true]),
        (0xE3, [false, false, true]),
        (0x03, [false, false, false]),
    ];
    for (opcode, have) in table {
        for (target, has) in Target::ALL.into_iter().zip(have) {
            let mut word = Word::ZERO;
            word.0[0] = opcode;
            assert_eq!(!matches!(decode(&word, target).inst, Inst::Raw(_)), has, "{opcode:02x} {target}");
        }
    }
}

/// Byte positions, one at a time, from the layout rules: each struct member set alone must show at
/// its offset and nowhere else.
#[test]
fn members_land_on_their_bytes() {
    let header = |opcode: u8| {
        let mut w = [0u8; 64];
        w[0] = opcode;
        w[1] = 0x10;
        w
    };
    let none = Pattern::<3> { start: Addr4(0), strides: [0; 3], counts: [0; 3] };
    let load = LoadStationary { weights: none, ..Default::default() };
    let check = |got: Word, opcode: u8, want: &[(usize, u8)], what: &str| {
        let mut bytes = header(opcode);
        for &(at, value) in want {
            bytes[at] = value;
        }
        assert_eq!(got, Word(bytes), "{what}");
    };
    let (t1, t2, t3) = (Target::TRN1, Target::TRN2, Target::TRN3);
    check(LoadStationary { transpose: 1, ..load }.encode(t1), 1, &[(0x13, 0x80)], "gen2 transpose");
    check(LoadStationary { transpose: 2, ..load }.encode(t2), 1, &[(0x0C, 2)], "gen3 transpose");
    let start = Pattern { start: Addr4(0x0123_4567), ..none };
    check(
        LoadStationary { transpose: 1, weights: start, ..load }.encode(t1),
        1,
        &[(0x10, 0x67), (0x11, 0x45), (0x12, 0x23), (0x13, 0x81)],
        "gen2 transpose keeps address bit 24",
    );
    check(LoadStationary { perf_mode: 4, ..load }.encode(t3), 1, &[(0x23, 4)], "perf mode");
    check(
        LoadStationary { replication: [5, 6], ..load }.encode(t1),
        1,
        &[(0x24, 5), (0x25, 6)],
        "replication",
    );
    check(LoadStationary { replication: [5, 6], xbus: 9, ..load }.encode(t2), 1, &[], "gen3 has neither");
    check(
        LoadStationary { rows: 3, active_cols: 4, ..load }.encode(t2),
        1,
        &[(0x26, 3), (0x27, 4)],
        "rows, cols",
    );
    check(
        LoadStationary { row_group: 3, col_group: 4, xbus: 16, ..load }.encode(t1),
        1,
        &[(0x2C, 3), (0x2D, 4), (0x2E, 16)],
        "groups",
    );

    let mm = Matmul { moving: none, dst: none, ..Default::default() };
    check(
        Matmul { moving_tag: 6, perf_variant: 2, dst_tag: 10, ..mm }.encode(t2),
        2,
        &[(0x20, 6), (0x21, 2), (0x23, 10)],
        "tags",
    );
    let flags = Matmul { accumulate: 3, row_group: 15, col_group: 12, psum_zero_region: 1, ..mm };
    check(flags.encode(t3), 2, &[(0x2B, 3), (0x2C, 15), (0x2D, 12), (0x2F, 1)], "level 40 writes the flags");
    let high = Target { generation: Gen::Gen4, level: 41 };
    check(flags.encode(high), 2, &[(0x2F, 1)], "above level 40 the flags are not fields");
    let dims = Pattern { start: Addr4(1), strides: [2, -3, 4], counts: [5, 6, 0x0708] };
    let mut want = vec![(0x30, 1), (0x34, 2), (0x36, 0xFD), (0x37, 0xFF), (0x38, 4)];
    want.extend([(0x3A, 5), (0x3C, 6), (0x3E, 8), (0x3F, 7)]);
    check(Matmul { dst: dims, ..mm }.encode(t1), 2, &want, "destination");

    let none4 = Pattern::<4> { start: Addr4(0), strides: [0; 4], counts: [0; 4] };
    let sparse = MatmultSparse { moving: none4, dst: none, ..Default::default() };
    let four = Pattern { start: Addr4(1), strides: [2, 3, 4, 5], counts: [6, 7, 8, 9] };
    let mut want = vec![(0x10, 1)];
    want.extend((0..8).map(|i| (0x14 + 2 * i, u8::try_from(i + 2).unwrap())));
    check(MatmultSparse { moving: four, ..sparse }.encode(t2), 7, &want, "four dimensions");
    check(
        MatmultSparse {
            moving_tag: 6,
            dst_tag: 10,
            rows: 1,
            active_cols: 2,
            pass: 2,
            row_group: 3,
            col_group: 15,
            ..sparse
        }
        .encode(t2),
        7,
        &[(0x24, 6), (0x25, 10), (0x26, 1), (0x27, 2), (0x2B, 2), (0x2C, 3), (0x2D, 15)],
        "sparse matmul bytes",
    );
    check(
        LoadTagsSparse {
            tags: none,
            tags_tag: 4,
            col_grp: 8,
            rows: 1,
            active_cols: 2,
            row_group: 12,
            aux: 15,
        }
        .encode(t2),
        6,
        &[(0x20, 4), (0x21, 8), (0x26, 1), (0x27, 2), (0x2C, 12), (0x2D, 15)],
        "tags bytes",
    );
    let mx = MxPattern::new(Addr4(0x0403_0201), Addr4(0x0807_0605), 0x0A09, 0xFF, 12);
    let mut want: Vec<(usize, u8)> = (0..10).map(|i| (0x10 + i, u8::try_from(i + 1).unwrap())).collect();
    want.extend([(0x1A, 0xFF), (0x1B, 12), (0x20, 0x10), (0x26, 1), (0x27, 2), (0x2C, 3), (0x2D, 15)]);
    let load =
        LdWeightMx { weights: mx, weights_tag: 0x10, rows: 1, active_cols: 2, row_group: 3, col_group: 15 };
    check(load.encode(t3), 9, &want, "MX load");
    let mm = MatmultMx { dst: none, dst_tag: 6, accumulate: 4, psum_zero_region: 2, ..Default::default() };
    check(mm.encode(t3), 10, &[(0x28, 6), (0x2B, 4), (0x2F, 2)], "MX matmul bytes");
    let q = QuantizeMx {
        saturate: 1,
        src: none,
        src_tag: 6,
        src_partitions: 96,
        data_tag: 15,
        out: MxPattern::default(),
    };
    check(q.encode(t3), 0xE3, &[(1, 0x11), (0x20, 6), (0x21, 96), (0x28, 15)], "quantize bytes");
}

#[test]
fn gather_forms_share_the_bytes() {
    let form =
        IndirectPattern::<3> { data: Addr4(0x0004_0010), index: Addr4(0x0008_0020), counts: [2, 3, 4] };
    let pattern = form.to_pattern().unwrap();
    assert_eq!(pattern.start, Addr4(0x2004_0010));
    assert_eq!(pattern.start.place(), Place::Indirect(Addr4(0x0004_0010)));
    let word = Matmul { moving: pattern, ..Default::default() }.encode(Target::TRN2);
    assert_eq!(word.0[0x10..0x20], [0x10, 0, 4, 0x20, 0x20, 0, 8, 0, 2, 0, 3, 0, 4, 0, 0, 0]);
    assert_eq!(pattern.as_indirect(), Some(form));
    let form = MxIndirect {
        indices: Addr4(0x40),
        data: Addr4(0x80),
        scale: Addr4(0xC0),
        k: 64,
        step: 1,
        scale_partition: 4,
    };
    let bytes = form.to_pattern().to_bytes();
    assert_eq!(bytes, [0x40, 0, 0, 0x20, 0x80, 0, 0, 0, 0xC0, 0, 0, 0, 64, 0, 1, 4]);
    assert_eq!(form.to_pattern().as_indirect(), Some(form));
    assert_eq!(MxPattern::from_bytes(bytes), form.to_pattern());
}

#[test]
fn levels_choose_the_layout() {
    assert_eq!(Layout::of(Target::TRN1), Layout::Gen2);
    assert_eq!(Layout::of(Target::TRN3), Layout::Gen34);
    assert_eq!(Layout::of("level:41".parse().unwrap()), Layout::Above40);
    assert_eq!(LoadStationary::INFO.name, "LoadStationary");
}

/// Golden operands typed by hand from the programs' own numbers.
#[test]
fn golden_fields_are_the_programs_operands() {
    let inst = |name: &str, at: usize, target: Target| decode(&golden(name)[at], target).inst;
    let p3 = |start, dims: &[(i16, u16)]| Pattern::<3>::new(start, dims).unwrap();
    // w at byte 4608, 128 columns of bfloat16; x at 512; o in bank 1; 128 rows; one matmul alone.
    assert_eq!(
        inst("dense_bf16.trn1", 0, Target::TRN1),
        LoadStationary {
            weights: p3(Addr4::sbuf(0, 4608), &[(1, 128)]),
            weights_tag: 6,
            rows: 128,
            active_cols: 128,
            row_group: 15,
            col_group: 15,
            xbus: 0x10,
            ..Default::default()
        }
        .into()
    );
    assert_eq!(
        inst("dense_bf16.trn3", 1, Target::TRN3),
        Matmul {
            moving: p3(Addr4::sbuf(0, 512), &[(1, 512)]),
            moving_tag: 6,
            dst_tag: 0x0A,
            rows: 128,
            active_cols: 128,
            accumulate: START | STOP,
            row_group: 15,
            col_group: 15,
            dst: p3(Addr4::psum(0, 1, 0), &[(1, 512)]),
            ..Default::default()
        }
        .into()
    );
    // fp8 pairs: [128, 2] then [1, 128]; 256 weights a partition are 128 columns.
    let Inst::LoadStationary(load) = inst("double_row.trn2", 0, Target::TRN2) else { unreachable!() };
    assert_eq!(load.weights, p3(Addr4::sbuf(0, 0), &[(128, 2), (1, 128)]));
    assert_eq!((load.weights_tag, load.perf_variant, load.perf_mode), (0x0E, 2, PerfMode::DoubleRow.code()));
    assert_eq!((load.rows, load.active_cols), (128, 128));
    // float32: two identical loads; alone is 1 then 6; 64 rows and 32 columns.
    let two = golden("fp32_two_pass.trn2");
    assert_eq!(two[0], two[2]);
    for (at, accumulate) in [(1, START), (3, STOP | ACCUMULATE)] {
        let Inst::Matmul(mm) = inst("fp32_two_pass.trn2", at, Target::TRN2) else { unreachable!() };
        assert_eq!((mm.accumulate, mm.perf_variant, mm.moving_tag), (accumulate, 0x80, 0x0A));
        assert_eq!((mm.rows, mm.active_cols, mm.row_group, mm.col_group), (64, 32, 3, 1));
    }
    // src at 0, x at 4096 with scales at 6144 offset 4, w at 6656 with scales at 7168, o in bank 3.
    assert_eq!(
        inst("quantize_matmul_mx.trn3", 0, Target::TRN3),
        QuantizeMx {
            saturate: 1,
            src: p3(Addr4::sbuf(0, 0), &[(1, 2048)]),
            src_tag: 6,
            src_partitions: 128,
            data_tag: 0x0F,
            out: MxPattern::new(Addr4::sbuf(0, 4096), Addr4::mx_scale(4, 6144), 2048, 1, 4),
        }
        .into()
    );
    assert_eq!(
        inst("quantize_matmul_mx.trn3", 1, Target::TRN3),
        LdWeightMx {
            weights: MxPattern::new(Addr4::sbuf(0, 6656), Addr4::mx_scale(0, 7168), 512, 1, 0),
            weights_tag: 0x10,
            rows: 128,
            active_cols: 128,
            row_group: 15,
            col_group: 15,
        }
        .into()
    );
    assert_eq!(
        inst("quantize_matmul_mx.trn3", 2, Target::TRN3),
        MatmultMx {
            moving: MxPattern::new(Addr4::sbuf(0, 4096), Addr4::mx_scale(4, 6144), 2048, 1, 4),
            moving_tag: 0x0F,
            rows: 128,
            active_cols: 128,
            dst_tag: 0x0A,
            accumulate: START | STOP,
            row_group: 15,
            col_group: 15,
            psum_zero_region: 0,
            dst: p3(Addr4::psum(0, 3, 0), &[(1, 512)]),
        }
        .into()
    );
    // Tags at 8192; ratio 1, 2, 4 give densities of 128, 64, 32 rows.
    for (name, group) in [("sparse_1.trn2", 15), ("sparse_2.trn2", 3), ("sparse_4.trn2", 1)] {
        let Inst::LoadTagsSparse(tags) = inst(name, 0, Target::TRN2) else { unreachable!() };
        assert_eq!(tags.tags, p3(Addr4::sbuf(0, 8192), &[(1, 32)]), "{name}");
        assert_eq!((tags.tags_tag, tags.row_group, tags.aux), (4, group, 15));
        assert_eq!(Some(tags.col_grp), sparse_col_grp(group));
    }
    let Inst::MatmultSparse(mm) = inst("sparse_2.trn2", 2, Target::TRN2) else { unreachable!() };
    assert_eq!(mm.moving, Pattern::<4>::new(Addr4::sbuf(0, 256), &[(256, 2), (1, 256)]).unwrap());
    assert_eq!((mm.moving_tag, mm.dst_tag, mm.pass, mm.row_group), (6, 0x0A, 0, 3));
    assert_eq!(mm.dst, p3(Addr4::psum(0, 4, 0), &[(1, 256)]));
}

/// A million random words for each target; run with `--release -- --ignored`.
#[test]
#[ignore = "long: a million words a target"]
fn a_million_random_words_round_trip() {
    let mut rng = Rng(99);
    for _ in 0..1_000_000 {
        let mut word = rng.word();
        if rng.below(4) != 0 {
            word.0[0] = BUNDLES[rng.below(BUNDLES.len())].opcode;
        }
        for target in targets() {
            round_trips(&word, target);
        }
    }
}
