//! Writes what every float32 narrows to, in the order of their bits: `every_float32 FORMAT saturate|ieee`.
//!
//! `tests/numpy/every_float32.py` compares the stream with other libraries.

use std::io::{self, Write};
use std::process::ExitCode;

use hadal_num::{Dtype, Overflow, narrow};

/// Inputs a write covers.
const PART: u32 = 1 << 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let chosen = match args.as_slice() {
        [format, overflow] => format.parse().ok().zip(match overflow.as_str() {
            "saturate" => Some(Overflow::Saturate),
            "ieee" => Some(Overflow::Ieee),
            _ => None,
        }),
        _ => None,
    };
    let Some((dtype, overflow)) = chosen else {
        eprintln!("usage: every_float32 FORMAT saturate|ieee");
        return ExitCode::from(2);
    };
    match stream(dtype, overflow) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn stream(dtype: Dtype, overflow: Overflow) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut x = vec![0.0; PART as usize];
    let mut codes = vec![0; x.len() / dtype.lanes() * dtype.bytes()];
    for first in (0..=u32::MAX).step_by(PART as usize) {
        for (x, bits) in x.iter_mut().zip(first..) {
            *x = f32::from_bits(bits);
        }
        narrow(dtype, &x, overflow, &mut codes).map_err(io::Error::other)?;
        out.write_all(&codes)?;
    }
    out.flush()
}
