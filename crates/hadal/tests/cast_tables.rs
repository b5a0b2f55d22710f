//! Every entry of every cast table, through the command. The tables were made by an independent implementation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::{data, hadal, stdout};
use hadal::npy::{self, Kind, Npy};

fn load(path: &Path) -> Npy {
    npy::read(&std::fs::read(path).unwrap()).unwrap()
}

/// The elements as numbers, low byte first.
fn words(array: &Npy) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    array.data.chunks(array.size).map(word).collect()
}

/// Whether a code is a NaN, from the formats' definitions: a full exponent field and a mantissa that is not zero,
/// except that e4m3fn has one NaN a sign and e8m0 one in all.
fn is_nan(format: &str, code: u64) -> bool {
    match format {
        "float8_e3m4" => code & 0x7F > 0x70,
        "float8_e4m3" => code & 0x7F > 0x78,
        "float8_e4m3fn" => code & 0x7F == 0x7F,
        "float8_e5m2" => code & 0x7F > 0x7C,
        "float8_e8m0fnu" => code == 0xFF,
        "bfloat16" => code & 0x7FFF > 0x7F80,
        "float16" => code & 0x7FFF > 0x7C00,
        "float32" | "float32r" => code & 0x7FFF_FFFF > 0x7F80_0000,
        _ => false,
    }
}

fn cast(input: &Path, from: Option<&str>, to: &str, overflow: Option<&str>) -> Npy {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.npy").display().to_string();
    let input = input.display().to_string();
    let mut args = vec!["cast", &input, "--to", to, "-o", &out, "-q"];
    args.extend(from.iter().flat_map(|f| ["--from", f]));
    args.extend(overflow.iter().flat_map(|o| ["--overflow", o]));
    stdout(&hadal(args));
    load(Path::new(&out))
}

fn compare(table: &str, to: &str, want: &Npy, got: &Npy) {
    assert_eq!((got.size, &got.shape), (want.size, &want.shape), "{table}");
    // A float32r is stored as the float32 that it is; its table holds bits.
    let kind = if to == "float32r" { Kind::Float } else { want.kind };
    assert_eq!(got.kind, kind, "{table}");
    for (i, (want, got)) in words(want).into_iter().zip(words(got)).enumerate() {
        let both_nan = is_nan(to, want) && is_nan(to, got);
        assert!(want == got || both_nan, "{table}, entry {i}: {got:X}, expected {want:X}");
    }
}

#[test]
fn every_table_entry() {
    let dir = tempfile::tempdir().unwrap();
    let folder = data().join("casts");
    let put = |name: &str, kind, size: usize, count: u32| {
        let data = (0..count).flat_map(|n| n.to_le_bytes().into_iter().take(size)).collect();
        let path = dir.path().join(name);
        std::fs::write(&path, npy::write(&Npy { kind, size, shape: vec![count as usize], data })).unwrap();
        path
    };
    let codes16 = put("codes16.npy", Kind::Unsigned, 2, 1 << 16);
    let float16 = put("float16.npy", Kind::Float, 2, 1 << 16);
    let codes8 = put("codes8.npy", Kind::Unsigned, 1, 256);
    let codes4 = put("codes4.npy", Kind::Unsigned, 1, 16);
    let probes = folder.join("float32_probe_bits.npy");
    let mut tables = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let table = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let Some((from, rest)) = table.split_once("_to_") else {
            assert_eq!(table, "float32_probe_bits");
            continue;
        };
        tables += 1;
        let (to, overflow) = match (rest.strip_suffix("_ieee"), rest.strip_suffix("_saturate")) {
            (Some(to), _) => (to, Some("ieee")),
            (_, Some(to)) => (to, Some("saturate")),
            _ => (rest, None),
        };
        let want = load(&path);
        // The probes, then the golden float32 values' own bits, are what the other formats narrow from.
        let (input, from) = match from {
            "float32_probe" => (&probes, "float32"),
            "bfloat16" | "float16" => (&codes16, from),
            "float4_e2m1fn" => (&codes4, from),
            _ => (&codes8, from),
        };
        compare(&table, to, &want, &cast(input, Some(from), to, overflow));
        if from == "float16" {
            compare(&table, to, &want, &cast(&float16, None, to, overflow));
        }
        // Formats without infinity or NaN saturate under either rule.
        if to == "float4_e2m1fn" || to.contains("int") {
            compare(&table, to, &want, &cast(input, Some(from), to, Some("ieee")));
            compare(&table, to, &want, &cast(input, Some(from), to, Some("saturate")));
        }
    }
    assert_eq!(tables, 45);
}

#[test]
fn codes_of_four_bits_use_the_low_nibble() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npy");
    // High nibbles are ignored: 0x?7 is 6 and 0x?9 is -0.5.
    let data = vec![0x07, 0xF7, 0x39, 0x01];
    std::fs::write(&path, npy::write(&Npy { kind: Kind::Unsigned, size: 1, shape: vec![4], data })).unwrap();
    let wide = cast(&path, Some("float4_e2m1fn"), "float32", None);
    let want = [6.0f32, 6.0, -0.5, 0.5];
    assert_eq!(wide.data, want.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
}
