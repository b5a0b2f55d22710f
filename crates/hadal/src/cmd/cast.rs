//! `hadal cast`: arrays between element formats.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hadal::files;
use hadal::npy::{self, Kind, Npy};
use hadal::num::{self, Dtype, Format, Overflow};
use hadal::sim::bind::{Array, ArrayDtype};
use serde_json::json;

use super::{arrays, load};
use crate::failure::Failure;
use crate::term::Term;

/// Convert an array from one element format to another, rounding to nearest even.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal cast x.npy --to float8_e4m3fn -o x.fp8.npy                 float32 to codes (uint8)
  hadal cast x.npy --to e4m3 --overflow saturate -o x.fp8.npy
  hadal cast x.fp8.npy --from float8_e4m3fn --to float32 -o y.npy  codes back to values

Formats: uint8 int8 uint16 int16 uint32 int32 float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3fn
float8_e8m0fnu float8_e5m2 bfloat16 float16 float32 float32r, and the containers of four float4_e2m1fn_x4
float8_e4m3fn_x4 float8_e5m2_x4. Short names: e2m1 e3m4 e4m3 e4m3fn e8m0 e5m2 bf16 fp16 fp32 fp32r.
Narrow formats are stored as unsigned bit patterns, float32 and integers as themselves.")]
pub(crate) struct CastArgs {
    /// The array; - for standard input.
    input: PathBuf,
    /// Format of the result.
    #[arg(long, value_name = "FORMAT", value_parser = element)]
    to: Element,
    /// What an integer array's bits are; not needed for a float array.
    #[arg(long, value_name = "FORMAT", value_parser = element)]
    from: Option<Element>,
    /// What becomes of values beyond the largest: the largest, or infinity (NaN where there is none).
    #[arg(long, value_enum, value_name = "RULE", default_value = "ieee")]
    overflow: OverflowName,
    /// Where the result goes; - for standard output.
    #[arg(short, long, value_name = "OUT.npy")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OverflowName {
    Saturate,
    Ieee,
}

/// A container type, or the FP4 code that has no container of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Container(Dtype),
    Fp4,
}

impl Element {
    fn name(self) -> &'static str {
        match self {
            Element::Container(d) => d.name(),
            Element::Fp4 => Format::Float4E2m1fn.name(),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Element::Container(d) => d.bytes(),
            Element::Fp4 => 1,
        }
    }

    fn lanes(self) -> usize {
        match self {
            Element::Container(d) => d.lanes(),
            Element::Fp4 => 1,
        }
    }
}

fn element(name: &str) -> Result<Element, String> {
    let long = match name {
        "e2m1" => "float4_e2m1fn",
        "e3m4" => "float8_e3m4",
        "e4m3" => "float8_e4m3",
        "e4m3fn" => "float8_e4m3fn",
        "e8m0" => "float8_e8m0fnu",
        "e5m2" => "float8_e5m2",
        "bf16" => "bfloat16",
        "fp16" => "float16",
        "fp32" => "float32",
        "fp32r" => "float32r",
        other => other,
    };
    if long == Format::Float4E2m1fn.name() {
        return Ok(Element::Fp4);
    }
    match Dtype::from_name(long) {
        Some(d) if d.format().is_some() => Ok(Element::Container(d)),
        Some(d) => Err(format!("{d} has no conversion to or from float32")),
        None => Err("unknown format; hadal cast --help lists them".to_owned()),
    }
}

/// Runs the command.
pub(crate) fn run(args: &CastArgs, term: Term) -> Result<(), Failure> {
    load::destinations(&[("-o".to_owned(), &args.output)], &[&args.input], term)?;
    let source = files::read(&args.input)?;
    let fail = |text: String, remedy| Failure::Cast { name: source.name.clone(), text, remedy };
    let array =
        npy::read(&source.bytes).map_err(|error| Failure::Npy { name: source.name.clone(), error })?;
    let (values, mut shape) = values(array, args).map_err(|(text, remedy)| fail(text, remedy))?;
    let lanes = args.to.lanes();
    if lanes > 1 {
        match shape.last_mut() {
            Some(last) if last.is_multiple_of(lanes) => *last /= lanes,
            _ => {
                return Err(fail(
                    format!("the last dimension of {shape:?} is no multiple of {lanes}"),
                    "pad the array, or cast to a format of one element",
                ));
            }
        }
    }
    let overflow = match args.overflow {
        OverflowName::Saturate => Overflow::Saturate,
        OverflowName::Ieee => Overflow::Ieee,
    };
    let result =
        narrowed(&values, shape, args.to, overflow).map_err(|e| fail(e.to_string(), "check the array"))?;
    load::put(&args.output, &npy::write(&result), term)?;
    if files::is_stdout(&args.output) {
        return Ok(());
    }
    if term.json {
        return term.out_json(&json!({
            "output": args.output.display().to_string(), "format": args.to.name(), "shape": result.shape,
        }));
    }
    term.say(&format!("wrote {} ({} {:?})", args.output.display(), args.to.name(), result.shape));
    Ok(())
}

type Refused = (String, &'static str);

/// Elements before they are rounded, in a type that holds them all.
#[derive(Debug, PartialEq)]
enum Values {
    F32(Vec<f32>),
    /// float64 arrays, and 32-bit integers, which float32 would round.
    F64(Vec<f64>),
}

/// The elements of the array, unrounded, and its logical shape.
fn values(npy: Npy, args: &CastArgs) -> Result<(Values, Vec<usize>), Refused> {
    if npy.kind == Kind::Float {
        let same = match npy.size {
            2 => Some(Dtype::Float16),
            4 => Some(Dtype::Float32),
            _ => None,
        };
        if let Some(from) = args.from.filter(|f| Some(*f) != same.map(Element::Container)) {
            return Err((
                format!("--from {} says what integer bits are, the array is {npy}", from.name()),
                "leave --from out",
            ));
        }
        let shape = npy.shape.clone();
        let Array { dtype, data, .. } = arrays::from_npy(npy);
        let values = match dtype {
            ArrayDtype::F64 => {
                Values::F64(data.as_chunks().0.iter().map(|c| f64::from_le_bytes(*c)).collect())
            }
            ArrayDtype::F16 => Values::F32(widened(Dtype::Float16, &data)?),
            _ => Values::F32(widened(Dtype::Float32, &data)?),
        };
        return Ok((values, shape));
    }
    let Some(from) = args.from else {
        return Err((
            format!("the array is {npy}, and nothing says what its bits are"),
            "give --from FORMAT",
        ));
    };
    if from.bytes() != npy.size {
        return Err((
            format!("{} takes {} bytes an element, the array is {npy}", from.name(), from.bytes()),
            "give the format whose codes the array holds",
        ));
    }
    let mut shape = npy.shape;
    if let Some(last) = shape.last_mut() {
        *last *= from.lanes();
    }
    let values = match from {
        Element::Fp4 => Values::F32(
            npy.data.iter().map(|b| num::decode(Format::Float4E2m1fn, u32::from(b & 15))).collect(),
        ),
        Element::Container(Dtype::Int32) => {
            Values::F64(npy.data.as_chunks().0.iter().map(|c| i32::from_le_bytes(*c).into()).collect())
        }
        Element::Container(Dtype::Uint32) => {
            Values::F64(npy.data.as_chunks().0.iter().map(|c| u32::from_le_bytes(*c).into()).collect())
        }
        Element::Container(d) => Values::F32(widened(d, &npy.data)?),
    };
    Ok((values, shape))
}

fn widened(dtype: Dtype, data: &[u8]) -> Result<Vec<f32>, Refused> {
    let mut out = vec![0.0; data.len() / dtype.bytes() * dtype.lanes()];
    num::widen(dtype, data, &mut out).map_err(|e| (e.to_string(), "check the array"))?;
    Ok(out)
}

/// Rounds once to the format.
fn narrowed(
    values: &Values,
    shape: Vec<usize>,
    to: Element,
    overflow: Overflow,
) -> Result<Npy, num::NumError> {
    match to {
        Element::Fp4 => {
            let code = |v: f32| u8::try_from(num::encode(Format::Float4E2m1fn, v, overflow)).unwrap_or(0);
            let data = match values {
                Values::F32(v) => v.iter().map(|x| code(*x)).collect(),
                Values::F64(v) => v.iter().map(|x| code(num::round_to_odd(*x))).collect(),
            };
            Ok(Npy { kind: Kind::Unsigned, size: 1, shape, data })
        }
        Element::Container(d) => {
            let len = match values {
                Values::F32(v) => v.len(),
                Values::F64(v) => v.len(),
            };
            let mut data = vec![0u8; len / d.lanes() * d.bytes()];
            match values {
                Values::F32(v) => num::narrow(d, v, overflow, &mut data)?,
                Values::F64(v) => num::narrow_f64(d, v, overflow, &mut data)?,
            }
            let dtype = ArrayDtype::unsigned(d.bytes()).unwrap_or(ArrayDtype::U32);
            Ok(arrays::native(&Array { dtype, shape, data }, d))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(x: &Values, to: &str) -> Vec<u8> {
        narrowed(x, vec![1], element(to).unwrap(), Overflow::Ieee).unwrap().data
    }

    #[test]
    fn float64_is_rounded_once() {
        // Just above the tie between 1 and the next float16 (the nearest is 3C01); float32 loses the excess.
        let x = Values::F64(vec![1.0 + 2f64.powi(-11) + 2f64.powi(-40)]);
        assert_eq!(cast(&x, "fp16"), 0x3C01u16.to_le_bytes());
        // A hair above the tie between 0 and 0.5.
        assert_eq!(cast(&Values::F64(vec![0.25 + 2f64.powi(-40)]), "float4_e2m1fn"), [1]);
        assert_eq!(cast(&Values::F64(vec![16_777_217.0]), "int32"), 16_777_217_i32.to_le_bytes());
    }

    #[test]
    fn wide_integers_are_not_rounded_on_the_way() {
        let args = |to: &str| CastArgs {
            input: PathBuf::new(),
            to: element(to).unwrap(),
            from: element("int32").ok(),
            overflow: OverflowName::Ieee,
            output: PathBuf::new(),
        };
        // Above the tie between 2^24 and the next bfloat16, by less than float32 can hold.
        let x = (1_i32 << 30) + (1 << 22) + 1;
        let npy = || Npy { kind: Kind::Signed, size: 4, shape: vec![1], data: x.to_le_bytes().to_vec() };
        let (v, _) = values(npy(), &args("int32")).unwrap();
        assert_eq!(cast(&v, "int32"), x.to_le_bytes());
        assert_eq!(cast(&v, "bf16"), 0x4E81u16.to_le_bytes());
    }

    #[test]
    fn names() {
        assert_eq!(element("e4m3fn"), Ok(Element::Container(Dtype::Float8E4m3fn)));
        assert_eq!(element("float4_e2m1fn"), Ok(Element::Fp4));
        assert!(element("int64").is_err());
        assert!(element("fp8").is_err());
    }
}
