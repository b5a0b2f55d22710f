//! The walk over a stream: what each bundle costs, and when it runs.

use hadal_ir::program::{Op, Program};
use hadal_isa::{
    Inst, LoadStationary, Matmul, MatmultSparse, Pattern, PerfMode, PerfVariant, Target, Word, decode,
    row_group,
};

use super::formula::{self, MX_LANES, float32_pass_cycles, load_cycles, matmul_cycles};
use super::{Kind, Step, Tile};
use crate::fp32_pass::{Fp32Pass, Pass};

/// One bundle by itself.
#[derive(Default)]
struct Alone {
    kind: Kind,
    busy: u64,
    macs: u64,
    packing: u64,
    tile: Option<Tile>,
    /// The pass of a float32 matmul.
    pass: Option<Pass>,
}

/// What the estimate remembers from bundle to bundle.
pub(super) struct Model<'a> {
    target: Target,
    /// Supplies the one-zero hints.
    program: Option<&'a Program>,
    steps: Vec<Step>,
    fp32: Fp32Pass,
    /// Pass that the last load began.
    pass: Option<Pass>,
    perf: PerfMode,
    transpose: bool,
    /// Group of the last load: above level 40 a matmul does not name its own.
    loaded: Option<Tile>,
    /// The step of a first float32 pass whose second is still to come.
    first: Option<usize>,
    /// Cycles so far.
    now: u64,
    /// Cycles before `now` in which a matmul runs and no load does yet.
    free: u64,
}

/// Elements of a destination in one partition, at most what keeps a product of them inside 64 bits; PSUM
/// holds far fewer.
fn elements<const N: usize>(p: &Pattern<N>) -> u64 {
    p.elements().min(1 << 24)
}

impl<'a> Model<'a> {
    pub(super) fn new(target: Target, program: Option<&'a Program>) -> Self {
        Model {
            target,
            program,
            steps: Vec::new(),
            fp32: Fp32Pass::default(),
            pass: None,
            perf: PerfMode::None,
            transpose: false,
            loaded: None,
            first: None,
            now: 0,
            free: 0,
        }
    }

    pub(super) fn finish(self) -> Vec<Step> {
        self.steps
    }

    /// Takes the next bundle of the stream.
    pub(super) fn bundle(&mut self, instr: usize, word: &Word) {
        let alone = self.alone(instr, word);
        let macs = self.share(&alone);
        let Alone { kind, busy, packing, tile, .. } = alone;
        let (start, cycles) = match kind {
            Kind::Load => {
                let hidden = busy.min(self.free);
                let start = self.now.saturating_sub(self.free);
                self.free -= hidden;
                (start, busy - hidden)
            }
            Kind::Matmul | Kind::Transpose => {
                self.free = busy;
                (self.now, busy)
            }
            Kind::Other => (self.now, 0),
        };
        self.now = self.now.saturating_add(cycles);
        let bundle = self.steps.len();
        self.steps.push(Step { bundle, instr, kind, tile, start, busy, cycles, macs, packing });
    }

    /// Multiply-adds of a step. The two passes of a float32 matmul share those of its product.
    fn share(&mut self, alone: &Alone) -> u64 {
        match alone.pass {
            Some(Pass::First) => self.first = Some(self.steps.len()),
            Some(Pass::Second) => {
                if let Some(first) = self.first.take().and_then(|i| self.steps.get_mut(i)) {
                    let half = first.macs / 2;
                    first.macs -= half;
                    return half;
                }
            }
            None if alone.kind != Kind::Load => self.first = None,
            None => {}
        }
        alone.macs
    }

    fn alone(&mut self, instr: usize, word: &Word) -> Alone {
        let decoded = decode(word, self.target);
        if !matches!(decoded.inst, Inst::LoadStationary(_) | Inst::Matmul(_)) {
            self.fp32.other();
        }
        match &decoded.inst {
            Inst::LoadStationary(l) => self.load(l, word),
            Inst::Matmul(m) => self.matmul(m, instr),
            // A tags load names no columns; the weights it goes with follow.
            Inst::LoadTagsSparse(l) => {
                load(l.active_cols, Tile { rows: row_group(0, u32::from(l.rows)), columns: 0x0F })
            }
            Inst::MatmultSparse(m) => sparse(m),
            Inst::LdWeightMx(l) => load(l.active_cols, Tile { rows: l.row_group, columns: l.col_group }),
            Inst::MatmultMx(m) => {
                let (n, cols) = (elements(&m.dst), u64::from(m.active_cols));
                Alone {
                    kind: Kind::Matmul,
                    busy: matmul_cycles(cols, n),
                    macs: MX_LANES * u64::from(m.rows) * cols * n,
                    packing: MX_LANES,
                    tile: Some(Tile { rows: m.row_group, columns: m.col_group }),
                    pass: None,
                }
            }
            Inst::QuantizeMx(_) | Inst::Raw(_) => Alone { packing: 1, ..Alone::default() },
        }
    }

    fn load(&mut self, l: &LoadStationary, word: &Word) -> Alone {
        let float32 = l.perf_variant == PerfVariant::FLOAT32;
        self.pass = float32.then(|| self.fp32.load(word, true));
        if !float32 {
            self.fp32.other();
        }
        self.perf = PerfMode::from_code(l.perf_mode).unwrap_or_default();
        self.transpose = l.transpose != 0;
        let tile = Tile { rows: l.row_group, columns: l.col_group };
        self.loaded = Some(tile);
        load(l.active_cols, tile)
    }

    fn matmul(&mut self, m: &Matmul, instr: usize) -> Alone {
        let (n, cols) = (elements(&m.dst), u64::from(m.active_cols));
        let packing = u64::from(self.perf.scale());
        let float32 = m.perf_variant == PerfVariant::FLOAT32;
        self.fp32.matmul();
        Alone {
            kind: if self.transpose { Kind::Transpose } else { Kind::Matmul },
            busy: if float32 {
                float32_pass_cycles(cols, n, self.has_hint(instr))
            } else {
                matmul_cycles(cols, n)
            },
            macs: u64::from(m.rows) * cols * n * packing,
            packing,
            tile: if self.target.level > 40 {
                self.loaded
            } else {
                Some(Tile { rows: m.row_group, columns: m.col_group })
            },
            pass: if float32 { self.pass } else { None },
        }
    }

    /// Whether the instruction says that an operand holds only zeros and ones.
    fn has_hint(&self, instr: usize) -> bool {
        match self.program.and_then(|p| p.instrs.get(instr)).map(|i| &i.op) {
            Some(Op::Matmult(m)) => m.is_fmap_onezero || m.is_weight_onezero,
            _ => false,
        }
    }
}

fn load(columns: u8, tile: Tile) -> Alone {
    Alone {
        kind: Kind::Load,
        busy: load_cycles(u64::from(columns)),
        packing: 1,
        tile: Some(tile),
        ..Alone::default()
    }
}

fn sparse(m: &MatmultSparse) -> Alone {
    let (n, cols) = (elements(&m.dst), u64::from(m.active_cols));
    let slower = if m.pass == 0 { 1 } else { formula::FLOAT32_PASS };
    Alone {
        kind: Kind::Matmul,
        busy: slower * matmul_cycles(cols, n),
        macs: u64::from(m.rows) * cols * n,
        packing: 1,
        // The bundle's own row group is the density; the weights fill the rows they have.
        tile: Some(Tile { rows: row_group(0, u32::from(m.rows)), columns: m.col_group }),
        pass: match m.pass {
            0 => None,
            2 => Some(Pass::Second),
            _ => Some(Pass::First),
        },
    }
}
