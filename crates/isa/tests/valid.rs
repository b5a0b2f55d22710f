//! Descriptor validators and bundle checks: for each condition a value that is accepted and one
//! that is rejected.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Rng, golden, goldens};
use hadal_isa::valid::*;
use hadal_isa::*;

const SOURCE: Role = Role::SOURCE;
const DST: Role = Role::DESTINATION;
const T1: Target = Target::TRN1;
const T2: Target = Target::TRN2;
const T3: Target = Target::TRN3;

/// 16 bytes: start, strides 1, counts.
fn bytes3(start: u32, counts: [u16; 3]) -> [u8; 16] {
    let mut b = [0u8; 16];
    b[..4].copy_from_slice(&start.to_le_bytes());
    for i in 0..3 {
        b[4 + 2 * i] = 1;
        b[10 + 2 * i..12 + 2 * i].copy_from_slice(&counts[i].to_le_bytes());
    }
    b
}

/// 16 bytes of a gather: base, index, count words at 8.
fn gather3(base: u32, index: u32, words: [u16; 4]) -> [u8; 16] {
    let mut b = [0u8; 16];
    b[..4].copy_from_slice(&base.to_le_bytes());
    b[4..8].copy_from_slice(&index.to_le_bytes());
    for i in 0..4 {
        b[8 + 2 * i..10 + 2 * i].copy_from_slice(&words[i].to_le_bytes());
    }
    b
}

fn kind<T: std::fmt::Debug>(result: Result<T, Fault>) -> FaultKind {
    result.unwrap_err().kind
}

#[test]
fn start_addresses() {
    let both = Role { write: false, psum: true, sbuf: true };
    let none = Role { write: false, psum: false, sbuf: false };
    // Address, tag, role, valid.
    let cases: &[(u32, u8, Role, bool)] = &[
        // Register mode: id below 0x40.
        (0x8000_003F, 6, SOURCE, true),
        (0x8000_0040, 6, SOURCE, false),
        (0x8000_003F, 6, none, true),
        // Bit 31 with the gather marker is not register mode, and invalid.
        (0xA000_0000, 6, SOURCE, false),
        // Alignment: 1, 2 and 4 bytes.
        (0x0000_0001, 3, SOURCE, true),
        (0x0000_0002, 6, SOURCE, true),
        (0x0000_0001, 6, SOURCE, false),
        (0x0000_0004, 0x0A, SOURCE, true),
        (0x0000_0002, 0x0A, SOURCE, false),
        (0x0000_0001, 0x0E, SOURCE, true),
        // Windows: the last SBUF byte, the first and last of PSUM, the first after it.
        (0x01FF_FFFF, 3, SOURCE, true),
        (0x0200_0000, 3, SOURCE, false),
        (0x0200_0000, 3, DST, true),
        (0x023F_FFFF, 3, DST, true),
        (0x0240_0000, 3, DST, false),
        (0x0240_0000, 3, both, false),
        (0x0000_0000, 3, DST, false),
        (0x0000_0000, 3, both, true),
        (0x0200_0000, 3, both, true),
        // Bit 28 leaves both windows.
        (0x1000_0000, 3, both, false),
        (0x1200_0000, 3, both, false),
    ];
    for &(address, tag, role, valid) in cases {
        assert_eq!(tensor_start_addr_valid(Addr4(address), tag, role), valid, "{address:#x} {tag} {role:?}");
    }
    for (address, tag, aligned) in [
        (4, 9, true),
        (2, 9, false),
        (2, 7, true),
        (1, 7, false),
        (1, 15, true),
        (2, 0x10, true),
        (1, 0x10, false),
    ] {
        assert_eq!(addr_aligned_dtype(address, tag), aligned, "{address} {tag}");
    }
}

#[test]
fn static_patterns() {
    assert_eq!(mem3d_valid(&bytes3(0x40, [1, 1, 1]), 6, SOURCE), Ok(()));
    assert_eq!(kind(mem3d_valid(&bytes3(0x41, [1, 1, 1]), 6, SOURCE)), FaultKind::Unaligned(2));
    assert_eq!(kind(mem3d_valid(&bytes3(0x0200_0000, [1; 3]), 6, SOURCE)), FaultKind::NotInSbuf);
    assert_eq!(kind(mem3d_valid(&bytes3(0x40, [1; 3]), 9, DST)), FaultKind::NotInPsum);
    assert_eq!(kind(mem3d_valid(&bytes3(0x0300_0000, [1; 3]), 9, DST)), FaultKind::Nowhere);
    // Bits 30, 29, 28 = 100 is rejected although the 29-bit address is fine.
    assert_eq!(kind(mem3d_valid(&bytes3(0x4000_0040, [1; 3]), 6, SOURCE)), FaultKind::SubRegion);
    // Bits 30 and 29 together are not the gather form: a static pattern.
    assert_eq!(mem3d_valid(&bytes3(0x6000_0040, [1; 3]), 6, SOURCE), Ok(()));
    // Each count.
    for i in 0..3 {
        let mut counts = [1; 3];
        counts[i] = 0;
        let fault = mem3d_valid(&bytes3(0x40, counts), 6, SOURCE).unwrap_err();
        assert_eq!((fault.kind, fault.offset), (FaultKind::ZeroCount, 0xA + 2 * i));
    }
    assert_eq!(mem3d_valid(&bytes3(0x8000_0005, [1; 3]), 6, SOURCE), Ok(()));
    assert_eq!(kind(mem3d_valid(&bytes3(0x8000_0055, [1; 3]), 6, SOURCE)), FaultKind::RegisterId);
    assert_eq!(kind(mem3d_valid(&bytes3(0x40, [1; 3])[..15], 6, SOURCE)), FaultKind::Size(16));
    assert_eq!(
        mem3d_valid(&[0; 12], 6, SOURCE).unwrap_err().to_string(),
        "mem pattern must have 16 bytes to encode (byte 0 of the descriptor, value 0xc)"
    );
}

#[test]
fn other_dimension_counts() {
    type Check = fn(&[u8], u8, Role) -> Result<(), Fault>;
    // Validator, bytes, offsets of its counts.
    let forms: [(Check, usize, &[usize]); 3] =
        [(mem1d_valid, 8, &[6]), (mem2d_valid, 12, &[8, 0xA]), (mem4d_valid, 20, &[0xC, 0xE, 0x10, 0x12])];
    for (check, size, counts) in forms {
        let mut good = vec![0u8; size];
        good[0] = 0x40;
        for &at in counts {
            good[at] = 1;
        }
        assert_eq!(check(&good, 6, SOURCE), Ok(()), "{size}");
        for &at in counts {
            let mut bad = good.clone();
            bad[at] = 0;
            let fault = check(&bad, 6, SOURCE).unwrap_err();
            assert_eq!((fault.kind, fault.offset), (FaultKind::ZeroCount, at));
        }
        let mut bad = good.clone();
        bad[0] = 0x41;
        assert_eq!(kind(check(&bad, 6, SOURCE)), FaultKind::Unaligned(2));
        bad = good.clone();
        bad[3] = 0x40;
        assert_eq!(kind(check(&bad, 6, SOURCE)), FaultKind::SubRegion);
        bad.push(0);
        assert_eq!(kind(check(&bad, 6, SOURCE)), FaultKind::Size(size));
    }
}

#[test]
fn gather_patterns() {
    let good = gather3(0x2200_0010, 0x80, [4, 1, 1, 0]);
    assert_eq!(mem3d_valid(&good, 6, SOURCE), Ok(()));
    assert_eq!(
        kind(mem3d_valid(&gather3(0x2200_0010, 0x80, [0, 1, 1, 0]), 6, SOURCE)),
        FaultKind::MissingField
    );
    // The base is a 4-byte PSUM word whatever the type and role.
    assert_eq!(kind(mem3d_valid(&gather3(0x2200_0012, 0x80, [4; 4]), 6, SOURCE)), FaultKind::IndirectField);
    assert_eq!(kind(mem3d_valid(&gather3(0x2000_0010, 0x80, [4; 4]), 6, SOURCE)), FaultKind::IndirectField);
    // Byte 7: the top three bits, one by one.
    for bit in 29..32 {
        let fault = mem3d_valid(&gather3(0x2200_0010, 0x80 | 1 << bit, [4; 4]), 6, SOURCE).unwrap_err();
        assert_eq!((fault.kind, fault.offset), (FaultKind::IndexBits, 4));
    }
    // The index word has the caller's flags.
    assert_eq!(
        kind(mem3d_valid(&gather3(0x2200_0010, 0x0200_0000, [4; 4]), 6, SOURCE)),
        FaultKind::NotInSbuf
    );
    assert_eq!(mem3d_valid(&gather3(0x2200_0010, 0x0200_0000, [4; 4]), 9, DST), Ok(()));
    assert_eq!(kind(mem3d_valid(&gather3(0x2200_0010, 0x81, [4; 4]), 6, SOURCE)), FaultKind::Unaligned(2));
    assert_eq!(
        kind(mem1d_valid(&gather3(0x2200_0010, 0x80, [4; 4])[..8], 6, SOURCE)),
        FaultKind::IndirectField
    );
}

#[test]
fn four_dimensional_destinations_stay_out_of_psum() {
    let mut bytes = [0u8; 20];
    bytes[0] = 0x40;
    assert_eq!(m4d_not_in_psum(&bytes), Ok(()));
    bytes[3] = 0x02;
    assert_eq!(kind(m4d_not_in_psum(&bytes)), FaultKind::InPsum);
    // Gather: the index word decides.
    bytes[3] = 0x22;
    assert_eq!(m4d_not_in_psum(&bytes), Ok(()));
    bytes[7] = 0x02;
    assert_eq!(kind(m4d_not_in_psum(&bytes)), FaultKind::InPsum);
    assert_eq!(kind(m4d_not_in_psum(&bytes[..16])), FaultKind::Size(20));
}

#[test]
fn bf16_or_fp32_destinations() {
    let good = |start| bytes3(start, [1, 1, 1]);
    for tag in 0..=0x12u8 {
        let valid = (4..=11).contains(&tag);
        assert_eq!(mm_dst_mem3d_valid(&good(0x0200_0000), tag).is_ok(), valid, "tag {tag}");
        let gather = gather3(0x2200_0010, 0x0200_0000, [0, 1, 1, 0]);
        assert_eq!(mm_dst_mem3d_valid(&gather, tag).is_ok(), valid, "gather tag {tag}");
    }
    assert_eq!(mm_dst_mem3d_valid(&good(0x0200_0002), 6), Ok(()));
    assert_eq!(kind(mm_dst_mem3d_valid(&good(0x0200_0001), 6)), FaultKind::Unaligned(2));
    assert_eq!(kind(mm_dst_mem3d_valid(&good(0x0200_0002), 10)), FaultKind::Unaligned(4));
    assert_eq!(kind(mm_dst_mem3d_valid(&good(0x01FF_FFFE), 6)), FaultKind::NotInPsum);
    assert_eq!(kind(mm_dst_mem3d_valid(&good(0x0240_0000), 6)), FaultKind::Nowhere);
    assert_eq!(mm_dst_mem3d_valid(&good(0x8000_003F), 6), Ok(()));
    assert_eq!(kind(mm_dst_mem3d_valid(&good(0x8000_0040), 6)), FaultKind::RegisterId);
    assert_eq!(kind(mm_dst_mem3d_valid(&good(0xE000_0000), 6)), FaultKind::TopBit);
    assert_eq!(kind(mm_dst_mem3d_valid(&good(0x4200_0000), 6)), FaultKind::SubRegion);
    assert_eq!(kind(mm_dst_mem3d_valid(&bytes3(0x0200_0000, [1, 0, 1]), 6)), FaultKind::ZeroCount);
    // Gather: word A, byte 7, second word in PSUM.
    let fault = mm_dst_mem3d_valid(&gather3(0x2200_0010, 0x0200_0000, [1, 0, 1, 1]), 6).unwrap_err();
    assert_eq!((fault.kind, fault.offset), (FaultKind::MissingField, 0xA));
    assert_eq!(kind(mm_dst_mem3d_valid(&gather3(0x2200_0010, 0x2200_0000, [1; 4]), 6)), FaultKind::IndexBits);
    assert_eq!(kind(mm_dst_mem3d_valid(&gather3(0x2200_0010, 0x40, [1; 4]), 6)), FaultKind::NotInPsum);
    assert_eq!(kind(mm_dst_mem3d_valid(&[0; 20], 6)), FaultKind::Size(16));
}

#[test]
fn mx_operands() {
    let good = MxPattern::new(Addr4(0x40), Addr4(0x81), 512, 1, 4);
    let check = |m: MxPattern, tag| mxmem1d_valid(&m.to_bytes(), tag, SOURCE);
    assert_eq!(check(good, 0x0E), Ok(()));
    assert_eq!(check(MxPattern { step: 0xFF, ..good }, 0x0E), Ok(()));
    // The container is four bytes, or two for packed FP4.
    assert_eq!(kind(check(MxPattern { data: Addr4(0x42), ..good }, 0x0E)), FaultKind::Unaligned(4));
    assert_eq!(check(MxPattern { data: Addr4(0x42), ..good }, 0x10), Ok(()));
    assert_eq!(kind(check(MxPattern { data: Addr4(0x41), ..good }, 0x10)), FaultKind::Unaligned(2));
    assert_eq!(kind(check(MxPattern { data: Addr4(0x0200_0000), ..good }, 0x0E)), FaultKind::NotInSbuf);
    let scale = check(MxPattern { scale: Addr4(0x0200_0000), ..good }, 0x0E).unwrap_err();
    assert_eq!((scale.kind, scale.offset), (FaultKind::ScaleNotInSbuf, 4));
    assert!(scale.to_string().starts_with("MX Scale Tensor can only be in SB"));
    assert_eq!(kind(check(MxPattern { k: 0, ..good }, 0x0E)), FaultKind::ZeroExtent);
    assert_eq!(check(MxPattern { k: 0x0100, ..good }, 0x0E), Ok(()));
    for step in [0u8, 2, 0x7F, 0xFE] {
        assert_eq!(kind(check(MxPattern { step, ..good }, 0x0E)), FaultKind::Step, "{step}");
    }
    for partition in 0..=255u8 {
        let valid = [0, 4, 8, 12].contains(&partition);
        assert_eq!(
            check(MxPattern { scale_partition: partition, ..good }, 0x0E).is_ok(),
            valid,
            "{partition}"
        );
    }
    // The reserved bytes are never read.
    assert_eq!(check(MxPattern { tail: [9; 4], ..good }, 0x0E), Ok(()));
    // The gather form: every field four bytes on.
    let gather = MxIndirect {
        indices: Addr4(0x11),
        data: Addr4(0x40),
        scale: Addr4(0x81),
        k: 512,
        step: 1,
        scale_partition: 8,
    };
    assert_eq!(check(gather.to_pattern(), 0x0E), Ok(()));
    let faults = [
        (MxIndirect { data: Addr4(0x42), ..gather }, FaultKind::Unaligned(4), 4),
        (MxIndirect { scale: Addr4(0x0200_0000), ..gather }, FaultKind::ScaleNotInSbuf, 8),
        (MxIndirect { k: 0, ..gather }, FaultKind::ZeroExtent, 0xC),
        (MxIndirect { step: 3, ..gather }, FaultKind::Step, 0xE),
        (MxIndirect { scale_partition: 5, ..gather }, FaultKind::ScalePartition, 0xF),
        (MxIndirect { indices: Addr4(0x0200_0000), ..gather }, FaultKind::NotInSbuf, 0),
    ];
    for (form, kind, offset) in faults {
        let fault = check(form.to_pattern(), 0x0E).unwrap_err();
        assert_eq!((fault.kind, fault.offset), (kind, offset));
    }
    assert_eq!(kind(mxmem1d_valid(&[0; 12], 0x0E, SOURCE)), FaultKind::Size(16));
}

#[test]
fn accumulation_flags() {
    let legal: Vec<u8> = (0..=255).filter(|&b| check_accumulation_flag(b)).collect();
    assert_eq!(legal, [0, 1, 2, 3, 4, 6]);
}

#[test]
fn golden_bundles_break_no_rule() {
    for (name, target, words) in goldens() {
        for word in words {
            assert_eq!(check(&word, target), [], "{name}: {word}");
        }
    }
}

/// Changes one golden bundle and expects exactly the codes given, in byte order.
fn broken(name: &str, at: usize, target: Target, changes: &[(usize, u8)], want: &[&str]) {
    let mut word = golden(name)[at];
    for &(byte, value) in changes {
        word.0[byte] = value;
    }
    let found = check(&word, target);
    let codes: Vec<&str> = found.iter().map(|v| v.code).collect();
    assert_eq!(codes, want, "{name} {changes:02x?}: {found:?}");
}

#[test]
fn each_bundle_rule_rejects_a_changed_bundle() {
    let load = |changes: &[(usize, u8)], want: &[&str]| broken("dense_bf16.trn2", 0, T2, changes, want);
    let mm = |changes: &[(usize, u8)], want: &[&str]| broken("dense_bf16.trn2", 1, T2, changes, want);
    let mm1 = |changes: &[(usize, u8)], want: &[&str]| broken("dense_bf16.trn1", 1, T1, changes, want);
    load(&[(0, 0x55)], &["ISA301"]);
    broken("quantize_matmul_mx.trn3", 1, T2, &[], &["ISA301"]);
    load(&[(1, 0x11)], &["ISA302"]);
    load(&[(2, 1)], &["ISA303"]);
    load(&[(0x3F, 1)], &["ISA303"]);
    load(&[(0x22, 1), (0x3F, 1)], &["ISA303", "ISA303"]);
    load(&[(0x2E, 0x10)], &["ISA303"]);
    load(&[(0x20, 0x05)], &["ISA304"]);
    load(&[(0x20, 0x0B)], &["ISA304"]);
    load(&[(0x20, 0x10)], &["ISA304"]);
    mm(&[(0x23, 0x0E)], &["ISA304"]);
    mm(&[(0x2B, 5)], &["ISA305"]);
    mm(&[(0x2B, 7)], &["ISA305"]);
    mm(&[(0x2B, 4)], &[]);
    load(&[(0x2C, 5)], &["ISA306"]);
    load(&[(0x2C, 3)], &["ISA307"]);
    load(&[(0x26, 64), (0x2C, 3)], &[]);
    load(&[(0x26, 65), (0x2C, 3)], &["ISA307"]);
    load(&[(0x2D, 12)], &["ISA307"]);
    load(&[(0x27, 32), (0x2D, 8)], &[]);
    load(&[(0x26, 0)], &["ISA308"]);
    load(&[(0x26, 129)], &["ISA308", "ISA307"]);
    load(&[(0x27, 1)], &[]);
    load(&[(0x13, 0x80), (0x10, 0x3F)], &[]);
    load(&[(0x13, 0x80), (0x10, 0x40)], &["ISA309"]);
    mm(&[(0x33, 0xA0)], &["ISA316"]);
    load(&[(0x13, 0xC0), (0x10, 0x01)], &["ISA314"]);
    load(&[(0x10, 0x01)], &["ISA311"]);
    load(&[(0x13, 0x03)], &["ISA312"]);
    load(&[(0x13, 0x02)], &["ISA313"]);
    mm(&[(0x33, 0x00)], &["ISA313"]);
    load(&[(0x13, 0x40)], &["ISA314"]);
    load(&[(0x1A, 0)], &["ISA315"]);
    load(&[(0x13, 0x20)], &["ISA316"]);
    mm(&[(0x30, 2)], &["ISA311"]);
    // The bf16 form takes two-byte alignment; the rest are aligned to four bytes.
    mm(&[(0x23, 6), (0x30, 2)], &[]);
    mm(&[(0x23, 5), (0x30, 2)], &["ISA311"]);
    load(&[(0x23, 5)], &["ISA325"]);
    load(&[(0x23, 4)], &[]);
    load(&[(0x21, 3)], &["ISA326"]);
    mm(&[(0x2F, 4)], &["ISA334"]);
    mm(&[(0x2F, 3)], &[]);
    load(&[(0x0C, 1)], &["ISA333"]);
    load(&[(0x0C, 2)], &[]);
    mm1(&[(0x2E, 0)], &["ISA329"]);
    mm1(&[(0x24, 7)], &["ISA331"]);
    mm1(&[(0x24, 7), (0x25, 7)], &[]);
    // gen2: bit 31 of a load's start is the transpose flag, of a matmul's register mode.
    broken("dense_bf16.trn1", 0, T1, &[(0x13, 0x80)], &[]);
    broken("dense_bf16.trn1", 0, T1, &[(0x13, 0x80), (0x10, 0x41)], &["ISA311"]);
    mm1(&[(0x10, 0x40), (0x13, 0x80)], &["ISA309"]);
    broken("fp32r.trn2", 1, T2, &[(0x23, 6)], &["ISA332"]);
    broken("fp32r.trn2", 1, T2, &[(0x23, 9)], &[]);

    let tags = |changes: &[(usize, u8)], want: &[&str]| broken("sparse_2.trn2", 0, T2, changes, want);
    tags(&[(0x20, 5)], &[]);
    tags(&[(0x20, 6)], &["ISA304"]);
    tags(&[(0x2D, 3)], &["ISA329"]);
    tags(&[(0x21, 4)], &["ISA327"]);
    tags(&[(0x21, 4), (0x2C, 2)], &[]);
    tags(&[(0x21, 8), (0x2C, 12)], &[]);
    tags(&[(0x21, 12), (0x2C, 8)], &[]);
    tags(&[(0x2C, 5)], &["ISA327", "ISA306"]);
    let sparse = |changes: &[(usize, u8)], want: &[&str]| broken("sparse_2.trn2", 2, T2, changes, want);
    sparse(&[(0x2B, 2)], &[]);
    sparse(&[(0x2B, 3)], &["ISA330"]);
    sparse(&[(0x24, 8)], &["ISA304"]);
    sparse(&[(0x2D, 3)], &["ISA307"]);
    sparse(&[(0x1E, 0), (0x1F, 0)], &["ISA315"]);
    sparse(&[(0x2C, 0)], &["ISA306", "ISA327"]);

    let mx = |at: usize, changes: &[(usize, u8)], want: &[&str]| {
        broken("quantize_matmul_mx.trn3", at, T3, changes, want)
    };
    mx(0, &[(1, 0x10)], &[]);
    mx(0, &[(1, 0x12)], &["ISA302"]);
    mx(0, &[(0x20, 7)], &[]);
    mx(0, &[(0x20, 10)], &["ISA304"]);
    mx(0, &[(0x21, 96)], &[]);
    mx(0, &[(0x21, 48)], &["ISA328"]);
    mx(0, &[(0x28, 4)], &["ISA324"]);
    mx(0, &[(0x33, 2)], &["ISA313"]);
    mx(1, &[(0x1C, 1)], &["ISA303"]);
    mx(1, &[(0x2D, 3)], &["ISA307", "ISA329"]);
    mx(1, &[(0x17, 2)], &["ISA319"]);
    mx(1, &[(0x18, 0), (0x19, 0)], &["ISA320"]);
    mx(1, &[(0x1A, 0)], &["ISA321"]);
    mx(1, &[(0x1B, 1)], &["ISA322"]);
    mx(2, &[(0x2B, 5)], &["ISA305"]);
    mx(2, &[(0x28, 6), (0x30, 2)], &[]);
    mx(2, &[(0x28, 10), (0x30, 2)], &["ISA311"]);
    mx(2, &[(0x23, 10)], &["ISA303"]);
}

#[test]
fn above_level_40_dense_flag_bytes_must_be_zero() {
    let high: Target = "level:41".parse().unwrap();
    let mut word = golden("dense_bf16.trn3")[1];
    let codes = |w: &Word| check(w, high).iter().map(|v| (v.code, v.offset)).collect::<Vec<_>>();
    assert_eq!(codes(&word), [("ISA303", 0x2B), ("ISA303", 0x2C), ("ISA303", 0x2D)]);
    for at in 0x2B..0x2E {
        word.0[at] = 0;
    }
    assert_eq!(codes(&word), []);
    // The load keeps its groups.
    assert_eq!(codes(&golden("dense_bf16.trn3")[0]), []);
}

#[test]
fn messages_are_pinned() {
    let text = |name: &str, at: usize, target: Target, byte: usize, value: u8| {
        let mut word = golden(name)[at];
        word.0[byte] = value;
        check(&word, target).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        text("dense_bf16.trn2", 0, T2, 0x2C, 3),
        "ISA307: byte 2c (row_group) is 0x03: the group covers 64 lanes, and rows is 128; widen the group"
    );
    assert_eq!(
        text("dense_bf16.trn2", 0, T2, 0x23, 9),
        "ISA325: byte 23 (perf_mode) is 0x09: Unknown MatmultPerfMode; modes are 0 to 4"
    );
    assert_eq!(
        text("dense_bf16.trn2", 0, T2, 0x20, 4),
        "ISA304: byte 20 (weights_tag) is 0x04: int16 is not a type that weights can have here; legal tags are [03, 06, 07, 0a, 0d, 0e, 0f]"
    );
    assert!(
        text("dense_bf16.trn2", 0, T2, 0x13, 0x20).contains("static tensor pattern but has indirect field")
    );
    assert!(text("dense_bf16.trn2", 0, T2, 0x13, 0x03).contains("must be SB or PSUM"));
    assert!(
        text("quantize_matmul_mx.trn3", 0, T3, 0x28, 5)
            .contains("MX dtype must be packed with 4 elements into 1")
    );
}

#[test]
fn checks_take_any_word() {
    let mut rng = Rng(23);
    for _ in 0..50_000 {
        let mut word = rng.word();
        word.0[0] = [1, 2, 6, 7, 9, 10, 0xE3][rng.below(7)];
        for target in Target::ALL {
            let mut last = 0;
            for violation in check(&word, target) {
                assert!(violation.offset >= last && violation.offset < 64);
                last = violation.offset;
            }
        }
    }
}
