//! `hadal mx quantize`: tensors to MX blocks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use glob::Pattern;
use hadal::files::Draft;
use hadal::npy::{self, Kind};
use hadal::num::mx::{self, Counts, MxFormat, ScaleOffset, ScaleRule};
use hadal::safetensors::{Entry, Header, tensor_bytes};
use serde_json::{Map, Value, json};

use super::input::{Bits, Input, Left, Picked, Rows};
use super::progress::Progress;
use super::{NOTE, format, pattern, rows_at_once, rule, scale_partition, short};
use crate::cmd::load;
use crate::failure::Failure;
use crate::term::{Term, counted};

/// Elements quantized at a time.
const AT_ONCE: usize = 1 << 20;
/// Bytes copied at a time.
const COPY: usize = 1 << 20;

/// Quantize [P, F] tensors to containers of four elements and block scales.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal mx quantize w.npy -o w                        w.data.npy (uint32 [P, F/4]), w.scale.npy (uint8 [P/8, F/4])
  hadal mx quantize w.npy --from bfloat16 --format e2m1 --rule ocp -o w      uint16 bits in, uint16 containers out
  hadal mx quantize x.npy --rule hardware --layout sbuf --scale-partition 4 -o x
  hadal mx quantize model.safetensors --tensor 'layers.*.weight' -o model-mx   model-mx.safetensors

A .npy holds one float16, float32 or, with --from, unsigned array. In a .safetensors each quantized tensor NAME
(F32, F16, BF16, F8_E4M3, F8_E5M2) becomes NAME.data (U32, or U16 for e2m1) and NAME.scale (U8); every other tensor
is copied as it is, and the metadata entry hadal.mx says how the file was made. Without --tensor every tensor that
divides into 8 x 4 blocks is quantized, except scales of FP8 tensors; with it, every tensor that it matches must.

Layout sbuf puts logical scale row i into row (i % 4) + 32 (i / 4) + scale-partition of [P, F/4], where the engine
reads it, and fills the rest with 0. Up to 32 partitions the scales stay [P/8, F/4].")]
pub(super) struct QuantizeArgs {
    /// A .npy or .safetensors file; - for standard input.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// What an unsigned array's bits are.
    #[arg(long, value_enum, value_name = "bfloat16|float16|float32", hide_possible_values = true)]
    from: Option<Bits>,
    /// Element format.
    #[arg(long, value_name = "e4m3fn|e5m2|e2m1", value_parser = format, default_value = "e4m3fn")]
    format: MxFormat,
    /// How a block's scale follows from its elements.
    #[arg(
        long,
        value_name = "reference|reference-alt|hardware|ocp",
        value_parser = rule,
        default_value = "reference"
    )]
    rule: ScaleRule,
    /// Tensors of a .safetensors to quantize: * any characters, ? one, [ab] either [default: all that divide into blocks].
    #[arg(long, value_name = "GLOB", value_parser = pattern)]
    tensor: Option<Pattern>,
    /// Where the scales lie.
    #[arg(
        long,
        value_enum,
        value_name = "logical|sbuf",
        default_value = "logical",
        hide_possible_values = true
    )]
    layout: Layout,
    /// First partition of the scales in each quadrant of layout sbuf.
    #[arg(long, value_name = "0|4|8|12", value_parser = scale_partition, default_value = "0")]
    scale_partition: ScaleOffset,
    /// Beginning of the results' names.
    #[arg(short, long, value_name = "PREFIX")]
    output: PathBuf,
}

/// Where block scales lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layout {
    Logical,
    Sbuf,
}

impl Layout {
    fn name(self) -> &'static str {
        match self {
            Layout::Logical => "logical",
            Layout::Sbuf => "sbuf",
        }
    }
}

/// A tensor's results: where they went and what happened on the way.
struct Done {
    picked: Picked,
    data: (String, Vec<usize>),
    scale: (String, Vec<usize>),
    counts: Counts,
}

/// Runs the command.
pub(super) fn run(args: &QuantizeArgs, term: Term) -> Result<(), Failure> {
    if args.layout == Layout::Logical && args.scale_partition != ScaleOffset::default() {
        return Err(Failure::usage(
            "--scale-partition has no meaning in layout logical",
            "add --layout sbuf",
        ));
    }
    if args.output == Path::new("-") {
        return Err(Failure::usage(
            "the results are several and cannot go to standard output",
            "give -o PREFIX",
        ));
    }
    let mut input = Input::open(&args.input, args.from)?;
    let paths = if input.header.is_some() { vec![checkpoint_path(args)] } else { array_paths(args).to_vec() };
    let outputs: Vec<_> = paths.iter().map(|p| ("-o".to_owned(), p.as_path())).collect();
    load::destinations(&outputs, &[&args.input], term)?;
    let (picked, left) = input.pick(args.tensor.as_ref())?;
    for p in &picked {
        check_sbuf(&input, *p, args)?;
    }
    let (files, done) = match input.header.take() {
        None => arrays(&mut input, &picked, args, term)?,
        Some(header) => {
            input.header = Some(header.clone());
            checkpoint(&mut input, header, &picked, &left, args, term)?
        }
    };
    report(&input, args, &files, &done, &left, term)
}

/// Whether the scattered scales fit beside their data.
fn check_sbuf(input: &Input, picked: Picked, args: &QuantizeArgs) -> Result<(), Failure> {
    let last = (picked.rows / 8).checked_sub(1).map(|row| args.scale_partition.partition(row));
    match last {
        Some(last) if scattered(picked, args) && last >= picked.rows => Err(input.fail(
            picked.index,
            format!("the last scales of {} rows would lie in row {last} of layout sbuf", picked.rows),
            "pad the rows to a multiple of 32, or use --layout logical",
        )),
        _ => Ok(()),
    }
}

fn scattered(picked: Picked, args: &QuantizeArgs) -> bool {
    args.layout == Layout::Sbuf && picked.rows > 32
}

/// Shapes of the containers and of the scales.
fn shapes(picked: Picked, args: &QuantizeArgs) -> (Vec<usize>, Vec<usize>) {
    let columns = picked.cols / 4;
    let scale_rows = if scattered(picked, args) { picked.rows } else { picked.rows / 8 };
    (vec![picked.rows, columns], vec![scale_rows, columns])
}

/// Takes containers and where in their tensor they begin.
type Put<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Failure> + 'a;

/// Quantizes one tensor, handing out containers in order; returns its scales in their layout.
fn tensor(
    input: &mut Input,
    picked: Picked,
    args: &QuantizeArgs,
    progress: &mut Progress,
    put: &mut Put<'_>,
) -> Result<(Vec<u8>, Counts), Failure> {
    let Picked { index, rows, cols, dtype } = picked;
    let columns = cols / 4;
    let mut scales = vec![0; rows / 8 * columns];
    let mut counts = Counts::default();
    let mut piece = Rows::new(picked, rows_at_once(cols, AT_ONCE).min(rows.max(8)));
    let mut containers = Vec::new();
    let mut at = 0;
    if columns > 0 {
        for (first, scales) in
            (0..rows).step_by(piece.at_once).zip(scales.chunks_mut(piece.at_once / 8 * columns))
        {
            let count = piece.at_once.min(rows - first);
            input.rows(picked, first, &mut piece)?;
            containers.resize(count * columns * args.format.container_bytes(), 0);
            let more = mx::quantize_counted(
                piece.source(),
                count,
                cols,
                args.format,
                args.rule,
                &mut containers,
                scales,
            );
            counts = counts + more.map_err(|e| input.fail(index, e.to_string(), "check the file"))?;
            put(at, &containers)?;
            at += containers.len() as u64;
            progress.advance((count * cols * dtype.bytes()) as u64);
        }
    }
    if !scattered(picked, args) {
        return Ok((scales, counts));
    }
    let mut memory = vec![0; rows * columns];
    mx::scatter_scales(&scales, columns, args.scale_partition, &mut memory)
        .map_err(|e| input.fail(index, e.to_string(), "use --layout logical"))?;
    Ok((memory, counts))
}

/// `PREFIX` with an ending.
fn with_ending(prefix: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(prefix);
    name.push(ending);
    PathBuf::from(name)
}

/// Where an array's data and scales go.
fn array_paths(args: &QuantizeArgs) -> [PathBuf; 2] {
    [".data.npy", ".scale.npy"].map(|ending| with_ending(&args.output, ending))
}

/// Where a checkpoint goes.
fn checkpoint_path(args: &QuantizeArgs) -> PathBuf {
    if args.output.extension().is_some_and(|e| e == "safetensors") {
        args.output.clone()
    } else {
        with_ending(&args.output, ".safetensors")
    }
}

type Finished = (Vec<PathBuf>, Vec<Done>);

fn arrays(
    input: &mut Input,
    picked: &[Picked],
    args: &QuantizeArgs,
    term: Term,
) -> Result<Finished, Failure> {
    let paths = array_paths(args);
    let [data_path, scale_path] = &paths;
    let mut done = Vec::new();
    for &p in picked {
        let (data_shape, scale_shape) = shapes(p, args);
        let (mut data, mut scale) = (Draft::begin(data_path)?, Draft::begin(scale_path)?);
        let head = npy::header(Kind::Unsigned, args.format.container_bytes(), &data_shape);
        data.write_at(0, &head)?;
        let mut progress = Progress::new((p.rows * p.cols * p.dtype.bytes()) as u64, term);
        let mut put = |at, bytes: &[u8]| Ok(data.write_at(head.len() as u64 + at, bytes)?);
        let (scales, counts) = tensor(input, p, args, &mut progress, &mut put)?;
        let head = npy::header(Kind::Unsigned, 1, &scale_shape);
        scale.write_at(0, &head)?;
        scale.write_at(head.len() as u64, &scales)?;
        data.finish()?;
        scale.finish()?;
        done.push(Done {
            picked: p,
            data: (data_path.display().to_string(), data_shape),
            scale: (scale_path.display().to_string(), scale_shape),
            counts,
        });
    }
    Ok((paths.to_vec(), done))
}

fn checkpoint(
    input: &mut Input,
    header: Header,
    picked: &[Picked],
    left: &[Left],
    args: &QuantizeArgs,
    term: Term,
) -> Result<Finished, Failure> {
    let path = checkpoint_path(args);
    let container = if args.format.container_bytes() == 2 { "U16" } else { "U32" };
    let mut out = Header { entries: Vec::new(), metadata: header.metadata };
    out.metadata.retain(|(key, _)| key != NOTE);
    for l in left {
        out.entries.extend(header.entries.get(l.index).cloned());
    }
    let mut done = Vec::new();
    for &p in picked {
        let name = input.tensor(p.index).map_or("", |t| t.name.as_str());
        let (data, scale) = shapes(p, args);
        let names = [format!("{name}.data"), format!("{name}.scale")];
        if let Some(taken) = names.iter().find(|n| out.entries.iter().any(|e| e.name == **n)) {
            let text = format!("its results need the name {taken:?}, which another tensor has");
            return Err(input.fail(p.index, text, "rename that tensor, or leave this one out with --tensor"));
        }
        for (name, dtype, shape) in [(&names[0], container, &data), (&names[1], "U8", &scale)] {
            let shape: Vec<u64> = shape.iter().map(|d| *d as u64).collect();
            let bytes = tensor_bytes(dtype, &shape).unwrap_or(0);
            out.entries.push(Entry { name: name.clone(), dtype: dtype.to_owned(), shape, offset: 0, bytes });
        }
        let [data_name, scale_name] = names;
        done.push(Done {
            picked: p,
            data: (data_name, data),
            scale: (scale_name, scale),
            counts: Counts::default(),
        });
    }
    out.metadata.push((NOTE.to_owned(), note(input, picked, args).to_string()));
    let start = out.lay_out();
    let place = |name: &str| out.entries.iter().find(|e| e.name == name).map_or(0, |e| e.offset);
    let mut draft = Draft::begin(&path)?;
    draft.write_at(0, &start)?;
    let mut progress = Progress::new(input.tensors.iter().map(|t| t.bytes).sum(), term);
    for d in &mut done {
        let (data_at, scale_at) = (place(&d.data.0), place(&d.scale.0));
        let mut put = |at, bytes: &[u8]| Ok(draft.write_at(data_at + at, bytes)?);
        let (scales, counts) = tensor(input, d.picked, args, &mut progress, &mut put)?;
        draft.write_at(scale_at, &scales)?;
        d.counts = counts;
    }
    for l in left {
        let to = input.tensor(l.index).map_or(0, |t| place(&t.name));
        copy(input, l.index, &mut draft, to, &mut progress)?;
    }
    draft.finish()?;
    Ok((vec![path], done))
}

/// Copies a tensor's bytes into another file.
pub(super) fn copy(
    input: &mut Input,
    index: usize,
    draft: &mut Draft,
    to: u64,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let bytes = input.tensor(index).map_or(0, |t| t.bytes);
    let mut piece = Vec::new();
    let mut at = 0;
    while at < bytes {
        piece.resize(COPY.min(usize::try_from(bytes - at).unwrap_or(COPY)), 0);
        input.read(index, at, &mut piece)?;
        draft.write_at(to + at, &piece)?;
        at += piece.len() as u64;
        progress.advance(piece.len() as u64);
    }
    Ok(())
}

/// How a file was made, for whoever reads it.
fn note(input: &Input, picked: &[Picked], args: &QuantizeArgs) -> Value {
    let tensors: Map<String, Value> = picked
        .iter()
        .filter_map(|p| input.tensor(p.index))
        .map(|t| (t.name.clone(), json!({"dtype": t.spelled, "shape": t.shape})))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "format": args.format.format().name(),
        "rule": args.rule.name(),
        "layout": args.layout.name(),
        "scale_partition": args.scale_partition.get(),
        "tensors": tensors,
    })
}

fn report(
    input: &Input,
    args: &QuantizeArgs,
    files: &[PathBuf],
    done: &[Done],
    left: &[Left],
    term: Term,
) -> Result<(), Failure> {
    let name = |index: usize| input.tensor(index).map_or("", |t| t.name.as_str());
    let outputs: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let total = done.iter().fold(Counts::default(), |sum, d| sum + d.counts);
    if term.json {
        let tensors: Vec<Value> = done
            .iter()
            .map(|d| {
                json!({
                    "name": name(d.picked.index), "shape": [d.picked.rows, d.picked.cols],
                    "data": d.data.0, "data_shape": d.data.1, "scale": d.scale.0, "scale_shape": d.scale.1,
                    "saturated": d.counts.saturated, "flushed": d.counts.flushed,
                    "nan": d.counts.nan, "nan_blocks": d.counts.nan_blocks,
                })
            })
            .collect();
        let copied: Vec<Value> = left.iter().map(|l| json!({"name": name(l.index), "why": l.why})).collect();
        return term.out_json(&json!({
            "outputs": outputs, "format": args.format.format().name(), "rule": args.rule.name(),
            "layout": args.layout.name(), "scale_partition": args.scale_partition.get(),
            "tensors": tensors, "copied": copied,
        }));
    }
    for l in left.iter().filter(|_| args.tensor.is_none()) {
        term.say(&format!("note: {} is copied as it is: {}", name(l.index), l.why));
    }
    let what = match done {
        [d] if input.header.is_none() => format!("containers {:?}, scales {:?}", d.data.1, d.scale.1),
        _ => format!("{} quantized, {} copied", counted(done.len(), "tensor"), left.len()),
    };
    term.say(&format!(
        "wrote {} ({} rule {}, {what}; {})",
        outputs.join(" and "),
        short(args.format),
        args.rule,
        losses(total)
    ));
    Ok(())
}

/// What happened to elements beyond rounding.
fn losses(c: Counts) -> String {
    let mut parts = vec![format!("{} saturated", c.saturated), format!("{} flushed to zero", c.flushed)];
    if c.nan > 0 {
        parts.push(format!("{} NaN", c.nan));
    }
    if c.nan_blocks > 0 {
        parts.push(format!(
            "{} with NaN or infinity",
            counted(usize::try_from(c.nan_blocks).unwrap_or(usize::MAX), "block")
        ));
    }
    parts.join(", ")
}
