//! Gathering operands out of memory and scattering results into it.

use super::{Dim, Machine, Plane, Store, View};
use crate::error::{Fault, OperandFault};
use crate::options::Uninit;

/// Most bytes of one operand in SBUF or PSUM: twice the largest SBUF, as repeated elements count.
const ON_CHIP_LIMIT: u64 = 64 << 20;
/// Most bytes of one operand in DRAM.
const DRAM_OPERAND_LIMIT: u64 = 1 << 30;
/// Most separate pieces of one row of an operand.
const PIECE_LIMIT: u64 = 1 << 22;

/// Contiguous pieces of an operand in one partition (in DRAM, of the whole operand), relative to its first
/// byte, in the order of the elements.
struct Pieces {
    starts: Vec<i64>,
    len: usize,
}

impl View {
    /// Bytes of the whole operand.
    fn size(&self) -> Result<usize, OperandFault> {
        let bytes = self.elements().saturating_mul(self.dtype.bytes() as u64);
        let limit = if matches!(self.store, Store::Dram(_)) { DRAM_OPERAND_LIMIT } else { ON_CHIP_LIMIT };
        if bytes > limit {
            let what = "an operand".to_owned();
            return Err(Fault::TooLarge { what, bytes, limit }.on(self.operand));
        }
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Fuses what is contiguous and lists the pieces.
    fn pieces(&self) -> Result<Pieces, OperandFault> {
        self.size()?;
        if self.elements() == 0 {
            return Ok(Pieces { starts: Vec::new(), len: 0 });
        }
        let size = self.dtype.bytes() as i64;
        let mut len = size;
        let row = self.row_step.map(|step| Dim { step, num: self.rows });
        let dims: Vec<Dim> = row.into_iter().chain(self.dims.iter().copied()).collect();
        let mut outer = dims.as_slice();
        while let Some((last, rest)) = outer.split_last() {
            if last.num != 1 && last.step.checked_mul(size) != Some(len) {
                break;
            }
            len = len.saturating_mul(i64::try_from(last.num).unwrap_or(i64::MAX));
            outer = rest;
        }
        let count = outer.iter().fold(1u64, |n, d| n.saturating_mul(d.num));
        if count > PIECE_LIMIT {
            let what = "the pieces of an operand's row".to_owned();
            return Err(Fault::TooLarge { what, bytes: count, limit: PIECE_LIMIT }.on(self.operand));
        }
        let mut starts = vec![0i64];
        for &Dim { step, num } in outer {
            let step = step.saturating_mul(size);
            let mut next = Vec::with_capacity(starts.len().saturating_mul(num as usize));
            for &s in &starts {
                next.extend((0..num as i64).map(|i| s.saturating_add(step.saturating_mul(i))));
            }
            starts = next;
        }
        Ok(Pieces { starts, len: usize::try_from(len).unwrap_or(usize::MAX) })
    }

    /// Partition of a row.
    fn partition_of(&self, row: u64) -> i64 {
        let row = i64::try_from(row).unwrap_or(i64::MAX);
        self.partition.saturating_add(self.partition_step.saturating_mul(row))
    }
}

impl Machine {
    fn out_of_range(&self, view: &View, partition: i64, offset: i64) -> OperandFault {
        let (partitions, bytes) = self.plane(view.store).map_or((0, 0), |p| (p.rows(), p.width()));
        Fault::OutOfRange { space: self.store_name(view.store), partition, offset, partitions, bytes }
            .on(view.operand)
    }

    /// Calls `f` with every piece of an operand in element order: (row of the plane, byte, bytes done so far,
    /// length), after checking that the piece lies inside the memory.
    fn walk(
        &self,
        view: &View,
        mut f: impl FnMut(usize, usize, usize, usize) -> Result<(), OperandFault>,
    ) -> Result<(), OperandFault> {
        let pieces = view.pieces()?;
        if pieces.starts.is_empty() {
            return Ok(());
        }
        let mut done = 0;
        let rows = if view.row_step.is_some() { view.rows.min(1) } else { view.rows };
        for r in 0..rows {
            let partition = view.partition_of(r);
            for &s in &pieces.starts {
                let at = view.offset.saturating_add(s);
                let (Ok(row), Ok(offset)) = (usize::try_from(partition), usize::try_from(at)) else {
                    return Err(self.out_of_range(view, partition, at));
                };
                let Some(plane) = self.plane(view.store) else {
                    return Err(self.out_of_range(view, partition, at));
                };
                if !plane.holds(row, offset, pieces.len) {
                    let first = if row < plane.rows() { offset.max(plane.width()) } else { offset };
                    return Err(self.out_of_range(view, partition, i64::try_from(first).unwrap_or(i64::MAX)));
                }
                f(row, offset, done, pieces.len)?;
                done += pieces.len;
            }
        }
        Ok(())
    }

    /// Checks that every byte of an operand lies inside the memory, and its size is bounded.
    pub(crate) fn check(&self, view: &View) -> Result<(), OperandFault> {
        self.walk(view, |_, _, _, _| Ok(()))
    }

    /// Reads an operand: its containers, row by row.
    pub(crate) fn gather(&self, view: &View, uninit: Uninit) -> Result<Vec<u8>, OperandFault> {
        let mut out = Vec::new();
        self.gather_into(view, uninit, &mut out)?;
        Ok(out)
    }

    /// Reads an operand into `out`, as [`Machine::gather`] gives it.
    pub(crate) fn gather_into(
        &self,
        view: &View,
        uninit: Uninit,
        out: &mut Vec<u8>,
    ) -> Result<(), OperandFault> {
        out.clear();
        out.reserve(view.size()?);
        self.read_pieces(view, uninit, |_, piece| {
            out.extend_from_slice(piece);
            Ok(())
        })
    }

    /// The rows of an on-chip operand where they lie: bytes from its first container on, and the bytes from one row
    /// to the next. `None` unless every row is one piece, the rows ascend and all of it can be read as stored.
    pub(crate) fn rows(&self, view: &View, uninit: Uninit) -> Option<(&[u8], usize)> {
        if view.row_step.is_some() || view.partition_step < 1 {
            return None;
        }
        let pieces = view.pieces().ok().filter(|pieces| matches!(pieces.starts.as_slice(), [0]))?;
        let plane = self.plane(view.store)?;
        let (first, offset) = (usize::try_from(view.partition).ok()?, usize::try_from(view.offset).ok()?);
        let step = usize::try_from(view.partition_step).ok()?;
        for i in 0..usize::try_from(view.rows).ok()? {
            let row = first.checked_add(step.checked_mul(i)?)?;
            let readable = plane.holds(row, offset, pieces.len)
                && (uninit == Uninit::Zero || plane.first_unwritten(row, offset, pieces.len).is_none());
            if !readable {
                return None;
            }
        }
        Some((plane.from(first, offset)?, step.checked_mul(plane.width())?))
    }

    /// Calls `f` with the bytes before and the bytes of every piece, never-written ones as `uninit` says.
    fn read_pieces(
        &self,
        view: &View,
        uninit: Uninit,
        mut f: impl FnMut(usize, &[u8]) -> Result<(), OperandFault>,
    ) -> Result<(), OperandFault> {
        self.walk(view, |row, offset, done, len| {
            let plane = self.plane(view.store);
            let Some((plane, piece)) = plane.and_then(|p| Some((p, p.get(row, offset, len)?))) else {
                return Err(self.out_of_range(view, row as i64, offset as i64));
            };
            let Some(missing) = plane.first_unwritten(row, offset, len) else { return f(done, piece) };
            match uninit {
                Uninit::Error => {
                    let space = self.store_name(view.store);
                    Err(Fault::Unwritten { space, partition: row, offset: missing }.on(view.operand))
                }
                // Bytes that were never written are stored as 0.
                Uninit::Zero => f(done, piece),
                Uninit::Nan => {
                    let byte =
                        |(i, b): (usize, &u8)| if plane.is_written(row, offset + i) { *b } else { 0xFF };
                    f(done, &piece.iter().enumerate().map(byte).collect::<Vec<u8>>())
                }
            }
        })
    }

    /// Reads an operand's bytes as stored together with, for each container, whether all of its bytes were
    /// written.
    pub(crate) fn gather_with_marks(&self, view: &View) -> Result<(Vec<u8>, Vec<bool>), OperandFault> {
        let bytes = self.gather(view, Uninit::Zero)?;
        let size = view.dtype.bytes();
        let mut marks = Vec::with_capacity(bytes.len() / size);
        let plane = self.plane(view.store);
        self.walk(view, |row, offset, _, len| {
            for at in (offset..offset + len).step_by(size) {
                marks.push(plane.is_some_and(|p| p.first_unwritten(row, at, size).is_none()));
            }
            Ok(())
        })?;
        Ok((bytes, marks))
    }

    /// Writes an operand: its containers, row by row. Nothing is written unless all of it fits.
    pub(crate) fn scatter(&mut self, view: &View, data: &[u8]) -> Result<(), OperandFault> {
        if view.size()? != data.len() {
            let got = format!("{} bytes", data.len());
            let want = format!("{} bytes", view.size()?);
            return Err(Fault::Shape { what: "result", got, want }.on(view.operand));
        }
        self.update(view, |done, piece| {
            if let Some(from) = data.get(done..done + piece.len()) {
                piece.copy_from_slice(from);
            }
        })
    }

    /// Copies an operand's bytes onto one of the same size in another memory, without a buffer between. `false`, and
    /// nothing done, when both are in one memory, or never-written bytes do not read as they are stored.
    pub(crate) fn copy(&mut self, dst: &View, src: &View, uninit: Uninit) -> Result<bool, OperandFault> {
        if dst.store == src.store || dst.size()? != src.size()? {
            return Ok(false);
        }
        let (mut from, mut to, mut whole) = (Vec::new(), Vec::new(), true);
        let plane = self.plane(src.store);
        self.walk(src, |row, offset, _, len| {
            if let Some(missing) = plane.and_then(|p| p.first_unwritten(row, offset, len)) {
                if uninit == Uninit::Error {
                    let space = self.store_name(src.store);
                    return Err(Fault::Unwritten { space, partition: row, offset: missing }.on(src.operand));
                }
                whole &= uninit == Uninit::Zero;
            }
            from.push((row, offset, len));
            Ok(())
        })?;
        if !whole {
            return Ok(false);
        }
        self.walk(dst, |row, offset, _, len| {
            to.push((row, offset, len));
            Ok(())
        })?;
        // The source's memory is set aside while the other is written.
        let Some(source) = self.plane_mut(src.store).map(|p| std::mem::replace(p, Plane::new(0, 0))) else {
            return Ok(false);
        };
        if let Some(plane) = self.plane_mut(dst.store) {
            let mut pieces = from.into_iter();
            let mut piece = (0, 0, 0);
            for (row, mut offset, mut left) in to {
                while left > 0 {
                    if piece.2 == 0 {
                        let Some(next) = pieces.next() else { break };
                        piece = next;
                    }
                    let len = left.min(piece.2);
                    if let Some(bytes) = source.get(piece.0, piece.1, len) {
                        plane.put(row, offset, bytes);
                    }
                    piece = (piece.0, piece.1 + len, piece.2 - len);
                    (offset, left) = (offset + len, left - len);
                }
            }
        }
        if let Some(plane) = self.plane_mut(src.store) {
            *plane = source;
        }
        Ok(true)
    }

    /// Changes an operand in place and marks it written: calls `f` with the bytes before and the bytes of
    /// every piece, as stored. Nothing is changed unless all of it lies inside the memory.
    pub(crate) fn update(
        &mut self,
        view: &View,
        mut f: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), OperandFault> {
        let mut plan = Vec::new();
        self.walk(view, |row, offset, done, len| {
            plan.push((row, offset, done, len));
            Ok(())
        })?;
        if let Some(plane) = self.plane_mut(view.store) {
            for (row, offset, done, len) in plan {
                plane.update(row, offset, len, |piece| f(done, piece));
            }
        }
        Ok(())
    }

    /// Whether every byte of an operand was written (`Some(true)`), none was (`Some(false)`), or some were.
    pub(crate) fn written(&self, view: &View) -> Result<Option<bool>, OperandFault> {
        let (mut all, mut none) = (true, true);
        let plane = self.plane(view.store);
        self.walk(view, |row, offset, _, len| {
            // One of the two is settled by the first piece, so each piece is looked at once.
            all = all && plane.is_some_and(|p| p.first_unwritten(row, offset, len).is_none());
            none = none && plane.is_none_or(|p| p.is_blank(row, offset, len));
            Ok(())
        })?;
        Ok(if all { Some(true) } else { none.then_some(false) })
    }

    /// Clears whole PSUM banks in the partitions of an operand and marks them written.
    pub(crate) fn clear_psum_banks(
        &mut self,
        view: &View,
        offset: usize,
        bytes: usize,
    ) -> Result<(), OperandFault> {
        let zeros = vec![0u8; bytes];
        for r in 0..view.rows {
            let partition = view.partition_of(r);
            let fits = usize::try_from(partition).is_ok_and(|p| self.psum.put(p, offset, &zeros));
            if view.store != Store::Psum || !fits {
                return Err(self.out_of_range(view, partition, offset as i64));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hadal_isa::Target;
    use hadal_num::Dtype;

    /// Byte addresses of a view's containers, one by one.
    fn addresses(v: &View) -> Vec<(i64, i64)> {
        let size = v.dtype.bytes() as i64;
        let mut out = Vec::new();
        for r in 0..v.rows as i64 {
            let mut offsets = vec![v.offset + v.row_step.unwrap_or(0) * r * size];
            for d in &v.dims {
                offsets = offsets
                    .iter()
                    .flat_map(|o| (0..d.num as i64).map(move |i| o + i * d.step * size))
                    .collect();
            }
            let partition = v.partition + v.partition_step * r;
            out.extend(offsets.into_iter().map(|o| (partition, o)));
        }
        out
    }

    /// A view of as many containers, all of them in one row.
    fn contiguous(v: &View) -> View {
        let dims = vec![Dim { step: 1, num: v.elements() }];
        View { partition_step: 1, row_step: None, rows: 1, dims, ..v.clone() }
    }

    #[test]
    fn gather_and_scatter_walk_element_by_element() {
        let mut machine = Machine::new(Target::TRN1);
        machine.dram.declare("t", 600).unwrap();
        for p in 0..128 {
            let row: Vec<u8> = (0..600usize).map(|i| (p * 7 + i * 3) as u8).collect();
            machine.sbuf.put(p, 0, &row);
        }
        machine.dram.tensor_mut("t").unwrap().put(0, 0, &(0..600u32).map(|i| i as u8).collect::<Vec<_>>());
        arbtest::arbtest(|u| {
            let dram = u.arbitrary()?;
            let dtype = *u.choose(&[Dtype::Uint8, Dtype::Bfloat16, Dtype::Float32])?;
            let mut dims = Vec::new();
            for _ in 0..u.int_in_range(0..=3)? {
                dims.push(Dim { step: u.int_in_range(-6..=6)?, num: u.int_in_range(1..=5)? });
            }
            let view = View {
                operand: "o",
                store: if dram { Store::Dram(0) } else { Store::Sbuf },
                dtype,
                partition: if dram { 0 } else { u.int_in_range(0..=130)? },
                partition_step: if dram { 0 } else { u.int_in_range(0..=3)? },
                row_step: if dram { Some(u.int_in_range(-5..=20)?) } else { None },
                rows: u.int_in_range(1..=4)?,
                offset: u.int_in_range(0..=400)?,
                dims,
            };
            let all = addresses(&view);
            let size = dtype.bytes();
            let rows = if dram { 1 } else { 128 };
            let width = machine.plane(view.store).unwrap().width() as i64;
            let inside = |&(p, o): &(i64, i64)| (0..rows).contains(&p) && o >= 0 && o + size as i64 <= width;
            let got = machine.gather(&view, Uninit::Zero);
            if !all.iter().all(inside) {
                assert!(matches!(got, Err(OperandFault { fault: Fault::OutOfRange { .. }, .. })));
                return Ok(());
            }
            let got = got.unwrap();
            let want: Vec<u8> = all
                .iter()
                .flat_map(|&(p, o)| {
                    machine.plane(view.store).unwrap().get(p as usize, o as usize, size).unwrap().to_vec()
                })
                .collect();
            assert_eq!(got, want);
            // Rows read where they lie are the same bytes.
            if let Some((bytes, stride)) = machine.rows(&view, Uninit::Zero) {
                let row = view.per_row() as usize * size;
                for (i, want) in want.chunks(row).enumerate() {
                    assert_eq!(&bytes[i * stride..i * stride + row], want);
                }
            }
            // Writing marks exactly those bytes, the last write of an address staying.
            let mut fresh = Machine::new(Target::TRN1);
            fresh.dram.declare("t", 600).unwrap();
            let data: Vec<u8> = (0..want.len()).map(|i| (i * 5 + 1) as u8).collect();
            fresh.scatter(&view, &data).unwrap();
            let mut model = std::collections::BTreeMap::new();
            for (chunk, &(p, o)) in data.chunks(size).zip(&all) {
                for (i, b) in chunk.iter().enumerate() {
                    model.insert((p as usize, o as usize + i), *b);
                }
            }
            let plane = fresh.plane(view.store).unwrap();
            let written: usize = (0..plane.rows()).map(|r| plane.count_written(r, 0, plane.width())).sum();
            assert_eq!(written, model.len());
            for ((p, o), b) in model {
                assert!(plane.is_written(p, o));
                assert_eq!(plane.get(p, o, 1), Some(&[b][..]));
            }
            assert_eq!(fresh.written(&view).unwrap(), Some(true));
            // A copy into another memory is a gather and a scatter.
            let (mut direct, mut buffered) = (machine.clone(), machine.clone());
            let to = View {
                operand: "dst",
                store: Store::Psum,
                dtype,
                partition: 0,
                offset: 4,
                ..contiguous(&view)
            };
            assert!(direct.copy(&to, &view, Uninit::Zero).unwrap());
            buffered.scatter(&to, &buffered.gather(&view, Uninit::Zero).unwrap()).unwrap();
            assert_eq!(crate::memory::compare(&direct, &buffered), None);
            assert!(!direct.copy(&to, &to, Uninit::Zero).unwrap());
            Ok(())
        })
        .budget_ms(1_000);
    }
}
