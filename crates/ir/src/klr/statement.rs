//! One statement to one instruction.

use hadal_isa::PerfMode as ArrayMode;
use hadal_num::Dtype;

use super::access::{bytes, dtype};
use super::ast::Stmt;
use super::buffers::{Buffers, operand_dtype};
use super::fault::{self, Fault};
use super::lower::{KlrTranspose, subject};
use super::ops::{
    AluOp, Copy, DgeComputeOp, DmaBounds, Engine, Immediate, MatMulMx, NcAffineSelect, NcMatMul, Operator,
    PerfMode, QuantizeMx, TensorSubDim, TensorTensor,
};
use super::tensor::{Dtype as KlrDtype, TensorRef};
use crate::diag::Violation;
use crate::program::{self, AffineSelect, Ap, Instr, Matmult, MatmultMx, Note, Op, Pair, Pos};

const LOWERED: &str = "lowered are ncMatMul, ncMatMulMX, quantizeMX, ncDmaCopy, dmaCopy, ncCopy, copy, memSet, \
                       ncAffineSelect, tensorTensor and transpose; move the rest out of the kernel";

/// A statement being lowered.
pub(super) struct Statement<'a> {
    pub(super) buffers: &'a Buffers,
    pub(super) transpose: KlrTranspose,
    pub(super) core: usize,
    pub(super) stmt: &'a Stmt,
    pub(super) pos: Pos,
    pub(super) violations: &'a mut Vec<Violation>,
    pub(super) notes: &'a mut Vec<Note>,
}

impl Statement<'_> {
    /// The instruction numbered `id`; `None` when something was reported.
    pub(super) fn lower(&mut self, id: usize) -> Option<Instr> {
        let before = self.violations.len();
        let (op, engine) = match &self.stmt.op {
            Operator::NcMatMul(op) => (self.matmul(op), Engine::Pe),
            Operator::MatMulMx(op) => (self.matmul_mx(op), Engine::Pe),
            Operator::QuantizeMx(op) => (self.quantize(op), Engine::Dve),
            Operator::NcDmaCopy(op) => {
                // The engine field names the queue that starts the copy, not who moves the bytes.
                (self.dma(&op.dst, &op.src, op.compute_op, &[op.oob_mode]), Engine::Dma)
            }
            Operator::DmaCopy(op) => {
                let bounds = [op.dst_bounds_check, op.src_bounds_check];
                (self.dma(&op.dst, &op.src, op.compute_op, &bounds), Engine::Dma)
            }
            Operator::NcCopy(op) => {
                self.check_result(op.dtype, &op.dst);
                (
                    self.two(("dst", &op.dst), ("src", &op.src))
                        .map(|(dst, src)| Op::TensorCopy { dst, src }),
                    op.engine,
                )
            }
            Operator::Copy(op) => (self.copy(op), Engine::Unassigned),
            Operator::MemSet(op) => {
                self.check_result(Some(op.dtype), &op.dst);
                let (dst, value) = (self.ap("dst", &op.dst, false), self.immediate(op.value));
                (dst.zip(value).map(|(dst, value)| Op::Memset { dst, value }), op.engine)
            }
            Operator::NcAffineSelect(op) => (self.affine_select(op), Engine::Unassigned),
            Operator::TensorTensor(op) => (self.tensor_tensor(op), op.engine),
            Operator::Transpose(op) => {
                self.check_result(op.dtype, &op.dst);
                if !matches!(op.engine, Engine::Unassigned | Engine::Dve) {
                    let text =
                        format!("a transpose on engine {} is not the vector engine's", op.engine.name());
                    self.fault(
                        None,
                        Fault::new(fault::SETTING, text, "use engine dve, or ncMatMul with isTranspose"),
                    );
                }
                (
                    self.two(("dst", &op.dst), ("src", &op.src)).map(|(dst, src)| Op::Transpose { dst, src }),
                    op.engine,
                )
            }
            Operator::Other { name, .. } => {
                self.fault(
                    None,
                    Fault::new(fault::OPERATOR, format!("operator {name} is not supported"), LOWERED),
                );
                (None, Engine::Unassigned)
            }
        };
        let op = op.filter(|_| self.violations.len() == before)?;
        let name = match &op {
            Op::Matmult(_) => format!("matmult_{id}"),
            Op::MatmultMx(_) => format!("MatmulMx-{id}"),
            Op::QuantizeMx { .. } => format!("QuantizeMX-{id}"),
            other => format!("{}-{id}", other.name()),
        };
        let engine = match engine {
            Engine::Unassigned => op.default_engine(),
            Engine::Act => program::Engine::Activation,
            Engine::Dma => program::Engine::Dma,
            Engine::Dve => program::Engine::Dve,
            Engine::Pe => program::Engine::Pe,
            Engine::Pool => program::Engine::Pool,
            Engine::Sp => program::Engine::Sp,
        };
        Some(Instr { name, op, engine, pos: Some(self.pos.clone()) })
    }

    fn fault(&mut self, operand: Option<&'static str>, fault: Fault) {
        self.violations.push(fault.at(self.core, subject(self.stmt), operand, Some(self.pos.clone())));
    }

    fn note(&mut self, code: &'static str, text: String) {
        self.notes.push(Note { code, text, pos: Some(self.pos.clone()) });
    }

    fn ap(&mut self, name: &'static str, operand: &TensorRef, keep_unit: bool) -> Option<Ap> {
        match self.buffers.ap(operand, keep_unit) {
            Ok(ap) => ap,
            Err(fault) => {
                self.fault(Some(name), fault);
                None
            }
        }
    }

    fn two(&mut self, a: (&'static str, &TensorRef), b: (&'static str, &TensorRef)) -> Option<(Ap, Ap)> {
        let (a, b) = (self.ap(a.0, a.1, false), self.ap(b.0, b.1, false));
        a.zip(b)
    }

    /// The result type repeats the destination's; another one would convert twice.
    fn check_result(&mut self, result: Option<KlrDtype>, dst: &TensorRef) {
        let (Some(result), Some(stored)) = (result.map(dtype), operand_dtype(dst)) else { return };
        if result != stored {
            let text =
                format!("result type {} differs from the destination's {}", result.name(), stored.name());
            self.fault(
                Some("dst"),
                Fault::new(fault::SETTING, text, "store the result in a tensor of its type"),
            );
        }
    }

    fn immediate(&mut self, value: Immediate) -> Option<program::Immediate> {
        let what = match value {
            Immediate::Int32(value) => return Some(program::Immediate::Int(value)),
            // On disk it is a float32 widened, so narrowing is exact.
            Immediate::Float32(value) => return Some(program::Immediate::Float(value as f32)),
            Immediate::Reg(register) => format!("a value in register {register}"),
            Immediate::Pointer => "a value behind a pointer".to_owned(),
        };
        let text = format!("{what} is known only when the kernel runs");
        self.fault(None, Fault::new(fault::DYNAMIC, text, "use a constant"));
        None
    }

    /// A list of two entries, or an empty one for a tile that is not given (D-38).
    fn tile(&mut self, name: &'static str, list: &[u64]) -> Option<[u32; 2]> {
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        match list {
            [] => None,
            [rows, columns] => Some([small(*rows), small(*columns)]),
            _ => {
                let text = format!("{name} has {} entries", list.len());
                self.fault(None, Fault::new(fault::TILE, text, "give row and column, or neither"));
                None
            }
        }
    }

    fn matmul(&mut self, op: &NcMatMul) -> Option<Op> {
        let paired = op.perf_mode == PerfMode::DoubleRow;
        let out = self.ap("dst", &op.dst, false);
        let stationary = self.ap("stationary", &op.stationary, paired);
        let moving = self.ap("moving", &op.moving, paired);
        let tile_position = self.tile("tilePosition", &op.tile_position);
        let tile_size = self.tile("tileSize", &op.tile_size);
        let mut matmult = Matmult::new(moving?, stationary?, out?);
        (matmult.tile_position, matmult.tile_size) = (tile_position, tile_size);
        matmult.is_transpose = op.is_transpose;
        matmult.is_fmap_onezero = op.is_moving_one_zero;
        matmult.is_weight_onezero = op.is_stationary_one_zero;
        match op.perf_mode {
            PerfMode::None => {}
            PerfMode::DoubleRow => matmult.perf_mode = ArrayMode::DoubleRow,
            PerfMode::DoubleRowSwInterleave => {
                let text = "performance mode DoubleRowSwInterleave is dropped; the matmul runs without one";
                self.note("N-PERF-MODE", text.to_owned());
            }
        }
        if op.is_transpose && op.is_stationary_one_zero {
            match self.transpose {
                KlrTranspose::Refuse => matmult.moving_transpose = true,
                KlrTranspose::Moving => {
                    std::mem::swap(&mut matmult.ifmap, &mut matmult.weights);
                    std::mem::swap(&mut matmult.is_fmap_onezero, &mut matmult.is_weight_onezero);
                    let text = "identity stationary, data moving: read as the transpose of the moving operand (D-31)";
                    self.note("N-KLR-TRANSPOSE", text.to_owned());
                }
            }
        }
        Some(Op::Matmult(Box::new(matmult)))
    }

    fn matmul_mx(&mut self, op: &MatMulMx) -> Option<Op> {
        let out = self.ap("dst", &op.dst, false);
        let weights = self.ap("stationary", &op.stationary, false);
        let ifmap = self.ap("moving", &op.moving, false);
        let weights_scale = self.ap("stationaryScale", &op.stationary_scale, false);
        let ifmap_scale = self.ap("movingScale", &op.moving_scale, false);
        let tile_position = self.tile("tilePosition", op.tile_position.as_deref().unwrap_or_default());
        let tile_size = self.tile("tileSize", op.tile_size.as_deref().unwrap_or_default());
        Some(Op::MatmultMx(Box::new(MatmultMx {
            ifmap: ifmap?,
            weights: weights?,
            ifmap_scale: ifmap_scale?,
            weights_scale: weights_scale?,
            out: out?,
            accumulate_flags: None,
            psum_zero_region: None,
            tile_position,
            tile_size,
        })))
    }

    fn quantize(&mut self, op: &QuantizeMx) -> Option<Op> {
        let src = self.ap("src", &op.src, false);
        let data = self.ap("dst", &op.dst, false);
        let scale = self.ap("dstScale", &op.dst_scale, false);
        Some(Op::QuantizeMx { src: src?, data: data?, scale: scale? })
    }

    fn dma(
        &mut self,
        dst: &TensorRef,
        src: &TensorRef,
        compute: DgeComputeOp,
        bounds: &[DmaBounds],
    ) -> Option<Op> {
        if compute == DgeComputeOp::Add {
            let text = "compute_op add (a DMA that adds to its destination) is not supported".to_owned();
            self.fault(None, Fault::new(fault::SETTING, text, "copy, then add with tensorTensor"));
        }
        // Every access is checked to lie in its tensor, so `skip` and `error` have nothing to act on.
        for bound in bounds {
            if let DmaBounds::Reg(register) = bound {
                let text =
                    format!("a bounds check by register {register} is known only when the kernel runs");
                self.fault(None, Fault::new(fault::DYNAMIC, text, "use skip or error"));
            }
        }
        let (dst_ap, src_ap) = self.two(("dst", dst), ("src", src))?;
        let raw =
            |dtype: Dtype| matches!(dtype, Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64);
        let (to, from) = (dst_ap.dtype, src_ap.dtype);
        if bytes(to) != bytes(from) || (to != from && !raw(to) && !raw(from)) {
            let text = format!("a DMA from {} to {} would convert", from.name(), to.name());
            self.fault(
                None,
                Fault::new(fault::SETTING, text, "copy between equal types, convert with ncCopy"),
            );
        }
        Some(Op::DmaCopy { dst: dst_ap, src: src_ap })
    }

    fn copy(&mut self, op: &Copy) -> Option<Op> {
        let (dst, src) = self.two(("dst", &op.dst), ("src", &op.src))?;
        let covered = match op.op_dim {
            Some(TensorSubDim::X) => 1,
            Some(TensorSubDim::Xy) => 2,
            Some(TensorSubDim::Xyz) => 3,
            Some(TensorSubDim::Xyzw) | None => 4,
        };
        if let Some(dim) = op.op_dim.filter(|_| dst.free().len().max(src.free().len()) > covered) {
            let text = format!("opDim {} covers fewer dimensions than the operands have", dim.name());
            self.fault(None, Fault::new(fault::SETTING, text, "copy all dimensions"));
        }
        Some(Op::TensorCopy { dst, src })
    }

    fn tensor_tensor(&mut self, op: &TensorTensor) -> Option<Op> {
        self.check_result(op.dtype, &op.dst);
        let dst = self.ap("dst", &op.dst, false);
        let sources = self.two(("src0", &op.src0), ("src1", &op.src1));
        let alu = self.alu(op.op);
        let (src0, src1) = sources?;
        Some(Op::TensorTensor { dst: dst?, src0, src1, op: alu? })
    }

    fn alu(&mut self, op: AluOp) -> Option<program::AluOp> {
        let found = program::AluOp::from_name(op.name());
        if found.is_none() {
            let text = format!("operation {} is not supported", op.name());
            self.fault(None, Fault::new(fault::SETTING, text, "use another operation"));
        }
        found
    }

    fn affine_select(&mut self, op: &NcAffineSelect) -> Option<Op> {
        use AluOp::{IsEqual, IsGe, IsGt, IsLe, IsLt, NotEqual};
        self.check_result(op.dtype, &op.dst);
        if !matches!(op.cmp_op, IsEqual | IsGe | IsGt | IsLe | IsLt | NotEqual) {
            let text = format!("cmpOp {} is no comparison", op.cmp_op.name());
            self.fault(
                None,
                Fault::new(fault::SETTING, text, "use is_equal, not_equal, is_ge, is_gt, is_le or is_lt"),
            );
        }
        let cmp = self.alu(op.cmp_op);
        let on_false = self.immediate(op.on_false_value);
        let operands = self.two(("dst", &op.dst), ("onTrueTile", &op.on_true_tile));
        let pairs = op.pred.pattern.iter().filter(|pair| pair.num != 1);
        let mut pattern: Vec<Pair> = pairs.map(|pair| Pair::new(pair.step, pair.num)).collect();
        if pattern.is_empty() {
            pattern.push(Pair::new(1, 1));
        }
        let (dst, src) = operands?;
        let count = pattern.iter().fold(1u64, |count, pair| count.saturating_mul(pair.num));
        if count != dst.free_elements() {
            let text = format!("pred covers {count} elements a partition, dst {}", dst.free_elements());
            self.fault(None, Fault::new(fault::PATTERN, text, "give pred the shape of dst"));
        }
        Some(Op::AffineSelect(Box::new(AffineSelect {
            dst,
            src,
            on_false: on_false?,
            cmp: cmp?,
            base: op.pred.offset,
            channel_multiplier: op.pred.channel_multiplier,
            pattern,
        })))
    }
}
