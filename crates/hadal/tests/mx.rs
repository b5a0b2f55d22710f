//! `hadal mx` on arrays: golden blocks, known values, errors.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::{code, data, hadal, stderr, stdout};
use hadal::npy::{self, Kind, Npy};
use serde_json::Value;

fn load(path: &Path) -> Npy {
    npy::read(&std::fs::read(path).unwrap()).unwrap()
}

fn save(path: &Path, kind: Kind, size: usize, shape: &[usize], data: Vec<u8>) {
    std::fs::write(path, npy::write(&Npy { kind, size, shape: shape.to_vec(), data })).unwrap();
}

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn as_floats(array: &Npy) -> Vec<f32> {
    assert_eq!((array.kind, array.size), (Kind::Float, 4));
    array.data.as_chunks().0.iter().map(|c| f32::from_le_bytes(*c)).collect()
}

/// A folder and `hadal` with its path for `{dir}`.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Bench(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, line: &str) -> std::process::Output {
        let folder = self.0.path().display().to_string();
        hadal(line.split_whitespace().map(|word| word.replace("{dir}", &folder)))
    }

    fn ok(&self, line: &str) -> String {
        stdout(&self.run(line))
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(line)).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let name = |e: std::io::Result<std::fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
        let mut all: Vec<String> = std::fs::read_dir(self.0.path()).unwrap().map(name).collect();
        all.sort();
        all
    }
}

/// One code a byte from containers of four: bytes, or nibbles from the lowest up.
fn unpack(containers: &Npy) -> Vec<u8> {
    match containers.size {
        4 => containers.data.clone(),
        2 => containers.data.iter().flat_map(|b| [b & 15, b >> 4]).collect(),
        other => panic!("containers of {other} bytes"),
    }
}

#[test]
fn golden_blocks_there_and_back() {
    let bench = Bench::new();
    let cases: Value = serde_json::from_slice(&std::fs::read(data().join("mx/cases.json")).unwrap()).unwrap();
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 72);
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let (name, format, rule) = (text("name"), text("fmt"), text("rule"));
        let golden = |part: &str| load(&data().join(format!("mx/{name}_{part}.npy")));
        bench.ok(&format!(
            "mx quantize mx/{name}_x.npy --from {} --format {format} --rule {rule} -o {{dir}}/p",
            text("src")
        ));
        let (containers, scales) = (load(&bench.at("p.data.npy")), load(&bench.at("p.scale.npy")));
        let [rows, cols] = golden("x").shape[..] else { panic!("{name}: no matrix") };
        assert_eq!(containers.shape, [rows, cols / 4], "{name}");
        assert_eq!(containers.kind, Kind::Unsigned);
        assert_eq!(containers.size, if format == "float4_e2m1fn" { 2 } else { 4 }, "{name}");
        assert!(unpack(&containers) == golden("codes").data, "{name}: codes");
        assert_eq!(scales, golden("scales"), "{name}");
        bench.ok(&format!(
            "mx dequantize {{dir}}/p.data.npy {{dir}}/p.scale.npy --format {format} --rule {rule} -o {{dir}}/y.npy"
        ));
        let (got, want) = (load(&bench.at("y.npy")), golden("deq"));
        assert_eq!(got.shape, want.shape);
        for (g, w) in as_floats(&got).into_iter().zip(as_floats(&want)) {
            assert!(g.to_bits() == w.to_bits() || g.is_nan() && w.is_nan(), "{name}: {g}, expected {w}");
        }
    }
    assert_eq!(bench.files(), ["p.data.npy", "p.scale.npy", "y.npy"]);
}

#[test]
fn scales_as_they_lie_in_sbuf() {
    let bench = Bench::new();
    let x = "mx/wide_bfloat16_float8_e4m3fn_hardware_x.npy --from bfloat16 --rule hardware";
    let want = load(&data().join("mx/wide_bfloat16_float8_e4m3fn_hardware_scales.npy"));
    for offset in [0, 4, 8, 12] {
        bench.ok(&format!("mx quantize {x} --layout sbuf --scale-partition {offset} -o {{dir}}/s"));
        let got = load(&bench.at("s.scale.npy"));
        assert_eq!(got.shape, [128, want.shape[1]]);
        let row = |a: &Npy, r: usize| a.data[r * a.shape[1]..(r + 1) * a.shape[1]].to_vec();
        let mut used = Vec::new();
        for i in 0..16 {
            let partition = i % 4 + 32 * (i / 4) + offset;
            assert_eq!(row(&got, partition), row(&want, i), "row {i} at offset {offset}");
            used.push(partition);
        }
        for r in (0..128).filter(|r| !used.contains(r)) {
            assert!(row(&got, r).iter().all(|b| *b == 0));
        }
        bench.ok(&format!(
            "mx dequantize {{dir}}/s.data.npy {{dir}}/s.scale.npy --format e4m3fn --scale-partition {offset} -o {{dir}}/y.npy"
        ));
        assert_eq!(
            load(&bench.at("y.npy")),
            load(&data().join("mx/wide_bfloat16_float8_e4m3fn_hardware_deq.npy"))
        );
    }
    // Up to 32 partitions there is nothing to scatter.
    save(&bench.at("x.npy"), Kind::Float, 4, &[32, 8], floats([1.0; 256]));
    bench.ok("mx quantize {dir}/x.npy --layout sbuf --scale-partition 8 -o {dir}/t");
    assert_eq!(load(&bench.at("t.scale.npy")).shape, [4, 2]);
}

#[test]
fn published_values() {
    let bench = Bench::new();
    let block = |values: &[f32]| {
        let all: Vec<f32> = values.iter().copied().cycle().take(32).collect();
        save(&bench.at("x.npy"), Kind::Float, 4, &[8, 4], floats(all));
    };
    let quantize = |options: &str| {
        bench.ok(&format!("mx quantize {{dir}}/x.npy {options} -o {{dir}}/q"));
        (load(&bench.at("q.data.npy")).data, load(&bench.at("q.scale.npy")).data[0])
    };
    block(&[1.0, 2.0, -1.0, 448.0]);
    let (data, scale) = quantize("--format e4m3fn");
    assert_eq!((&data[..4], scale), (&0x7EB8_4038u32.to_le_bytes()[..], 127));
    block(&[0.5, 1.0, 1.5, 2.0]);
    // The largest exponent is 1, two below what the format reaches: scale 126 and codes of twice the values.
    let (data, scale) = quantize("--format e2m1");
    assert_eq!((&data[..2], scale), (&0x6542u16.to_le_bytes()[..], 126));
    // One less under the hardware rule, so the codes are those of the values.
    let (data, scale) = quantize("--format e2m1 --rule hardware");
    assert_eq!((&data[..2], scale), (&0x4321u16.to_le_bytes()[..], 127));
    block(&[150.0, 1.0, 0.0, -2.0]);
    for (rule, want) in [("reference", 126), ("reference-alt", 127), ("hardware", 127), ("ocp", 126)] {
        assert_eq!(quantize(&format!("--rule {rule}")).1, want, "{rule}");
    }
    block(&[957.0, 960.0, 0.0, 0.0]);
    for (rule, want, value) in [("reference", 128, 896.0), ("hardware", 129, 960.0)] {
        assert_eq!(quantize(&format!("--rule {rule}")).1, want, "{rule}");
        bench.ok(&format!(
            "mx dequantize {{dir}}/q.data.npy {{dir}}/q.scale.npy --format e4m3fn --rule {rule} -o {{dir}}/y.npy"
        ));
        assert_eq!(as_floats(&load(&bench.at("y.npy")))[0], value, "{rule}");
    }
}

#[test]
fn what_is_not_a_number_is_counted() {
    let bench = Bench::new();
    let mut x = [1.0; 64];
    x[5] = f32::NAN;
    save(&bench.at("x.npy"), Kind::Float, 4, &[8, 8], floats(x));
    let tensor = |rule: &str| {
        bench.json(&format!("mx quantize {{dir}}/x.npy --rule {rule} -o {{dir}}/q --json"))["tensors"][0]
            .clone()
    };
    assert_eq!(tensor("reference")["nan"], 1);
    assert_eq!(load(&bench.at("q.data.npy")).data[5], 0);
    tensor("hardware");
    assert_eq!(load(&bench.at("q.data.npy")).data[5] & 0x7F, 0x7F);
    // The OCP rule gives the whole block up, and reads it back as NaN; the other block is 1.
    assert_eq!(tensor("ocp")["nan_blocks"], 1);
    assert_eq!(load(&bench.at("q.scale.npy")).data, [119, 255]);
    bench.ok("mx dequantize {dir}/q.data.npy {dir}/q.scale.npy --format e4m3fn --rule ocp -o {dir}/y.npy");
    let y = as_floats(&load(&bench.at("y.npy")));
    assert!(y.iter().enumerate().all(|(i, v)| if i % 8 < 4 { *v == 1.0 } else { v.is_nan() }));
}

#[test]
fn pieces_and_threads_decide_nothing() {
    let bench = Bench::new();
    // More than a piece, the last one short, in every row other values.
    let (rows, cols) = (1048, 1028);
    let mut state = 1u32;
    let values: Vec<f32> = (0..rows * cols)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(0x3000_0000 + (state >> 4))
        })
        .collect();
    save(&bench.at("x.npy"), Kind::Float, 4, &[rows, cols], floats(values.clone()));
    // Blocks do not know of each other, so halves quantize as the whole does.
    save(&bench.at("a.npy"), Kind::Float, 4, &[520, cols], floats(values[..520 * cols].to_vec()));
    save(&bench.at("b.npy"), Kind::Float, 4, &[528, cols], floats(values[520 * cols..].to_vec()));
    for format in ["e4m3fn", "e2m1"] {
        for (input, threads) in [("x", "1"), ("x", "3"), ("a", "1"), ("b", "2")] {
            bench.ok(&format!(
                "mx quantize {{dir}}/{input}.npy --format {format} --threads {threads} -o {{dir}}/{input}{threads}"
            ));
        }
        for part in ["data", "scale"] {
            let get = |name: &str| load(&bench.at(&format!("{name}.{part}.npy"))).data;
            assert!(get("x1") == get("x3"), "{format} {part}");
            assert!(get("x1") == [get("a1"), get("b2")].concat(), "{format} {part}");
        }
        let line = "mx dequantize {dir}/x1.data.npy {dir}/x1.scale.npy --format";
        bench.ok(&format!("{line} {format} -o {{dir}}/y.npy"));
        let y = as_floats(&load(&bench.at("y.npy")));
        assert_eq!(y.len(), values.len());
        if format == "e4m3fn" {
            // A block's maximum may be clamped from just under 512 to 448 of its scale.
            let far = values.iter().zip(&y).filter(|(x, y)| **x > 1.0 && (*x - *y).abs() > *x / 8.0);
            assert_eq!(far.count(), 0);
        }
    }
    let report = |threads: &str| bench.ok(&format!("mx report {{dir}}/x.npy --json --threads {threads}"));
    assert_eq!(report("1"), report("3"));
}

#[test]
fn a_report_of_known_errors() {
    let bench = Bench::new();
    // A block of 957 and one 960; exact blocks beside it.
    let value = |i: usize| match i % 8 {
        0..4 if i == 3 => 960.0,
        0..4 => 957.0,
        _ => 2.0,
    };
    save(&bench.at("x.npy"), Kind::Float, 4, &[8, 8], floats((0..64).map(value)));
    let report = bench.json("mx report {dir}/x.npy --format e4m3fn --json --plot {dir}/p.svg");
    let results = report["tensors"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    let signal = 31.0 * 957.0f64.powi(2) + 960.0f64.powi(2) + 32.0 * 4.0;
    for r in results {
        let (high, low, saturated) = match r["rule"].as_str().unwrap() {
            "reference" | "ocp" => (64.0, 61.0, 32),
            _ => (0.0, 3.0, 0),
        };
        let near = |key: &str, want: f64| {
            let got = r[key].as_f64().unwrap();
            assert!((got - want).abs() <= 1e-9 * want.abs(), "{}: {key} {got}, expected {want}", r["rule"]);
        };
        near("max_relative_error", f64::max(high / 960.0, low / 957.0));
        near("mean_relative_error", (31.0 * low / 957.0 + high / 960.0) / 64.0);
        near("snr_db", 10.0 * (signal / (31.0 * low * low + high * high)).log10());
        assert_eq!(r["saturated"], saturated);
        assert_eq!(r["flushed"], 0);
    }
    let picture = std::fs::read_to_string(bench.at("p.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("float8_e4m3fn: SNR in dB"));
    // The picture as pixels: a PNG of one panel that is not empty.
    bench.ok("mx report {dir}/x.npy --format e4m3fn --plot {dir}/p.png");
    let file = std::fs::File::open(bench.at("p.png")).unwrap();
    let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (960, 300));
    assert!(pixels.iter().filter(|b| **b < 200).count() > 1000);
}

#[test]
fn refused_arrays_leave_nothing() {
    let bench = Bench::new();
    save(&bench.at("rows.npy"), Kind::Float, 4, &[12, 8], floats([1.0; 96]));
    save(&bench.at("cols.npy"), Kind::Float, 4, &[8, 6], floats([1.0; 48]));
    save(&bench.at("flat.npy"), Kind::Float, 4, &[64], floats([1.0; 64]));
    save(&bench.at("bits.npy"), Kind::Unsigned, 2, &[8, 4], vec![0; 64]);
    save(&bench.at("ints.npy"), Kind::Signed, 8, &[8, 4], vec![0; 256]);
    save(&bench.at("wide.npy"), Kind::Float, 8, &[8, 4], vec![0; 256]);
    save(&bench.at("good.npy"), Kind::Float, 4, &[8, 4], floats([1.0; 32]));
    save(&bench.at("tall.npy"), Kind::Float, 4, &[40, 4], floats([1.0; 160]));
    save(&bench.at("scale.npy"), Kind::Unsigned, 1, &[1, 1], vec![127]);
    save(&bench.at("wrong.npy"), Kind::Unsigned, 1, &[2, 1], vec![127; 2]);
    save(&bench.at("data.npy"), Kind::Unsigned, 4, &[8, 1], vec![0; 32]);
    let before = bench.files();
    for (line, exit, text) in [
        ("quantize {dir}/rows.npy", 3, "12 rows of shape [12, 8] do not divide into blocks of 8 x 4"),
        ("quantize {dir}/cols.npy", 3, "rows of 6 elements of shape [8, 6] do not divide"),
        ("quantize {dir}/flat.npy", 3, "shape [64] is not [P, F]"),
        ("quantize {dir}/bits.npy", 3, "elements are uint16, and nothing says what their bits are"),
        ("quantize {dir}/bits.npy --from float32", 3, "--from float32 says what unsigned bits are"),
        ("quantize {dir}/good.npy --from bfloat16", 3, "--from bfloat16 says what unsigned bits are"),
        ("quantize {dir}/ints.npy", 3, "elements of type int64 cannot be quantized"),
        ("quantize {dir}/wide.npy", 3, "elements of type float64 cannot be quantized"),
        ("quantize {dir}/absent.npy", 3, "FILE-001"),
        ("quantize {dir}/good.npy --tensor *", 2, "holds one array"),
        ("quantize {dir}/good.npy --scale-partition 4", 2, "no meaning in layout logical"),
        ("quantize {dir}/good.npy --layout sbuf --scale-partition 5", 2, "use 0, 4, 8 or 12"),
        ("quantize {dir}/good.npy --format e4m3", 2, "use e4m3fn, e5m2 or e2m1"),
        ("quantize {dir}/tall.npy --layout sbuf --scale-partition 12", 3, "would lie in row 44"),
        ("quantize {dir}/good.npy -o {dir}/no/such/p", 3, "there is no folder {dir}/no/such"),
        ("quantize casts/float16_to_float32.npy", 3, "is not [P, F]"),
        ("dequantize {dir}/data.npy {dir}/wrong.npy --format e5m2", 3, "scales of shape [2, 1] do not fit"),
        (
            "dequantize {dir}/data.npy {dir}/scale.npy --format e2m1",
            3,
            "is no array of float4_e2m1fn containers",
        ),
        ("dequantize {dir}/data.npy {dir}/good.npy --format e5m2", 3, "is no array of scales"),
        ("dequantize {dir}/data.npy {dir}/scale.npy", 2, "nothing says what the containers hold"),
        ("dequantize {dir}/data.npy", 2, "their scales are missing"),
        ("audit {dir}/good.npy --target trn2 --fix", 3, "codes are uint8"),
        ("audit {dir}/scale.npy --target trn3 --fix", 2, "nothing to fix"),
    ] {
        let output = if line.contains("-o") { "" } else { " -o {dir}/p" };
        let out = bench.run(&format!("mx {line}{output}"));
        let said = stderr(&out).replace(&bench.0.path().display().to_string(), "{dir}");
        assert_eq!(code(&out), exit, "{line}: {said}");
        assert!(said.contains(text), "{line}: {said}");
        assert!(said.starts_with("error"), "{line}: {said}");
        assert!(out.stdout.is_empty(), "{line}");
        assert_eq!(bench.files(), before, "{line}");
    }
}
