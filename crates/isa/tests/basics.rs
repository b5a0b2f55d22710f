//! Addresses, targets, tags, groups, performance modes, carriers: tables written by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hadal_isa::*;
use hadal_num::Dtype;

#[test]
fn targets_have_all_their_names() {
    let names: &[(&str, Target)] = &[
        ("trn1", Target::TRN1),
        ("inf2", Target::TRN1),
        ("gen2", Target::TRN1),
        ("sunda", Target::TRN1),
        ("core-v2", Target::TRN1),
        ("trn2", Target::TRN2),
        ("gen3", Target::TRN2),
        ("Cayman", Target::TRN2),
        ("core-v3", Target::TRN2),
        ("TRN3", Target::TRN3),
        ("gen4", Target::TRN3),
        ("mariana", Target::TRN3),
        ("core-v4", Target::TRN3),
        ("level:20", Target::TRN1),
        ("level:30", Target::TRN2),
        ("level:40", Target::TRN3),
        ("level:29", Target { generation: Gen::Gen2, level: 29 }),
        ("level:39", Target { generation: Gen::Gen3, level: 39 }),
        ("level:50", Target { generation: Gen::Gen4, level: 50 }),
    ];
    for (name, target) in names {
        assert_eq!(name.parse(), Ok(*target), "{name}");
        assert_eq!(target.to_string().parse(), Ok(*target));
    }
    for bad in ["", "trn4", "level:", "level:19", "level:-1", "level:99999", "gen 2"] {
        assert!(bad.parse::<Target>().is_err(), "{bad}");
    }
    assert_eq!(Target::ALL.map(|t| t.to_string()), ["trn1", "trn2", "trn3"]);
    assert_eq!("level:41".parse::<Target>().unwrap().to_string(), "level:41");
    assert_eq!(Target::ALL.map(Target::sbuf_bytes_per_partition), [196_608, 229_376, 262_144]);
}

#[test]
fn addresses_are_built_and_read() {
    // Address, word, place.
    let cases = [
        (Addr4::sbuf(0, 0), 0, Place::Sbuf { partition: 0, offset: 0 }),
        (Addr4::sbuf(1, 5), 0x4_0005, Place::Sbuf { partition: 1, offset: 5 }),
        (Addr4::sbuf(127, 0x3_FFFF), 0x01FF_FFFF, Place::Sbuf { partition: 127, offset: 0x3_FFFF }),
        (Addr4::psum(0, 0, 0), 0x0200_0000, Place::Psum { partition: 0, bank: 0, offset: 0 }),
        (Addr4::psum(0, 1, 0), 0x0200_0800, Place::Psum { partition: 0, bank: 1, offset: 0 }),
        (Addr4::psum(1, 0, 4), 0x0200_8004, Place::Psum { partition: 1, bank: 0, offset: 4 }),
        (Addr4::psum(127, 7, 2047), 0x023F_BFFF, Place::Psum { partition: 127, bank: 7, offset: 2047 }),
        (Addr4(0x023F_FFFF), 0x023F_FFFF, Place::Psum { partition: 127, bank: 15, offset: 2047 }),
        (Addr4::register(7), 0x8000_0007, Place::Register(7)),
        (Addr4(0x0240_0000), 0x0240_0000, Place::Outside),
        (Addr4(0x1200_0000), 0x1200_0000, Place::Outside),
        (Addr4(0x4000_0000), 0x4000_0000, Place::Outside),
        (Addr4(0x2000_0040), 0x2000_0040, Place::Indirect(Addr4(0x40))),
        (Addr4(0xA000_0040), 0xA000_0040, Place::Outside),
    ];
    for (address, word, place) in cases {
        assert_eq!((address.0, address.place()), (word, place), "{address:?}");
    }
    // A scale's address is its quadrant's: partitions 32..63 are 0x0080_0000.
    for (partition, base) in [(0, 0), (31, 0), (32, 0x80_0000), (63, 0x80_0000), (127, 0x180_0000)] {
        assert_eq!(Addr4::mx_scale(partition, 0x1800), Addr4(base + 0x1800), "{partition}");
    }
}

#[test]
fn patterns_pad_with_unit_dimensions() {
    let p = Pattern::<3>::new(Addr4(4), &[(512, 2), (1, 512)]).unwrap();
    assert_eq!((p.strides, p.counts), ([512, 1, 1], [2, 512, 1]));
    assert_eq!(p.elements(), 1024);
    assert_eq!(Pattern::<3>::new(Addr4(0), &[(1, 1); 4]), None);
    assert_eq!(
        [Pattern::<1>::BYTES, Pattern::<2>::BYTES, Pattern::<3>::BYTES, Pattern::<4>::BYTES],
        [8, 12, 16, 20]
    );
}

#[test]
fn tags_of_operands() {
    let gens = Gen::ALL;
    for dtype in Dtype::ALL {
        for generation in gens {
            let x4 = [2, 8, 9].contains(&dtype.ordinal());
            assert_eq!(tag(dtype, generation).is_err(), x4 && generation != Gen::Gen2, "{dtype:?}");
        }
    }
    assert_eq!(operand_tag(Dtype::Float32r, Gen::Gen3), Ok(0x0A));
    assert_eq!(operand_tag(Dtype::Bfloat16, Gen::Gen3), Ok(0x06));
    assert_eq!(operand_dtype(0x0A, 0x02, Gen::Gen3), Some(Dtype::Float32r));
    assert_eq!(operand_dtype(0x0A, 0x80, Gen::Gen3), Some(Dtype::Float32));
    assert_eq!(tag_dtype(0x0E, Gen::Gen3), Some(Dtype::Float8E4m3));
    assert_eq!(tag_dtype(0x0E, Gen::Gen4), Some(Dtype::Float8E4m3fn));
    assert_eq!(mx_tag_dtype(0x10), Some(Dtype::Float4E2m1fnX4));
    assert_eq!(mx_tag_dtype(0x0E), Some(Dtype::Float8E4m3fnX4));
    assert_eq!(tag_dtype(0x10, Gen::Gen4), None);
    assert_eq!(tag_dtype(0, Gen::Gen4), None);
    // A tag's type has that tag.
    for code in 1..=0x0F {
        for generation in gens {
            assert_eq!(tag(tag_dtype(code, generation).unwrap(), generation), Ok(code), "{code}");
        }
    }
    for code in 1..=0x10 {
        assert_eq!(mx_tag(mx_tag_dtype(code).unwrap()), code);
    }
    let error = tag(Dtype::Float8E5m2X4, Gen::Gen3).unwrap_err().to_string();
    assert_eq!(
        error,
        "ISA112: float8_e5m2_x4 is packed four to a container and gen3 dense bundles refuse it; use the unpacked type, or the MX bundles on gen4"
    );
}

#[test]
fn groups_follow_the_tables() {
    // Position, size, group.
    let cases = [
        (0, 1, 1),
        (0, 32, 1),
        (32, 32, 2),
        (64, 32, 4),
        (96, 32, 8),
        (0, 33, 3),
        (0, 64, 3),
        (64, 33, 12),
        (64, 64, 12),
        (0, 65, 15),
        (0, 128, 15),
    ];
    for (position, size, group) in cases {
        assert_eq!(row_group(position, size), group, "{position} {size}");
        assert_eq!(col_group(position, size, false), group, "{position} {size}");
        assert_eq!(col_group(position, size, true), 15);
    }
    let codes: Vec<Option<u8>> = (0..16).map(sparse_col_grp).collect();
    let (none, some) = (None, Some::<u8>);
    assert_eq!(
        codes,
        [
            none,
            some(0),
            some(4),
            some(0),
            some(8),
            none,
            none,
            none,
            some(12),
            none,
            none,
            none,
            some(8),
            none,
            none,
            some(0)
        ]
    );
}

#[test]
fn perf_modes_have_names_and_codes() {
    let names = ["None", "DoubleRow", "DoubleColumn", "DoublePixel", "DoubleRowSwInterleave"];
    for (code, name) in names.into_iter().enumerate() {
        let mode: PerfMode = name.parse().unwrap();
        assert_eq!(usize::from(mode.code()), code);
        assert_eq!(PerfMode::from_code(mode.code()), Some(mode));
        assert_eq!(mode.to_string(), name);
    }
    assert_eq!(PerfMode::from_code(5), None);
    assert!("Triple".parse::<PerfMode>().unwrap_err().to_string().contains("Unknown MatmultPerfMode"));
    assert_eq!(PerfMode::ALL.map(PerfMode::scale), [1, 2, 1, 1, 2]);
}

#[test]
fn carriers_report_what_is_wrong() {
    let word = Word(std::array::from_fn(|i| u8::try_from(i).unwrap()));
    assert!(word.to_string().starts_with("000102030405") && word.to_string().ends_with("3e3f"));
    assert_eq!(word.to_string().parse(), Ok(word));
    assert_eq!(word.to_string().to_uppercase().parse(), Ok(word));
    let two = format!("{word}\r\n\n  {word}\n");
    assert_eq!(words_from_hex(&two), Ok(vec![word, word]));
    let bad = format!("{word}\n{}", &word.to_string()[..126]);
    assert_eq!(words_from_hex(&bad), Err(WordError::Length { line: 2, digits: 126 }));
    assert_eq!("0g".parse::<Word>(), Err(WordError::Digit { line: 1, column: 2, found: 'g' }));
    let bytes: Vec<u8> = word.0.iter().chain(&word.0).copied().collect();
    assert_eq!(words_from_bytes(&bytes), Ok(vec![word, word]));
    assert_eq!(words_from_bytes(&bytes[..70]), Err(WordError::Bytes { bytes: 70, over: 6 }));
    assert_eq!(words_from_bytes(&[]), Ok(vec![]));
}
