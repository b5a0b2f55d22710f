//! Sparse and block-scaled products, and quantization, of the naive model.

use hadal_ir::program::{Ap, MatmultMx, MatmultSparse};
use hadal_num::{Dtype, Overflow, decode, encode};
use hadal_sim::{Fp32Mode, ScaleRule};

use super::{Address, Naive, Stop, codes, lane_format, product, size, tf32};

impl Naive {
    pub(super) fn sparse(&mut self, m: &MatmultSparse) -> Result<(), Stop> {
        let ratio = m.compress_ratio as usize;
        let (n_count, m_count) = (size(&m.ifmap).1 / ratio, size(&m.weights).1);
        let two_pass = m.weights.dtype == Dtype::Float32 && self.options.fp32 == Fp32Mode::TwoPass;
        let mut x = Vec::new();
        for p in 0..128 {
            let row = (0..ratio * n_count).map(|e| self.operand(&m.ifmap, p, e, 0));
            x.push(row.collect::<Result<Vec<f32>, Stop>>()?);
        }
        // The low pass comes first in a sparse matmul.
        for pass in if two_pass { &[1, 2][..] } else { &[0][..] } {
            let mut sums = vec![vec![0f32; n_count]; m_count];
            for p in 0..128 {
                for (c, line) in sums.iter_mut().enumerate() {
                    let word = codes(Dtype::Uint16, &self.read(&m.tags, p, c / 4)?)[0];
                    let tag = (word >> (4 * (c % 4)) & 15) as usize;
                    let full = self.operand(&m.weights, p, c, 0)?;
                    let w = match pass {
                        0 => full,
                        1 => full - tf32(full),
                        _ => tf32(full),
                    };
                    for (n, sum) in line.iter_mut().enumerate() {
                        let from = (4 * (p / 4) + tag / ratio, (tag % ratio) * n_count + n);
                        *sum += w * x[from.0][from.1];
                    }
                }
            }
            if *pass == 2 {
                self.add(&m.out, &sums)?;
            } else {
                self.accumulate(&m.out, &sums, Some(true), 0)?;
            }
        }
        Ok(())
    }

    /// Partition and byte of the scale of a container.
    fn scale_at(&self, data: &Ap, scale: &Ap, row: usize, column: usize) -> Address {
        let mut along = scale.clone();
        // The scales follow the direction of the data; only their start counts.
        along.pattern = vec![scale.pattern[0], *data.pattern.get(1).unwrap()];
        let (space, partition, byte) = self.address(&along, 0, column);
        (space, partition + (row / 8) % 4 + 32 * (row / 32), byte)
    }

    /// `[4 * partitions][columns]`, partition then lane.
    fn mx_values(&self, data: &Ap, scale: &Ap) -> Result<Vec<Vec<f32>>, Stop> {
        let (rows, columns) = size(data);
        let mut out = Vec::new();
        for p in 0..rows {
            let mut lanes = vec![Vec::new(); 4];
            for c in 0..columns {
                let code = self.read_at(self.scale_at(data, scale, p, c), 1)?[0];
                for (lane, bits) in lanes.iter_mut().zip(codes(data.dtype, &self.read(data, p, c)?)) {
                    let x = f64::from(decode(lane_format(data.dtype), bits));
                    // Exact in float64, rounded once.
                    lane.push((x * 2f64.powi(i32::from(code) - 127)) as f32);
                }
            }
            out.extend(lanes);
        }
        Ok(out)
    }

    pub(super) fn mx(&mut self, m: &MatmultMx) -> Result<(), Stop> {
        let w = self.mx_values(&m.weights, &m.weights_scale)?;
        let x = self.mx_values(&m.ifmap, &m.ifmap_scale)?;
        let start = m.accumulate_flags.map(|f| f & 1 == 1);
        self.accumulate(&m.out, &product(&w, &x), start, m.psum_zero_region.unwrap_or(0))
    }

    pub(super) fn quantize(&mut self, src: &Ap, data: &Ap, scale: &Ap) -> Result<(), Stop> {
        let (rows, columns) = size(data);
        let x = self.floats(src)?;
        let emax = if data.dtype == Dtype::Float8E5m2X4 { 15 } else { 8 };
        for group in 0..rows / 8 {
            for c in 0..columns {
                let block: Vec<f32> =
                    (0..32).map(|i| x[(8 * group + i / 4) * 4 * columns + 4 * c + i % 4]).collect();
                let top = block.iter().map(|v| (v.to_bits() >> 23 & 255) as i32).max().unwrap();
                let s = match self.options.mx_rule {
                    ScaleRule::Reference => (top - emax).max(1),
                    ScaleRule::ReferenceAlt => (top - emax + 1).max(1),
                    ScaleRule::Hardware => (top - emax + 1).max(0),
                    ScaleRule::Ocp => (top - emax).max(0),
                };
                let factor = 2f64.powi(127 - s) as f32;
                let code = |v: &f32| encode(lane_format(data.dtype), v * factor, Overflow::Saturate) as u8;
                let bytes: Vec<u8> = block.iter().map(code).collect();
                for (i, four) in bytes.chunks(4).enumerate() {
                    self.write(data, 8 * group + i, c, four);
                }
                let at = self.scale_at(data, scale, 8 * group, c);
                self.row(at).put(at.2, &[s as u8], 0);
            }
        }
        Ok(())
    }
}
