//! Files that must be refused, with the exact text.

use super::{bytes, names};
use crate::klr::ast::File;
use crate::klr::error::{DIALECTS, KlrError};
use crate::klr::is_klr;

fn refusal(bytes: &[u8]) -> KlrError {
    match File::parse(bytes) {
        Ok(_) => panic!("accepted"),
        Err(error) => error,
    }
}

#[test]
fn refused_files_say_what_they_are() {
    // Byte 31 holds the head of the first TensorName: 7 header, 8 metadata, 4 contents, 4 kernel, 7 name, 1 list.
    let july = format!(
        "KLR-004: unknown dialect: found tag 114 (TensorName) constructor 0 with 7 fields (a kernel of July 2025) \
         at byte 31 (0x1f), Kernel.inputs, expected TensorName with 8 fields; {DIALECTS}; recompile the kernel \
         with a current KLR"
    );
    let tree = |number: u8, kind: &str| {
        format!(
            "KLR-003: contents {number} ({kind}) at byte 15 (0xf) hold no operators; {DIALECTS}; compile the kernel \
             with the KLR compiler first"
        )
    };
    let text = |found: &str| {
        format!(
            "KLR-001: not a KLR file: {found}; expected the header bytes d9 d9 f7 83 at byte 0; write the kernel in \
             the binary form (contents 2 or 3)"
        )
    };
    let cases = [
        ("refuse/july2025_kernel_a.klr", july.clone()),
        ("refuse/july2025_kernel_b.klr", july),
        ("refuse/nki_ast.klr", tree(1, "an NKI syntax tree")),
        ("refuse/python_ast.klr", tree(0, "a Python syntax tree")),
        ("refuse/traced_json_text.klr", text("JSON text")),
        ("refuse/traced_repr_text.klr", text("the printed form of a kernel (text)")),
    ];
    assert_eq!(names("refuse", ".klr"), cases.each_ref().map(|(name, _)| (*name).to_owned()));
    for (name, expected) in cases {
        let bytes = bytes(name);
        let error = refusal(&bytes);
        assert_eq!(error.to_string(), expected, "{name}");
        assert!(expected.starts_with(error.code()), "{name}");
        assert_eq!(is_klr(&bytes), error.code() != "KLR-001", "{name}");
    }
}

/// The small file with its bytes changed, as its annotated listing places them.
fn changed(changes: &[(usize, u8)]) -> Vec<u8> {
    let mut file = bytes("accept/tiny_mm.klr");
    for (offset, byte) in changes {
        file[*offset] = *byte;
    }
    file
}

#[test]
fn each_kind_of_damage_has_its_code_and_offset() {
    let small = bytes("accept/tiny_mm.klr");
    let longer = [small.as_slice(), &[0]].concat();
    let cases: [(&str, Vec<u8>, usize, &str); 14] = [
        ("KLR-001", Vec::new(), 0, "the file is empty"),
        ("KLR-001", vec![0xd9, 0xd9], 0, "only 2 bytes"),
        ("KLR-001", vec![0x7f, b'E', b'L', b'F', 2], 0, "the first bytes are 7f 45 4c 46"),
        ("KLR-003", changed(&[(0x11, 4)]), 15, "contents 4 (an HLO call site)"),
        ("KLR-003", changed(&[(0x11, 2)]), 15, "contents 2 (an HLO call site of an earlier dialect)"),
        ("KLR-003", changed(&[(0x11, 9)]), 15, "contents 9 (unknown)"),
        ("KLR-004", changed(&[(0x2a, 0xdb)]), 0x29, "tag 219 (unknown) constructor 21 with 1 fields"),
        ("KLR-004", changed(&[(0x2b, 76)]), 0x29, "expected Operator (tag 218) with constructor 0 to 75"),
        ("KLR-004", changed(&[(0x30, 0x88)]), 0x2d, "expected NcMatMul with 9 fields"),
        ("KLR-004", changed(&[(0x20, 0x81)]), 0x1d, "expected Block with 2 or 3 fields"),
        ("KLR-005", changed(&[(0x23, 0x00)]), 0x23, "found an unsigned integer (byte 00)"),
        ("KLR-007", changed(&[(0x42, 0xff)]), 0x41, "TensorName.name is not UTF-8 from its byte 0 on"),
        ("KLR-009", longer, small.len(), "1 bytes follow the contents"),
        ("KLR-010", changed(&[(0x24, 0x99), (0x25, 1), (0x26, 0x31)]), 0x24, "list of 305 values"),
    ];
    for (code, file, offset, part) in cases {
        let error = refusal(&file);
        let text = error.to_string();
        assert_eq!((error.code(), error.offset()), (code, offset), "{text}");
        assert!(text.contains(part), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn integers_out_of_range_are_named() {
    // A step of -2^64, the least CBOR integer, in the place of the first step (byte 0x6d).
    let small = bytes("accept/tiny_mm.klr");
    let file = [&small[..0x6d], &[0x3b, 255, 255, 255, 255, 255, 255, 255, 255], &small[0x6e..]].concat();
    let error = refusal(&file);
    assert_eq!((error.code(), error.offset()), ("KLR-006", 0x6d));
    assert!(error.to_string().contains("integer -1 - 18446744073709551615 at byte 109 (0x6d), APPair.step"));
    // -2^63 still fits.
    let file = [&small[..0x6d], &[0x3b, 127, 255, 255, 255, 255, 255, 255, 255], &small[0x6e..]].concat();
    let step = File::parse(&file).unwrap().to_json();
    assert!(step.to_string().contains("\"step\":-9223372036854775808"));
}
