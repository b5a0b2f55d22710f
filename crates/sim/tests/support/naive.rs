//! A third model of execution, written from the rules alone: one element at a time, every byte a cell of its
//! own. It shares nothing with the executors but the single-code casts of `hadal_num`, and it runs the program
//! as its author wrote it, before any pass.
#![allow(dead_code, unreachable_pub, missing_docs)]

mod blocks;

use hadal_ir::program::{AluOp, Ap, Calc, Immediate, LocKind, Matmult, MemLoc, Op, Program};
use hadal_isa::{Gen, PerfMode, Target};
use hadal_num::{Dtype, Format, Overflow, decode, encode};
use hadal_sim::memory::Plane;
use hadal_sim::{Fp32Mode, Machine, Options, Uninit};

/// One partition of a memory, byte by byte.
struct Row {
    /// 0 where nothing was written.
    bytes: Vec<u8>,
    written: Vec<bool>,
    /// 1 + the location whose matmul wrote the byte last; 0 when something else did.
    started: Vec<u32>,
}

impl Row {
    fn put(&mut self, at: usize, bytes: &[u8], started: u32) {
        for (i, byte) in bytes.iter().enumerate() {
            (self.bytes[at + i], self.written[at + i], self.started[at + i]) = (*byte, true, started);
        }
    }
}

const SBUF: usize = 0;
const PSUM: usize = 1;

/// SBUF, PSUM, and every DRAM tensor as a memory of one partition.
pub struct Naive {
    planes: Vec<(String, Vec<Row>)>,
    locs: Vec<MemLoc>,
    target: Target,
    options: Options,
    auto: Option<bool>,
}

/// Why the model stopped; only that it did is compared.
pub type Stop = String;

/// Memory, partition, byte.
type Address = (usize, usize, usize);

fn format(dtype: Dtype) -> Format {
    Format::from_name(dtype.name()).unwrap_or_else(|| panic!("{dtype}"))
}

/// Four codes for x4 containers, one for the others.
fn codes(dtype: Dtype, bytes: &[u8]) -> Vec<u32> {
    match dtype {
        Dtype::Float4E2m1fnX4 => vec![bytes[0] & 15, bytes[0] >> 4, bytes[1] & 15, bytes[1] >> 4]
            .into_iter()
            .map(u32::from)
            .collect(),
        Dtype::Float8E4m3fnX4 | Dtype::Float8E5m2X4 => bytes.iter().map(|b| u32::from(*b)).collect(),
        _ => vec![bytes.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b))],
    }
}

fn lane_format(dtype: Dtype) -> Format {
    match dtype {
        Dtype::Float4E2m1fnX4 => Format::Float4E2m1fn,
        Dtype::Float8E4m3fnX4 => Format::Float8E4m3fn,
        Dtype::Float8E5m2X4 => Format::Float8E5m2,
        other => format(other),
    }
}

fn value(dtype: Dtype, bytes: &[u8]) -> f32 {
    decode(format(dtype), codes(dtype, bytes)[0])
}

fn store(dtype: Dtype, x: f32, overflow: Overflow) -> Vec<u8> {
    encode(format(dtype), x, overflow).to_le_bytes()[..dtype.bytes()].to_vec()
}

/// float32 rounded to 10 mantissa bits, ties to even, by looking at both neighbours.
fn tf32(x: f32) -> f32 {
    let low = f32::from_bits(x.to_bits() & !0x1FFF);
    let high = f32::from_bits((x.to_bits() & !0x1FFF).wrapping_add(0x2000));
    let (a, b) = (f64::from(x) - f64::from(low), f64::from(high) - f64::from(x));
    if !x.is_finite() || a.abs() < b.abs() {
        low
    } else if b.abs() < a.abs() {
        high
    } else if low.to_bits() & 0x2000 == 0 {
        low
    } else {
        high
    }
}

impl Naive {
    /// The memory of `machine`, as far as the placed locations of `program` reach.
    pub fn new(machine: &Machine, placed: &Program, target: Target, options: Options) -> Naive {
        let end = |sb: bool| {
            let inside = placed.locs.iter().filter(|l| matches!(l.kind, LocKind::Sb { .. }) == sb);
            let ends = inside
                .filter(|l| !matches!(l.kind, LocKind::Dram { .. }))
                .map(|l| l.byte_offset().unwrap() as usize + usize::try_from(l.bytes()).unwrap());
            ends.max().unwrap_or(0)
        };
        let row = |plane: &Plane, p: usize, width: usize| {
            let mut written = vec![false; width];
            for (i, part) in written.chunks_mut(64).enumerate() {
                if plane.count_written(p, 64 * i, part.len()) > 0 {
                    part.iter_mut().enumerate().for_each(|(j, w)| *w = plane.is_written(p, 64 * i + j));
                }
            }
            Row { bytes: plane.get(p, 0, width).unwrap().to_vec(), written, started: vec![0; width] }
        };
        let all = |plane, width| (0..128).map(|p| row(plane, p, width)).collect::<Vec<_>>();
        // All of PSUM: a START may clear whole banks.
        let psum = if end(false) > 0 { 16384 } else { 0 };
        let mut planes = vec![
            ("SBUF".to_owned(), all(&machine.sbuf, end(true))),
            ("PSUM".to_owned(), all(&machine.psum, psum)),
        ];
        for name in machine.dram.names() {
            let plane = machine.dram.tensor(name).unwrap();
            planes.push((name.to_owned(), vec![row(plane, 0, plane.width())]));
        }
        let auto = placed.attrs.auto_psum_accumulate;
        Naive { planes, locs: placed.locs.clone(), target, options, auto }
    }

    /// Where a run's memory differs from the model's.
    pub fn difference(&self, machine: &Machine) -> Option<String> {
        for (name, rows) in &self.planes {
            let plane = match name.as_str() {
                "SBUF" => &machine.sbuf,
                "PSUM" => &machine.psum,
                name => machine.dram.tensor(name).unwrap(),
            };
            for (p, row) in rows.iter().enumerate() {
                let (width, bytes) = (row.bytes.len(), plane.get(p, 0, row.bytes.len()).unwrap());
                let count = row.written.iter().filter(|w| **w).count();
                let same = plane.count_written(p, 0, plane.width()) == count;
                // Where as many bytes were written, none was unless the model's was.
                let mut wrong = (0..width).step_by(64).filter(|at| {
                    let part = *at..(at + 64).min(width);
                    let written = &row.written[part.clone()];
                    (!same || written.contains(&true))
                        && (row.bytes[part.clone()] != bytes[part.clone()]
                            || part.clone().any(|i| plane.is_written(p, i) != row.written[i]))
                });
                if let Some(at) = wrong.next() {
                    let differs =
                        |i: &usize| bytes[*i] != row.bytes[*i] || plane.is_written(p, *i) != row.written[*i];
                    let i = (at..width).find(differs).unwrap();
                    return Some(format!(
                        "{name} partition {p} byte {i}: {:02X} (written {}) against {:02X} ({}) in the model",
                        bytes[i],
                        plane.is_written(p, i),
                        row.bytes[i],
                        row.written[i]
                    ));
                }
                if plane.count_written(p, width, plane.width() - width) > 0 {
                    return Some(format!("{name} partition {p}: bytes past every location were written"));
                }
            }
        }
        None
    }

    /// Runs a program as written.
    pub fn run(&mut self, program: &Program) -> Result<(), Stop> {
        program.instrs.iter().try_for_each(|i| self.step(&i.op))
    }

    /// Addresses of the elements of one row, from element number to dimension indices by division.
    fn address(&self, ap: &Ap, row: usize, element: usize) -> Address {
        let loc = &self.locs[ap.loc.0 as usize];
        let (mut rest, mut containers) = (element as i64, 0i64);
        for pair in ap.pattern[1..].iter().rev() {
            containers += pair.step * (rest % pair.num as i64);
            rest /= pair.num as i64;
        }
        let size = ap.dtype.bytes() as i64;
        let along = ap.pattern[0].step * row as i64;
        let (space, partition) = match &loc.kind {
            LocKind::Sb { partition, .. } => (SBUF, partition.unwrap()),
            LocKind::Psum { partition, .. } => (PSUM, partition.unwrap()),
            LocKind::Dram { .. } => {
                let tensor = self.planes.iter().position(|p| p.0 == loc.name).unwrap();
                let byte = ap.offset as i64 + (along + containers) * size;
                return (tensor, 0, usize::try_from(byte).unwrap());
            }
        };
        let byte = i64::from(loc.byte_offset().unwrap()) + ap.offset as i64 + containers * size;
        let partition = i64::from(partition) + i64::from(ap.partition) + along;
        (space, usize::try_from(partition).unwrap(), usize::try_from(byte).unwrap())
    }

    fn row(&mut self, at: Address) -> &mut Row {
        &mut self.planes[at.0].1[at.1]
    }

    fn read_at(&self, at: Address, size: usize) -> Result<Vec<u8>, Stop> {
        let (row, bytes) = (&self.planes[at.0].1[at.1], at.2..at.2 + size);
        if row.written[bytes.clone()].contains(&false) && self.options.uninit == Uninit::Error {
            return Err(format!("never written: {at:?}"));
        }
        let unwritten = if self.options.uninit == Uninit::Nan { 0xFF } else { 0 };
        Ok(bytes.map(|i| if row.written[i] { row.bytes[i] } else { unwritten }).collect())
    }

    fn read(&self, ap: &Ap, row: usize, element: usize) -> Result<Vec<u8>, Stop> {
        self.read_at(self.address(ap, row, element), ap.dtype.bytes())
    }

    /// What any engine but the array writes.
    fn write(&mut self, ap: &Ap, row: usize, element: usize, bytes: &[u8]) {
        let at = self.address(ap, row, element);
        self.row(at).put(at.2, bytes, 0);
    }

    /// All elements, row by row.
    fn all(&self, ap: &Ap) -> Result<Vec<Vec<u8>>, Stop> {
        let (rows, per_row) = size(ap);
        (0..rows * per_row).map(|i| self.read(ap, i / per_row, i % per_row)).collect()
    }

    fn put_all(&mut self, ap: &Ap, elements: &[Vec<u8>]) {
        let (_, per_row) = size(ap);
        for (i, bytes) in elements.iter().enumerate() {
            self.write(ap, i / per_row, i % per_row, bytes);
        }
    }

    fn floats(&self, ap: &Ap) -> Result<Vec<f32>, Stop> {
        Ok(self.all(ap)?.iter().map(|b| value(ap.dtype, b)).collect())
    }

    fn put_floats(&mut self, ap: &Ap, values: &[f32]) {
        let bytes: Vec<Vec<u8>> = values.iter().map(|v| store(ap.dtype, *v, Overflow::Ieee)).collect();
        self.put_all(ap, &bytes);
    }

    fn step(&mut self, op: &Op) -> Result<(), Stop> {
        match op {
            Op::Matmult(m) => self.matmult(m),
            Op::MatmultSparse(m) => self.sparse(m),
            Op::MatmultMx(m) => self.mx(m),
            Op::QuantizeMx { src, data, scale } => self.quantize(src, data, scale),
            Op::DmaCopy { dst, src } => {
                let bytes = self.all(src)?;
                self.put_all(dst, &bytes);
                Ok(())
            }
            Op::TensorCopy { dst, src } if dst.dtype == src.dtype => {
                let bytes = self.all(src)?;
                self.put_all(dst, &bytes);
                Ok(())
            }
            Op::TensorCopy { dst, src } => {
                let values = self.floats(src)?;
                self.put_floats(dst, &values);
                Ok(())
            }
            Op::Memset { dst, value } => {
                let (rows, per_row) = size(dst);
                let one = match value {
                    Immediate::Int(i) if dst.dtype.is_integer() => {
                        i.to_le_bytes()[..dst.dtype.bytes()].to_vec()
                    }
                    v => store(dst.dtype, v.as_f32(), Overflow::Ieee),
                };
                self.put_all(dst, &vec![one; rows * per_row]);
                Ok(())
            }
            Op::TensorTensor { dst, src0, src1, op } => {
                let (a, b) = (self.floats(src0)?, self.floats(src1)?);
                let f = |(a, b): (&f32, &f32)| if *op == AluOp::Add { a + b } else { a * b };
                let out: Vec<f32> = a.iter().zip(&b).map(f).collect();
                self.put_floats(dst, &out);
                Ok(())
            }
            Op::TensorScalar { dst, src, operand0, .. } => {
                let out: Vec<f32> = self.floats(src)?.iter().map(|v| v * operand0.as_f32()).collect();
                self.put_floats(dst, &out);
                Ok(())
            }
            other => panic!("the model has no {}", other.name()),
        }
    }

    /// An operand of the dense array.
    fn operand(&self, ap: &Ap, row: usize, element: usize, zero: u8) -> Result<f32, Stop> {
        let x = value(ap.dtype, &self.read(ap, row, element)?);
        let x = if ap.dtype == Dtype::Float32r { tf32(x) } else { x };
        Ok(if zero == 0 { x } else { x - f32::from(zero) })
    }

    /// An operand that may be a gather: the element, or the one at the position of that number.
    fn picked(&self, ap: &Ap, row: usize, element: usize, zero: u8) -> Result<f32, Stop> {
        let Some(index) = &ap.index else { return self.operand(ap, row, element, zero) };
        let list = self.read(index, if size(index).0 == 1 { 0 } else { row }, element)?;
        let at = codes(index.dtype, &list)[0] as usize;
        let mut one = ap.clone();
        let step = ap.pattern.last().unwrap().step as usize;
        one.offset += (at * step * one.dtype.bytes()) as u64;
        self.operand(&one, row, 0, zero)
    }

    fn matmult(&mut self, m: &Matmult) -> Result<(), Stop> {
        let ((rows, n_all), (_, m_all)) = (size(&m.ifmap), size(&m.weights));
        let planes = if m.perf_mode == PerfMode::None { 1 } else { 2 };
        let n_count = m.ifmap.index.as_ref().map_or(n_all, |i| size(i).1) / planes;
        let m_count = m.weights.index.as_ref().map_or(m_all, |i| size(i).1) / planes;
        let start = match m.calc {
            Calc::Auto => None,
            Calc::Explicit(f) => Some(f.start),
        };
        // Values of the stationary operand, by row, plane and column.
        let weight = |k: usize, r: usize, c: usize| -> Result<f32, Stop> {
            let element = match m.perf_mode {
                PerfMode::DoubleRowSwInterleave => 2 * c + r,
                _ => r * m_count + c,
            };
            let zero = m.zero_point_weights.unwrap_or(0);
            self.picked(&m.weights, k, element, zero)
        };
        if m.is_transpose && self.target.generation != Gen::Gen2 {
            let mut out = Vec::new();
            for c in 0..m_count {
                for n in 0..n_count {
                    let mut bits = vec![0; m.weights.dtype.bytes()];
                    for k in 0..rows {
                        if self.picked(&m.ifmap, k, n, 0)? != 0.0 {
                            bits = self.read(&m.weights, k, c)?;
                        }
                    }
                    bits.resize(m.out.dtype.bytes(), 0);
                    out.push(bits);
                }
            }
            for (i, bits) in out.iter().enumerate() {
                let at = self.address(&m.out, i / n_count, i % n_count);
                self.row(at).put(at.2, bits, 1 + m.out.loc.0);
            }
            return Ok(());
        }
        let mut w = Vec::new();
        for k in 0..rows {
            for r in 0..planes {
                w.push((0..m_count).map(|c| weight(k, r, c)).collect::<Result<Vec<f32>, Stop>>()?);
            }
        }
        let mut x = Vec::new();
        for k in 0..rows {
            for r in 0..planes {
                let zero = m.zero_point_ifmap.unwrap_or(0);
                let row = (0..n_count).map(|n| self.picked(&m.ifmap, k, r * n_count + n, zero));
                x.push(row.collect::<Result<Vec<f32>, Stop>>()?);
            }
        }
        let two_pass = m.weights.dtype == Dtype::Float32 && self.options.fp32 == Fp32Mode::TwoPass;
        let region = m.psum_zero_region.unwrap_or(0);
        if !two_pass {
            return self.accumulate(&m.out, &product(&w, &x), start, region);
        }
        let hi: Vec<Vec<f32>> = w.iter().map(|r| r.iter().map(|v| tf32(*v)).collect()).collect();
        let rest = |a: f32, h: f32| if h.is_finite() { a - h } else { 0.0 };
        let lo: Vec<Vec<f32>> =
            w.iter().zip(&hi).map(|(a, h)| a.iter().zip(h).map(|(a, h)| rest(*a, *h)).collect()).collect();
        self.accumulate(&m.out, &product(&hi, &x), start, region)?;
        self.add(&m.out, &product(&lo, &x))
    }

    /// One float32 add per element to what is there.
    fn add(&mut self, out: &Ap, sums: &[Vec<f32>]) -> Result<(), Stop> {
        for (row, line) in sums.iter().enumerate() {
            for (n, sum) in line.iter().enumerate() {
                let old = value(out.dtype, &self.read(out, row, n)?);
                self.psum(out, row, n, sum + old);
            }
        }
        Ok(())
    }

    fn psum(&mut self, out: &Ap, row: usize, n: usize, x: f32) {
        let bytes = store(out.dtype, x, Overflow::Ieee);
        let at = self.address(out, row, n);
        self.row(at).put(at.2, &bytes, 1 + out.loc.0);
    }

    /// The writeback of sums, `[m][n]`; `start` is what the author said, `None` for auto.
    fn accumulate(
        &mut self,
        out: &Ap,
        sums: &[Vec<f32>],
        start: Option<bool>,
        region: u8,
    ) -> Result<(), Stop> {
        if start == Some(true) && region > 0 {
            let span = 2048usize << region;
            let (_, _, byte) = self.address(out, 0, 0);
            for row in 0..sums.len() {
                let at = self.address(out, row, 0);
                let banks = byte / span * span..byte / span * span + span;
                self.row(at).bytes[banks.clone()].fill(0);
                self.row(at).written[banks].fill(true);
            }
        }
        // First each element's decision, then the writes: an element's own matmul is not its first writer.
        let size = out.dtype.bytes();
        let mut results = Vec::new();
        for (row, line) in sums.iter().enumerate() {
            for (n, sum) in line.iter().enumerate() {
                let at = self.address(out, row, n);
                let (cells, bytes) = (&self.planes[at.0].1[at.1], at.2..at.2 + size);
                let adds = match (self.auto, start) {
                    (Some(true), _) => !cells.written[bytes].contains(&false),
                    (Some(false), _) => false,
                    (None, Some(start)) => !start,
                    (None, None) => cells.started[bytes].iter().all(|s| *s == 1 + out.loc.0),
                };
                // Above level 40 a dense START is a Memset, onto which everything is added.
                let zeroed = self.target.level > 40 && !adds;
                let old = match (adds, zeroed) {
                    (true, _) => Some(value(out.dtype, &self.read_at(at, size)?)),
                    (_, true) => Some(0.0),
                    _ => None,
                };
                results.push((row, n, old.map_or(*sum, |old| sum + old)));
            }
        }
        results.into_iter().for_each(|(row, n, x)| self.psum(out, row, n, x));
        Ok(())
    }
}

/// Rows and elements of a row.
fn size(ap: &Ap) -> (usize, usize) {
    let count = |p: &[hadal_ir::program::Pair]| p.iter().map(|p| p.num as usize).product();
    (ap.pattern[0].num as usize, count(&ap.pattern[1..]))
}

/// `out[m][n]` from +0, contraction ascending, each product rounded before its add.
fn product(w: &[Vec<f32>], x: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let mut out = vec![vec![0f32; x[0].len()]; w[0].len()];
    for (w, x) in w.iter().zip(x) {
        for (line, a) in out.iter_mut().zip(w) {
            for (sum, b) in line.iter_mut().zip(x) {
                let term = a * b;
                *sum += term;
            }
        }
    }
    out
}
