//! Assembly text: exact text of known words, round trips of all words, and each error.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Rng, golden, goldens};
use hadal_isa::table::BUNDLES;
use hadal_isa::text::{
    listing_target, parse, parse_listing, print, print_into, print_listing, print_profile,
};
use hadal_isa::*;

const T1: Target = Target::TRN1;
const T2: Target = Target::TRN2;
const T3: Target = Target::TRN3;

#[test]
fn golden_programs_round_trip_as_listings() {
    for (name, target, words) in goldens() {
        let text = print_listing(&words, target);
        assert_eq!(parse_listing(&text, target).unwrap(), words, "{name}\n{text}");
        assert_eq!(listing_target(&text).unwrap(), Some(target));
        assert!(!text.contains("bytes{") && !text.contains(".word"), "{name}\n{text}");
    }
}

#[test]
fn every_word_has_a_text() {
    let mut rng = Rng(3);
    let targets = [T1, T2, T3, "level:41".parse().unwrap()];
    let mut line = String::new();
    let mut check = |word: Word, target: Target| {
        line.clear();
        print_into(&mut line, &word, target);
        assert_eq!(parse(&line, target), Ok(word), "{target}: {line}");
    };
    for target in targets {
        for info in BUNDLES {
            for bit in 0..512usize {
                let mut bytes = [0u8; 64];
                bytes[0] = info.opcode;
                bytes[bit / 8] ^= 1 << (bit % 8);
                check(Word(bytes), target);
            }
        }
        for _ in 0..20_000 {
            let mut word = rng.word();
            word.0[0] = BUNDLES[rng.below(BUNDLES.len())].opcode;
            // Small bytes reach the readable forms: places, gathers, names.
            for at in 1..64 {
                if rng.below(2) == 0 {
                    word.0[at] &= 1;
                }
            }
            check(word, target);
        }
    }
}

#[test]
fn known_words_have_this_text() {
    let text = |name: &str, at: usize, target| print(&golden(name)[at], target);
    assert_eq!(
        text("dense_bf16.trn1", 0, T1),
        "LoadStationary weights=bfloat16@sbuf[0, 4608][1x128] rows=128 active_cols=128 row_group=0x0f \
         col_group=0x0f xbus=0x10"
    );
    assert_eq!(
        text("dense_bf16.trn2", 1, T2),
        "Matmul moving=bfloat16@sbuf[0, 512][1x512] rows=128 active_cols=128 accumulate=start|stop \
         row_group=0x0f col_group=0x0f dst=float32@psum[0, 1, 0][1x512]"
    );
    assert_eq!(
        text("double_row.trn2", 0, T2),
        "LoadStationary weights=float8_e4m3@sbuf[0, 0][128x2 1x128] perf_variant=0x02 perf_mode=DoubleRow \
         rows=128 active_cols=128 row_group=0x0f col_group=0x0f"
    );
    assert_eq!(
        text("double_row.trn3", 0, T3),
        "LoadStationary weights=float8_e4m3fn@sbuf[0, 0][128x2 1x128] perf_variant=0x02 \
         perf_mode=DoubleRow rows=128 active_cols=128 row_group=0x0f col_group=0x0f"
    );
    assert_eq!(
        text("fp32r.trn2", 1, T2),
        "Matmul moving=float32r@sbuf[0, 384][1x256] perf_variant=0x02 rows=128 active_cols=64 \
         accumulate=start|stop row_group=0x0f col_group=0x0f dst=float32@psum[0, 7, 0][1x256]"
    );
    assert_eq!(
        text("quantize_matmul_mx.trn3", 0, T3),
        "QuantizeMx saturate=1 src=bfloat16@sbuf[0, 0][1x2048] src_partitions=128 \
         out=float8_e5m2_x4@mx[sbuf[0, 4096], sbuf[0, 6144], 4][1x2048]"
    );
    assert_eq!(
        text("quantize_matmul_mx.trn3", 1, T3),
        "LdWeightMx weights=float4_e2m1fn_x4@mx[sbuf[0, 6656], sbuf[0, 7168], 0][1x512] rows=128 \
         active_cols=128 row_group=0x0f col_group=0x0f"
    );
    assert_eq!(
        text("sparse_2.trn2", 2, T2),
        "MatmultSparse moving=bfloat16@sbuf[0, 256][256x2 1x256] rows=128 active_cols=128 row_group=0x03 \
         col_group=0x0f dst=float32@psum[0, 4, 0][1x256]"
    );
}

#[test]
fn golden_double_row_text_matches_its_program() {
    // The program: x at byte 256, [512, 2] then [1, 512]; o in bank 0.
    let mm = print(&golden("double_row.trn2")[1], T2);
    assert!(mm.contains("moving=float8_e4m3@sbuf[0, 256][512x2 1x512]"), "{mm}");
    assert!(mm.contains("dst=float32@psum[0, 0, 0][1x512]"), "{mm}");
}

#[test]
fn profile_style_follows_the_public_syntax() {
    assert_eq!(
        print_profile(&golden("dense_bf16.trn2")[1], T2),
        "Matmul src=bfloat16@0x00000200[1,1,1][1,1,512] dst=fp32@0x02000800[1,1,1][1,1,512] 128*128 \
         acc_flags=3 psum_zero=0"
    );
    assert_eq!(
        print_profile(&golden("quantize_matmul_mx.trn3")[2], T3),
        "MatmultMx src=fp8e5_x4@$MX[0x00001000,0x00001800,4]@[1][2048] dst=fp32@0x02001800[1,1,1][1,1,512] \
         128*128 acc_flags=3 psum_zero=0"
    );
    assert_eq!(
        print_profile(&golden("quantize_matmul_mx.trn3")[0], T3),
        "QuantizeMx src=bfloat16@0x00000000[1,1,1][1,1,2048] dst=fp8e5_x4@$MX[0x00001000,0x00001800,4]@[1][2048]"
    );
    assert_eq!(print_profile(&Word([0x77; 64]), T2), "Unknown opcode=119");
}

#[test]
fn comments_blanks_order_and_spellings_are_free() {
    let words = golden("dense_bf16.trn2");
    let text = "\n  ; a comment\n// another\n.target cayman ; same machine\n\
        LoadStationary row_group=15 col_group=0x0F rows=0x80 active_cols=128 \
        weights = bfloat16 @ sbuf[ 0,4608 ] [ 1 x 128, 1x1 ]   // load\n\n\
        Matmul dst=float32@addr[0x02000800][1x512] moving=tag:6@sbuf[0, 512][1x512 1x1 1x1] rows=128 \
        active_cols=128 accumulate=stop|start row_group=15 col_group=15\n";
    assert_eq!(parse_listing(text, T2).unwrap(), words);
    // float32r sets the variant by itself.
    let line = "LoadStationary weights=float32r@sbuf[0, 0][1x1]";
    assert_eq!(parse(line, T2).unwrap().0[0x20..0x22], [0x0A, 0x02]);
}

#[test]
fn raw_words_and_foreign_bytes_are_kept() {
    let mut word = golden("dense_bf16.trn2")[0];
    word.0[0x3F] = 0xAB;
    word.0[1] = 0x11;
    let text = print(&word, T2);
    assert!(text.ends_with("bytes{01:11 3f:ab}"), "{text}");
    assert_eq!(parse(&text, T2), Ok(word));
    let raw = Word([0x7F; 64]);
    assert_eq!(print(&raw, T2), format!(".word {}", "7f".repeat(64)));
    assert_eq!(parse(&print(&raw, T2), T2), Ok(raw));
    // A gen4 bundle is unknown to gen3.
    let mx = golden("quantize_matmul_mx.trn3")[1];
    assert!(print(&mx, T2).starts_with(".word 0910"));
}

#[test]
fn errors_say_where_and_what() {
    let cases: &[(&str, Target, &str)] = &[
        (
            "Frob x=1",
            T2,
            "1:1: ISA201: \"Frob\" is not an instruction; use one of LoadStationary, Matmul, LoadTagsSparse, MatmultSparse, or .word",
        ),
        (
            "LdWeightMx",
            T2,
            "1:1: ISA202: LdWeightMx is not an instruction of trn2; assemble for a target that has it, or give the bytes with .word",
        ),
        (
            "\nLoadTagsSparse xbus=1",
            T2,
            "2:16: ISA203: LoadTagsSparse has no field \"xbus\" on trn2; its fields are tags, col_grp, rows, active_cols, row_group, aux",
        ),
        ("Matmul rows=1 rows=2", T2, "1:15: ISA204: field \"rows\" is given twice; keep one"),
        (
            "Matmul moving=bfloat16@sbuf[0, 0][1x1]",
            T2,
            "1:39: ISA205: Matmul needs the operand \"dst\"; add dst=type@place[stride x count]",
        ),
        ("Matmul rows 1", T2, "1:13: ISA206: expected '=' after the field's name, found '1'"),
        ("Matmul rows=", T2, "1:13: ISA206: expected a number, found the end of the line"),
        ("Matmul rows=256", T2, "1:13: ISA207: 256 is out of range for a byte; it must be in 0..=255"),
        (
            "Matmul moving=bf16@sbuf[0, 0][1x1]",
            T2,
            "1:15: ISA208: \"bf16\" is not an element type; use a type's name or tag:0xNN",
        ),
        (
            "Matmul moving=float8_e5m2_x4@sbuf[0, 0][1x1]",
            T2,
            "1:15: ISA209: float8_e5m2_x4 has no tag in a dense bundle of trn2; packed types go in the MX bundles, or give tag:0xNN",
        ),
        (
            "Matmul accumulate=begin",
            T2,
            "1:19: ISA210: \"begin\" is not an accumulate flag; use start, stop, accumulate, or a number",
        ),
        (
            "Matmul moving=bfloat16@dram[0]",
            T2,
            "1:24: ISA210: \"dram\" is not a place; use sbuf, psum, reg, addr, or for a whole operand gather, mx, mxgather",
        ),
        (
            "LoadStationary perf_mode=Triple",
            T2,
            "1:26: ISA210: \"Triple\" is not a performance mode; use None, DoubleRow, DoubleColumn, DoublePixel, DoubleRowSwInterleave, or a number",
        ),
        (
            "Matmul moving=bfloat16@sbuf[0, 0][1x1 1x1 1x1 1x1]",
            T2,
            "1:34: ISA211: 4 dimensions do not fit a descriptor with 3; merge dimensions or split the instruction",
        ),
        (".org 5", T2, "1:1: ISA212: \".org\" is not a directive; use .target or .word"),
        (
            ".target trn1",
            T2,
            "1:1: ISA213: the listing is for trn1 and is being assembled for trn2; assemble for trn1, or change the line",
        ),
        (".target trn9", T2, "1:9: ISA214: unknown target \"trn9\"; use trn1, trn2, trn3 or level:N"),
        (".word 00", T2, "1:7: ISA215: a .word has 128 hex digits, this one has 2; give all 64 bytes"),
        (
            "Matmul moving=bfloat16@sbuf[128, 0][1x1]",
            T2,
            "1:29: ISA207: 128 is out of range for an SBUF partition; it must be in 0..=127",
        ),
        (
            "Matmul moving=bfloat16@sbuf[0, 0][40000x1]",
            T2,
            "1:35: ISA207: 40000 is out of range for a stride; it must be in -32768..=32767",
        ),
        (
            "Matmul bytes{40:00}",
            T2,
            "1:14: ISA207: 64 is out of range for a byte's offset; it must be in 0..=63",
        ),
        (
            "Matmul moving=bfloat16@sbuf[0, 0][1x99999999999999999999]",
            T2,
            "1:37: ISA207: 9223372036854775807 is out of range for a count; it must be in 0..=65535",
        ),
        ("QuantizeMx saturate=2", T3, "1:21: ISA207: 2 is out of range for a flag; it must be in 0..=1"),
        ("Matmul é", T2, "1:8: ISA206: expected a field's name, found 'é'"),
    ];
    for (text, target, want) in cases {
        let got = parse_listing(text, *target).unwrap_err().to_string();
        assert_eq!(&got, want, "{text}");
    }
    let digits = format!(".word {}x{}", "0".repeat(9), "0".repeat(118));
    assert_eq!(parse(&digits, T2).unwrap_err().to_string(), "1:16: ISA206: expected a hex digit, found 'x'");
    assert!(parse("; nothing", T2).unwrap_err().to_string().starts_with("1:1: ISA206"));
}
