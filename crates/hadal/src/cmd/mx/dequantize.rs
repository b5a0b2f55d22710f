//! `hadal mx dequantize`: MX blocks back to float32.

use std::path::{Path, PathBuf};

use clap::Args;
use hadal::files::{self, Draft};
use hadal::npy::{self, Kind, Npy};
use hadal::num::mx::{self, MxFormat, ScaleOffset, ScaleRule};
use hadal::safetensors::{Entry, Header};
use serde_json::{Value, json};

use super::input::Input;
use super::progress::Progress;
use super::quantize::copy;
use super::{NOTE, format, rows_at_once, rule, scale_partition};
use crate::cmd::load;
use crate::failure::Failure;
use crate::term::{Term, counted};

/// Elements turned back at a time.
const AT_ONCE: usize = 1 << 20;

/// Turn containers and block scales back to float32.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal mx dequantize w.data.npy w.scale.npy --format e4m3fn -o w.npy
  hadal mx dequantize x.data.npy x.scale.npy --format e5m2 --scale-partition 4 -o x.npy   scales as they lie in SBUF
  hadal mx dequantize model-mx.safetensors -o model.safetensors     formats from the file's own metadata

The containers are [P, F/4], uint32 or, for e2m1, uint16. Scales of [P/8, F/4] are taken as logical, of [P, F/4] as
scattered over partitions. The rule decides only what scale 255 means: 2^128 under the reference rules, else NaN.")]
pub(super) struct DequantizeArgs {
    /// Containers (.npy), or a .safetensors that `hadal mx quantize` wrote.
    data: PathBuf,
    /// Block scales (.npy, uint8).
    scale: Option<PathBuf>,
    /// Element format; a .safetensors knows its own.
    #[arg(long, value_name = "e4m3fn|e5m2|e2m1", value_parser = format)]
    format: Option<MxFormat>,
    /// The rule the scales were made by [default: reference, or the file's own].
    #[arg(long, value_name = "reference|reference-alt|hardware|ocp", value_parser = rule)]
    rule: Option<ScaleRule>,
    /// First partition of scattered scales in each quadrant [default: 0, or the file's own].
    #[arg(long, value_name = "0|4|8|12", value_parser = scale_partition)]
    scale_partition: Option<ScaleOffset>,
    /// Where the result goes; - for standard output (not for .safetensors).
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

/// How blocks are read.
#[derive(Clone, Copy)]
struct Reading {
    format: MxFormat,
    rule: ScaleRule,
    offset: ScaleOffset,
}

/// Runs the command.
pub(super) fn run(args: &DequantizeArgs, term: Term) -> Result<(), Failure> {
    let inputs: Vec<&Path> =
        [Some(args.data.as_path()), args.scale.as_deref()].into_iter().flatten().collect();
    load::destinations(&[("-o".to_owned(), &args.output)], &inputs, term)?;
    match &args.scale {
        Some(scale) => arrays(args, scale, term),
        None => checkpoint(args, term),
    }
}

fn arrays(args: &DequantizeArgs, scale: &Path, term: Term) -> Result<(), Failure> {
    let Some(format) = args.format else {
        return Err(Failure::usage(
            "nothing says what the containers hold",
            "give --format e4m3fn, e5m2 or e2m1",
        ));
    };
    let reading = Reading {
        format,
        rule: args.rule.unwrap_or_default(),
        offset: args.scale_partition.unwrap_or_default(),
    };
    let load = |path: &Path| -> Result<(String, Npy), Failure> {
        let source = files::read(path)?;
        let array = npy::read_owned(source.bytes)
            .map_err(|error| Failure::Npy { name: source.name.clone(), error })?;
        Ok((source.name, array))
    };
    let (data_name, data) = load(&args.data)?;
    let (scale_name, scale) = load(scale)?;
    let fail = |name: &str, text: String, remedy| Failure::Cast { name: name.to_owned(), text, remedy };
    let (rows, columns) = match *data.shape.as_slice() {
        [rows, columns] if data.kind != Kind::Float && data.size == format.container_bytes() => {
            (rows, columns)
        }
        _ => {
            let bits = format.container_bytes() * 8;
            let text = format!("{data} is no array of {format} containers, which is uint{bits} [P, F/4]");
            return Err(fail(
                &data_name,
                text,
                "give the data file that hadal mx quantize wrote, and its --format",
            ));
        }
    };
    if !rows.is_multiple_of(8) {
        let text = format!("{rows} rows do not divide into blocks of 8 x 4");
        return Err(fail(&data_name, text, "pad the rows to a multiple of 8"));
    }
    if scale.kind == Kind::Float || scale.size != 1 {
        let text = format!("{scale} is no array of scales, which are uint8");
        return Err(fail(&scale_name, text, "give the scale file that hadal mx quantize wrote"));
    }
    let scales = logical(&scale.data, &scale.shape, rows, columns, reading.offset)
        .map_err(|(text, remedy)| fail(&scale_name, text, remedy))?;
    let shape = [rows, columns.saturating_mul(4)];
    let head = npy::header(Kind::Float, 4, &shape);
    let mut data = data.data.as_slice();
    let mut next = |into: &mut [u8]| {
        let (piece, rest) = data.split_at_checked(into.len()).unwrap_or_default();
        into.get_mut(..piece.len()).unwrap_or_default().copy_from_slice(piece);
        data = rest;
        Ok(())
    };
    if files::is_stdout(&args.output) {
        term.out_bytes(&head)?;
        return values(reading, rows, columns, &scales, &mut next, &mut |bytes| term.out_bytes(bytes));
    }
    let mut draft = Draft::begin(&args.output)?;
    draft.write_at(0, &head)?;
    let mut at = head.len() as u64;
    let mut progress = Progress::new((rows * columns * 16) as u64, term);
    values(reading, rows, columns, &scales, &mut next, &mut |bytes| {
        draft.write_at(at, bytes)?;
        at += bytes.len() as u64;
        progress.advance(bytes.len() as u64);
        Ok(())
    })?;
    drop(progress);
    draft.finish()?;
    let output = args.output.display().to_string();
    if term.json {
        return term.out_json(&json!({
            "output": output, "format": format.format().name(), "rule": reading.rule.name(), "shape": shape,
        }));
    }
    term.say(&format!("wrote {output} (float32 {shape:?}, from {format} rule {})", reading.rule));
    Ok(())
}

/// The scales in logical order, `[rows / 8, columns]`.
fn logical(
    scales: &[u8],
    shape: &[usize],
    rows: usize,
    columns: usize,
    offset: ScaleOffset,
) -> Result<Vec<u8>, (String, &'static str)> {
    if shape == [rows / 8, columns] {
        return Ok(scales.to_vec());
    }
    let mut out = vec![0; rows / 8 * columns];
    if shape != [rows, columns] {
        let want = format!("[{}, {columns}] or, scattered, [{rows}, {columns}]", rows / 8);
        return Err((
            format!("scales of shape {shape:?} do not fit the data, which takes {want}"),
            "give the scales made with this data",
        ));
    }
    mx::gather_scales(scales, columns, offset, &mut out).map_err(|_| {
        (
            format!("scales of {rows} rows reach past row {rows} from partition {}", offset.get()),
            "give the --scale-partition they were made with",
        )
    })?;
    Ok(out)
}

/// Reads containers, hands out float32 bytes, in order.
fn values(
    reading: Reading,
    rows: usize,
    columns: usize,
    scales: &[u8],
    next: &mut dyn FnMut(&mut [u8]) -> Result<(), Failure>,
    put: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Reading { format, rule, .. } = reading;
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let at_once = rows_at_once(columns * 4, AT_ONCE).min(rows);
    let (mut data, mut floats, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for (first, scales) in (0..rows).step_by(at_once).zip(scales.chunks(at_once / 8 * columns)) {
        let count = at_once.min(rows - first);
        data.resize(count * columns * format.container_bytes(), 0);
        floats.resize(count * columns * 4, 0.0f32);
        next(&mut data)?;
        mx::dequantize(format, rule, &data, scales, count, columns * 4, &mut floats)
            .map_err(|e| Failure::System { text: e.to_string() })?;
        // Small pieces keep the second copy small.
        for piece in floats.chunks(1 << 16) {
            bytes.clear();
            bytes.extend(piece.iter().flat_map(|v| v.to_le_bytes()));
            put(&bytes)?;
        }
    }
    Ok(())
}

/// A tensor to restore.
struct Job {
    name: String,
    data: usize,
    scale: usize,
    rows: usize,
    columns: usize,
}

fn checkpoint(args: &DequantizeArgs, term: Term) -> Result<(), Failure> {
    let mut input = Input::open(&args.data, None)?;
    let Some(header) = input.header.clone() else {
        return Err(Failure::usage(
            format!("{} holds containers, their scales are missing", input.name),
            "hadal mx dequantize DATA.npy SCALE.npy --format F -o OUT.npy",
        ));
    };
    let fail = |text: String| Failure::Cast {
        name: input.name.clone(),
        text,
        remedy: "give a file that hadal mx quantize wrote",
    };
    let note: Value = header
        .note(NOTE)
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(|| fail(format!("no metadata entry {NOTE} says how its tensors were quantized")))?;
    let text = |key: &str| note.get(key).and_then(Value::as_str);
    let bad = |key: &str| fail(format!("{key} of the metadata entry {NOTE} cannot be read"));
    let own = text("format").and_then(|f| format(f).ok()).ok_or_else(|| bad("format"))?;
    if args.format.is_some_and(|f| f != own) {
        return Err(fail(format!("--format says otherwise than the file, whose tensors are {own}")));
    }
    let own_rule = text("rule").and_then(|r| rule(r).ok()).ok_or_else(|| bad("rule"))?;
    let own_offset = note.get("scale_partition").and_then(Value::as_u64).map(|n| n.to_string());
    let own_offset =
        own_offset.and_then(|n| scale_partition(&n).ok()).ok_or_else(|| bad("scale_partition"))?;
    let reading = Reading {
        format: own,
        rule: args.rule.unwrap_or(own_rule),
        offset: args.scale_partition.unwrap_or(own_offset),
    };
    let tensors = note.get("tensors").and_then(Value::as_object).ok_or_else(|| bad("tensors"))?;
    let find = |name: String| input.tensors.iter().position(|t| t.name == name);
    let container = if own.container_bytes() == 2 { "U16" } else { "U32" };
    let mut jobs = Vec::new();
    for name in tensors.keys() {
        let pair = find(format!("{name}.data")).zip(find(format!("{name}.scale")));
        let (data, scale) = pair.ok_or_else(|| fail(format!("{name}.data or {name}.scale is missing")))?;
        let shape = input.tensor(data).filter(|t| t.spelled == container).map(|t| t.shape.as_slice());
        match shape {
            Some(&[rows, columns]) if rows.is_multiple_of(8) => {
                let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
                jobs.push(Job { name: name.clone(), data, scale, rows: size(rows), columns: size(columns) });
            }
            _ => return Err(fail(format!("{name}.data is no {container} [P, F/4] with P a multiple of 8"))),
        }
    }
    let mut out = Header { entries: Vec::new(), metadata: header.metadata.clone() };
    out.metadata.retain(|(key, _)| key != NOTE);
    let used = |i: usize| jobs.iter().any(|j| j.data == i || j.scale == i);
    let rest: Vec<usize> = (0..input.tensors.len()).filter(|i| !used(*i)).collect();
    out.entries.extend(rest.iter().filter_map(|i| header.entries.get(*i).cloned()));
    for j in &jobs {
        let (rows, cols) = (j.rows as u64, (j.columns as u64).saturating_mul(4));
        let (name, dtype) = (j.name.clone(), "F32".to_owned());
        if out.entries.iter().any(|e| e.name == name) {
            return Err(fail(format!("it holds {name} beside {name}.data")));
        }
        out.entries.push(Entry { name, dtype, shape: vec![rows, cols], offset: 0, bytes: rows * cols * 4 });
    }
    let head = out.lay_out();
    let place = |name: &str| out.entries.iter().find(|e| e.name == name).map_or(0, |e| e.offset);
    let mut draft = Draft::begin(&args.output)?;
    draft.write_at(0, &head)?;
    let mut progress = Progress::new(out.entries.iter().map(|e| e.bytes).sum(), term);
    for j in &jobs {
        let scale = input.tensor(j.scale).cloned();
        let shape = scale.as_ref().map_or(Vec::new(), |t| t.shape.clone());
        let shape: Vec<usize> = shape.iter().map(|d| usize::try_from(*d).unwrap_or(usize::MAX)).collect();
        let mut scales = vec![0; scale.map_or(0, |t| usize::try_from(t.bytes).unwrap_or(0))];
        input.read(j.scale, 0, &mut scales)?;
        let scales = logical(&scales, &shape, j.rows, j.columns, reading.offset)
            .map_err(|(text, remedy)| input.fail(j.scale, text, remedy))?;
        let (mut from, mut to) = (0, place(&j.name));
        let mut next = |into: &mut [u8]| {
            input.read(j.data, from, into)?;
            from += into.len() as u64;
            Ok(())
        };
        values(reading, j.rows, j.columns, &scales, &mut next, &mut |bytes| {
            draft.write_at(to, bytes)?;
            to += bytes.len() as u64;
            progress.advance(bytes.len() as u64);
            Ok(())
        })?;
    }
    for &i in &rest {
        let to = input.tensor(i).map_or(0, |t| place(&t.name));
        copy(&mut input, i, &mut draft, to, &mut progress)?;
    }
    drop(progress);
    draft.finish()?;
    let output = args.output.display().to_string();
    if term.json {
        let names: Vec<&str> = jobs.iter().map(|j| j.name.as_str()).collect();
        return term.out_json(&json!({
            "output": output, "format": own.format().name(), "rule": reading.rule.name(),
            "tensors": names, "copied": rest.len(),
        }));
    }
    let done = counted(jobs.len(), "tensor");
    term.say(&format!("wrote {output} ({done} from {own} to F32, {} copied)", rest.len()));
    Ok(())
}
