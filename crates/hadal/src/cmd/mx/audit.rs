//! `hadal mx audit`: FP8 codes that one generation reads differently from another, and their cure.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use glob::Pattern;
use hadal::files::Draft;
use hadal::isa::{Gen, Target};
use hadal::npy::{self, Kind};
use hadal::num::{self, Dtype, Format, Overflow};
use hadal::safetensors::Header;
use serde_json::{Map, Value, json};

use super::input::Input;
use super::pattern;
use super::progress::Progress;
use super::quantize::copy;
use crate::cmd::load;
use crate::failure::Failure;
use crate::term::{Term, counted};

/// Bytes worked on at a time.
const AT_ONCE: usize = 1 << 20;
/// Metadata key under which a cured file says what was halved.
const NOTE: &str = "hadal.fp8-halved";

/// Find float8_e4m3fn codes that trn1 and trn2 read as infinity or NaN; with --fix, halve such tensors.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal mx audit model.safetensors --target trn2
  hadal mx audit codes.npy --target trn1 --json                    uint8 codes
  hadal mx audit model.safetensors --target trn2 --fix -o model-trn2.safetensors

trn3 reads an FP8 byte of a checkpoint as float8_e4m3fn (largest value 448). trn1 and trn2 have the legacy
float8_e4m3 (largest 240): the same bytes mean the same except 78..7F and F8..FF, where 78 is infinity and 79..7F are
NaN. 7F and FF are NaN in both.

--fix halves every element of a tensor that has codes 78..7E or F8..FE, after which none is left, and doubles its
scale: the tensor NAME_scale, NAME_scale_inv or NAME.scale beside it (F32, F16, BF16 or F8_E8M0), by which codes are
multiplied. Where there is none, the metadata entry hadal.fp8-halved and the report say that values are to be
multiplied by 2. Halving rounds only the smallest values, to nearest even; these are counted as inexact. Other
tensors are copied.")]
pub(super) struct AuditArgs {
    /// A .safetensors with F8_E4M3 tensors, or a .npy of uint8 codes; - for standard input.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Who is to read the codes: trn1, trn2 or trn3, or any other name of a target.
    #[arg(short, long, value_name = "T")]
    target: Target,
    /// Tensors of a .safetensors to look at [default: all F8_E4M3].
    #[arg(long, value_name = "GLOB", value_parser = pattern)]
    tensor: Option<Pattern>,
    /// Write a file that the target reads as meant.
    #[arg(long, requires = "output")]
    fix: bool,
    /// Where the cured file goes.
    #[arg(short, long, value_name = "OUT", requires = "fix")]
    output: Option<PathBuf>,
}

/// How often each code occurs.
type Histogram = [u64; 256];

/// One tensor of codes.
struct Audited {
    index: usize,
    codes: Histogram,
    /// The tensor that scales it.
    scale: Option<usize>,
}

impl Audited {
    fn count(&self, is: impl Fn(u8) -> bool) -> u64 {
        (0..=255u8).zip(&self.codes).filter(|(code, _)| is(*code)).map(|(_, n)| n).sum()
    }

    /// Codes 78 and F8, 256 and -256 to those who wrote them.
    fn to_infinity(&self) -> u64 {
        self.count(|c| c & 0x7F == 0x78)
    }

    fn to_nan(&self) -> u64 {
        self.count(|c| (0x79..=0x7E).contains(&(c & 0x7F)))
    }

    fn nan_in_both(&self) -> u64 {
        self.count(|c| c & 0x7F == 0x7F)
    }

    /// Elements whose value is another one to a legacy reader.
    fn changed(&self) -> u64 {
        self.to_infinity() + self.to_nan()
    }

    fn inexact(&self) -> u64 {
        self.count(|c| halved(c).1)
    }
}

/// The code of half the value, and whether that had to round.
fn halved(code: u8) -> (u8, bool) {
    let value = num::decode(Format::Float8E4m3fn, u32::from(code));
    if value.is_nan() {
        return (code, false);
    }
    // Exact: a float32 holds half of any FP8 value.
    let half = value * 0.5;
    let found = num::encode(Format::Float8E4m3fn, half, Overflow::Saturate);
    (u8::try_from(found).unwrap_or(code), num::decode(Format::Float8E4m3fn, found) != half)
}

/// Runs the command.
pub(super) fn run(args: &AuditArgs, term: Term) -> Result<(), Failure> {
    let legacy = args.target.generation != Gen::Gen4;
    if args.fix && !legacy {
        return Err(Failure::usage(
            format!("{} reads these codes as they are meant; there is nothing to fix", args.target),
            "leave out --fix, or give --target trn1 or trn2",
        ));
    }
    if args.output.as_deref() == Some(Path::new("-")) {
        return Err(Failure::usage("the report goes to standard output, the file cannot", "give -o OUT"));
    }
    if let Some(path) = &args.output {
        load::destinations(&[("-o".to_owned(), path)], &[&args.input], term)?;
    }
    let mut input = Input::open(&args.input, None)?;
    input.check_pattern(args.tensor.as_ref())?;
    let chosen = chosen(&input, args)?;
    let passes = if args.fix { 2 } else { 1 };
    let mut progress = Progress::new(chosen.iter().map(|i| size(&input, *i)).sum::<u64>() * passes, term);
    let mut audited = Vec::with_capacity(chosen.len());
    for index in chosen {
        let codes = histogram(&mut input, index, &mut progress)?;
        audited.push(Audited { index, codes, scale: None });
    }
    if let (true, Some(output)) = (args.fix, &args.output) {
        for a in audited.iter_mut().filter(|a| a.changed() > 0) {
            a.scale = match input.companions(a.index).as_slice() {
                [] => None,
                &[one] => Some(one),
                [_, _, ..] => {
                    let text = "has more than one scale beside it, and nothing says which multiplies it";
                    return Err(input.fail(
                        a.index,
                        text,
                        "leave one of NAME_scale, NAME_scale_inv, NAME.scale",
                    ));
                }
            };
        }
        match input.header.clone() {
            Some(header) => fix_checkpoint(&mut input, header, &audited, args.target, output, &mut progress)?,
            None => fix_array(&mut input, &audited, output)?,
        }
    }
    drop(progress);
    if term.json {
        term.out_json(&as_json(&input, args, legacy, &audited))
    } else {
        term.out(&table(&input, args, legacy, &audited))
    }
}

fn size(input: &Input, index: usize) -> u64 {
    input.tensor(index).map_or(0, |t| t.bytes)
}

/// The tensors that hold codes.
fn chosen(input: &Input, args: &AuditArgs) -> Result<Vec<usize>, Failure> {
    let mut chosen = Vec::new();
    for (index, t) in input.tensors.iter().enumerate() {
        let asked = args.tensor.as_ref().map(|p| p.matches(&t.name));
        match (input.header.is_some(), t.spelled.as_str(), asked) {
            (_, _, Some(false)) => {}
            (true, "F8_E4M3", _) | (false, "uint8", _) => chosen.push(index),
            (false, other, _) => {
                let text = format!("elements are {other}, codes are uint8");
                return Err(input.fail(index, text, "give an array of float8_e4m3fn codes"));
            }
            (true, other, Some(true)) => {
                let text = format!("elements are {other}, codes are F8_E4M3");
                return Err(input.fail(index, text, "let --tensor match FP8 tensors only"));
            }
            (true, _, None) => {}
        }
    }
    Ok(chosen)
}

/// Takes bytes and where in their tensor they begin.
type Each<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), Failure> + 'a;

/// Hands out a tensor's bytes in order.
fn pieces(input: &mut Input, index: usize, each: &mut Each<'_>) -> Result<(), Failure> {
    let bytes = size(input, index);
    let (mut piece, mut at) = (Vec::new(), 0);
    while at < bytes {
        piece.resize(AT_ONCE.min(usize::try_from(bytes - at).unwrap_or(AT_ONCE)), 0);
        input.read(index, at, &mut piece)?;
        each(at, &mut piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

fn histogram(input: &mut Input, index: usize, progress: &mut Progress) -> Result<Histogram, Failure> {
    let mut codes = [0; 256];
    pieces(input, index, &mut |_, piece| {
        for &code in piece.iter() {
            codes[usize::from(code)] += 1;
        }
        progress.advance(piece.len() as u64);
        Ok(())
    })?;
    Ok(codes)
}

fn halve(codes: &mut [u8]) {
    let mut table = [0; 256];
    for (code, to) in (0..=255).zip(&mut table) {
        *to = halved(code).0;
    }
    codes.iter_mut().for_each(|c| *c = table[usize::from(*c)]);
}

fn fix_array(input: &mut Input, audited: &[Audited], output: &Path) -> Result<(), Failure> {
    let mut draft = Draft::begin(output)?;
    for a in audited {
        let shape: Vec<usize> = input.tensor(a.index).map_or(Vec::new(), |t| {
            t.shape.iter().map(|d| usize::try_from(*d).unwrap_or(usize::MAX)).collect()
        });
        let head = npy::header(Kind::Unsigned, 1, &shape);
        draft.write_at(0, &head)?;
        pieces(input, a.index, &mut |at, piece| {
            if a.changed() > 0 {
                halve(piece);
            }
            Ok(draft.write_at(head.len() as u64 + at, piece)?)
        })?;
    }
    Ok(draft.finish()?)
}

fn fix_checkpoint(
    input: &mut Input,
    header: Header,
    audited: &[Audited],
    target: Target,
    output: &Path,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let cured: Vec<&Audited> = audited.iter().filter(|a| a.changed() > 0).collect();
    let mut out = header;
    if !cured.is_empty() {
        let name = |i: usize| input.tensor(i).map(|t| t.name.clone());
        let tensors: Map<String, Value> = cured
            .iter()
            .filter_map(|a| {
                let scale = a.scale.and_then(name);
                Some((name(a.index)?, json!({"factor": 2, "doubled": scale, "inexact": a.inexact()})))
            })
            .collect();
        let note =
            json!({"version": env!("CARGO_PKG_VERSION"), "target": target.to_string(), "tensors": tensors});
        out.metadata.retain(|(key, _)| key != NOTE);
        out.metadata.push((NOTE.to_owned(), note.to_string()));
    }
    // Laying out may move tensors; the input is read by its own offsets.
    let start = out.lay_out();
    let mut draft = Draft::begin(output)?;
    draft.write_at(0, &start)?;
    for index in 0..input.tensors.len() {
        let Some(name) = input.tensor(index).map(|t| t.name.clone()) else { continue };
        let to = out.entries.iter().find(|e| e.name == name).map_or(0, |e| e.offset);
        if cured.iter().any(|a| a.index == index) {
            pieces(input, index, &mut |at, piece| {
                halve(piece);
                progress.advance(piece.len() as u64);
                Ok(draft.write_at(to + at, piece)?)
            })?;
        } else if cured.iter().any(|a| a.scale == Some(index)) {
            let doubled = doubled(input, index)?;
            draft.write_at(to, &doubled)?;
        } else {
            let mut quiet = Progress::new(0, Term { quiet: true, json: false });
            copy(input, index, &mut draft, to, &mut quiet)?;
        }
    }
    Ok(draft.finish()?)
}

/// The bytes of a scale tensor with every value doubled.
fn doubled(input: &mut Input, index: usize) -> Result<Vec<u8>, Failure> {
    let spelled = input.tensor(index).map_or(String::new(), |t| t.spelled.clone());
    let dtype = match spelled.as_str() {
        "F32" => Dtype::Float32,
        "F16" => Dtype::Float16,
        "BF16" => Dtype::Bfloat16,
        "F8_E8M0" => Dtype::Float8E8m0fnu,
        other => {
            let text = format!("a scale of type {other} cannot be doubled");
            return Err(input.fail(index, text, "store it as F32, F16, BF16 or F8_E8M0"));
        }
    };
    let mut bytes = vec![0; usize::try_from(size(input, index)).unwrap_or(0)];
    input.read(index, 0, &mut bytes)?;
    let mut values = vec![0.0; bytes.len() / dtype.bytes()];
    let check = |e: num::NumError| input.fail(index, e.to_string(), "check the file");
    num::widen(dtype, &bytes, &mut values).map_err(check)?;
    let before = values.iter().filter(|v| v.is_finite()).count();
    values.iter_mut().for_each(|v| *v *= 2.0);
    num::narrow(dtype, &values, Overflow::Ieee, &mut bytes).map_err(check)?;
    num::widen(dtype, &bytes, &mut values).map_err(check)?;
    if values.iter().filter(|v| v.is_finite()).count() != before {
        return Err(input.fail(index, format!("doubling it overflows {spelled}"), "store the scale as F32"));
    }
    Ok(bytes)
}

fn name(input: &Input, index: usize) -> &str {
    input.tensor(index).map_or("", |t| t.name.as_str())
}

fn as_json(input: &Input, args: &AuditArgs, legacy: bool, audited: &[Audited]) -> Value {
    let tensors: Vec<Value> = audited
        .iter()
        .map(|a| {
            let fixed = args.fix && a.changed() > 0;
            let by_code: Map<String, Value> = (0..=255u8)
                .zip(&a.codes)
                .filter(|(code, n)| code & 0x7F >= 0x78 && **n > 0)
                .map(|(code, n)| (format!("{code:02X}"), json!(n)))
                .collect();
            json!({
                "name": name(input, a.index), "shape": input.tensor(a.index).map(|t| t.shape.clone()),
                "elements": a.count(|_| true), "codes": by_code,
                "differ": if legacy { a.changed() } else { 0 },
                "to_infinity": if legacy { a.to_infinity() } else { 0 },
                "to_nan": if legacy { a.to_nan() } else { 0 },
                "nan_in_both": a.nan_in_both(),
                "fixed": fixed, "factor": if fixed { 2 } else { 1 },
                "scale": a.scale.map(|s| name(input, s)),
                "inexact": if fixed { a.inexact() } else { 0 },
            })
        })
        .collect();
    json!({
        "input": input.name, "target": args.target.to_string(),
        "reads": if legacy { "float8_e4m3" } else { "float8_e4m3fn" },
        "differ": if legacy { audited.iter().map(Audited::changed).sum() } else { 0 },
        "tensors": tensors, "output": args.output.as_ref().map(|o| o.display().to_string()),
    })
}

fn table(input: &Input, args: &AuditArgs, legacy: bool, audited: &[Audited]) -> String {
    let mut out = String::new();
    let target = args.target;
    // Writing to a string cannot fail.
    for a in audited {
        let name = if input.header.is_some() { name(input, a.index) } else { &input.name };
        let _ = write!(out, "{name}: {} codes, ", a.count(|_| true));
        if legacy {
            let _ = write!(
                out,
                "{} differ ({} become infinity, {} NaN)",
                a.changed(),
                a.to_infinity(),
                a.to_nan()
            );
        } else {
            let _ = write!(out, "none differ");
        }
        let _ = writeln!(out, ", {} NaN in both", a.nan_in_both());
        if args.fix && a.changed() > 0 {
            let scale = match a.scale {
                Some(s) => format!("{} doubled", self::name(input, s)),
                None => "no scale beside it: multiply by 2".to_owned(),
            };
            let _ = writeln!(out, "  halved, {} inexact; {scale}", a.inexact());
        }
    }
    let differ = audited.iter().filter(|a| legacy && a.changed() > 0).count();
    let reads = if legacy { "legacy float8_e4m3" } else { "float8_e4m3fn" };
    let _ = writeln!(
        out,
        "{target} reads {reads}: {differ} of {} with codes that differ",
        counted(audited.len(), "tensor")
    );
    if let Some(output) = &args.output {
        let _ = writeln!(out, "wrote {}", output.display());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_known_codes() {
        // 448 and 256 to 224 and 128; 2 to 1; NaN and the zeros stay.
        for (code, half) in [
            (0x7E, 0x76),
            (0x78, 0x70),
            (0xF8, 0xF0),
            (0x40, 0x38),
            (0x7F, 0x7F),
            (0xFF, 0xFF),
            (0x00, 0x00),
            (0x80, 0x80),
        ] {
            assert_eq!(halved(code), (half, false), "{code:02X}");
        }
        // Subnormals are multiples of 2^-9: 3 of them halve to the tie 1.5 and round to 2, 1 to 0, 9 (the normal
        // 09) to 4.5 and 4; 2 to 1 exactly.
        assert_eq!(halved(3), (2, true));
        assert_eq!(halved(1), (0, true));
        assert_eq!(halved(9), (4, true));
        assert_eq!(halved(2), (1, false));
    }

    #[test]
    fn no_half_reads_differently() {
        for code in 0..=255u8 {
            let half = u32::from(halved(code).0);
            let ours = num::decode(Format::Float8E4m3fn, half);
            let legacy = num::decode(Format::Float8E4m3, half);
            assert!(ours == legacy || ours.is_nan() && legacy.is_nan(), "{code:02X}");
        }
    }
}
