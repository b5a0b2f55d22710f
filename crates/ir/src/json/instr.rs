//! Instructions and their operands.

use hadal_isa::PerfMode;

use super::error::{JsonError, JsonErrorKind};
use super::limits;
use super::node::{Node, Obj, quote};
use super::read::{Names, dtype, name_of};
use crate::program::{
    Accumulate, ActFunc, AffineSelect, AluOp, Ap, Calc, CalcFlags, Engine, Immediate, Instr, Matmult,
    MatmultMx, MatmultSparse, Op, Pair,
};

/// The operators of the form.
const OPS: [&str; 14] = [
    "Matmult",
    "MatmultSparse",
    "MatmultMx",
    "QuantizeMx",
    "DmaCopy",
    "TensorCopy",
    "Memset",
    "TensorTensor",
    "TensorScalar",
    "Activation",
    "TensorReduce",
    "ReadActivationAccumulator",
    "Transpose",
    "AffineSelect",
];

/// An instruction, and the node of its name.
pub(super) fn instruction<'a>(node: &Node<'a>, names: &Names) -> Result<(Instr, Node<'a>), JsonError> {
    let mut obj = node.object()?;
    let op_name = obj.need("op")?.word("operator", |w| OPS.into_iter().find(|o| *o == w), &OPS)?;
    let name_node = obj.need("name")?;
    let name = name_of(&name_node)?;
    let engine = obj
        .take("engine")
        .map(|n| n.word("engine", Engine::from_name, &Engine::ALL.map(Engine::name)))
        .transpose()?;
    let op = operator(op_name, &mut obj, names)?;
    obj.finish()?;
    let engine = engine.unwrap_or_else(|| op.default_engine());
    Ok((Instr { name, op, engine, pos: Some(node.pos()) }, name_node))
}

fn operator(name: &str, obj: &mut Obj<'_>, names: &Names) -> Result<Op, JsonError> {
    let node = obj.node;
    let ap = |obj: &mut Obj<'_>, key| operand(&obj.need(key)?, names, true);
    Ok(match name {
        "Matmult" => Op::Matmult(Box::new(matmult(obj, names)?)),
        "MatmultSparse" => Op::MatmultSparse(Box::new(MatmultSparse {
            ifmap: ap(obj, "ifmap")?,
            weights: ap(obj, "weights")?,
            tags: ap(obj, "tags")?,
            out: ap(obj, "out")?,
            compress_ratio: obj.need("compress_ratio")?.u32("compress_ratio", 1, 128)?,
        })),
        "MatmultMx" => Op::MatmultMx(Box::new(MatmultMx {
            ifmap: ap(obj, "ifmap")?,
            weights: ap(obj, "weights")?,
            ifmap_scale: ap(obj, "ifmap_scale")?,
            weights_scale: ap(obj, "weights_scale")?,
            out: ap(obj, "out")?,
            accumulate_flags: byte(obj, "accumulate_flags")?,
            psum_zero_region: byte(obj, "psum_zero_region")?,
            tile_position: position(obj)?,
            tile_size: size(obj)?,
        })),
        "QuantizeMx" => {
            Op::QuantizeMx { src: ap(obj, "src")?, data: ap(obj, "data")?, scale: ap(obj, "scale")? }
        }
        "DmaCopy" => Op::DmaCopy { dst: ap(obj, "dst")?, src: ap(obj, "src")? },
        "TensorCopy" => Op::TensorCopy { dst: ap(obj, "dst")?, src: ap(obj, "src")? },
        "Transpose" => Op::Transpose { dst: ap(obj, "dst")?, src: ap(obj, "src")? },
        "Memset" => Op::Memset { dst: ap(obj, "dst")?, value: immediate(&obj.need("value")?, "value")? },
        "TensorTensor" => Op::TensorTensor {
            dst: ap(obj, "dst")?,
            src0: ap(obj, "src0")?,
            src1: ap(obj, "src1")?,
            op: alu(&obj.need("alu")?)?,
        },
        "TensorScalar" => Op::TensorScalar {
            dst: ap(obj, "dst")?,
            src: ap(obj, "src")?,
            op0: alu(&obj.need("op0")?)?,
            operand0: immediate(&obj.need("operand0")?, "operand0")?,
            second: second(obj)?,
        },
        "Activation" => Op::Activation {
            dst: ap(obj, "dst")?,
            src: ap(obj, "src")?,
            func: obj.need("func")?.word(
                "activation function",
                ActFunc::from_name,
                &ActFunc::ALL.iter().map(|f| f.name()).collect::<Vec<_>>(),
            )?,
            scale: obj.take("scale").map_or(Ok(1.0), |n| n.float("scale"))?,
            bias: obj.take("bias").map_or(Ok(0.0), |n| n.float("bias"))?,
            accumulate: obj.take("accumulate").map(|n| accumulate(&n)).transpose()?,
        },
        "TensorReduce" => Op::TensorReduce {
            dst: ap(obj, "dst")?,
            src: ap(obj, "src")?,
            op: alu(&obj.need("alu")?)?,
            axes: obj.need("axis")?.u32("axis", 1, 4)?,
        },
        "ReadActivationAccumulator" => Op::ReadActivationAccumulator { dst: ap(obj, "dst")? },
        "AffineSelect" => Op::AffineSelect(Box::new(AffineSelect {
            dst: ap(obj, "dst")?,
            src: ap(obj, "src")?,
            on_false: immediate(&obj.need("on_false")?, "on_false")?,
            cmp: alu(&obj.need("cmp")?)?,
            base: obj.take("base").map_or(Ok(0), |n| n.int("base", -limits::MAX_STEP, limits::MAX_STEP))?,
            channel_multiplier: obj
                .take("channel_multiplier")
                .map_or(Ok(0), |n| n.int("channel_multiplier", -limits::MAX_STEP, limits::MAX_STEP))?,
            pattern: pattern(&obj.need("pattern")?, 1, limits::MAX_PAIRS - 1)?,
        })),
        // `OPS` and the arms above are one list; a test holds them together.
        other => {
            return Err(node.error(
                JsonErrorKind::UnknownName,
                format!("{} is no operator", quote(other)),
                format!("known here: {}", OPS.join(", ")),
            ));
        }
    })
}

fn matmult(obj: &mut Obj<'_>, names: &Names) -> Result<Matmult, JsonError> {
    let ifmap = operand(&obj.need("ifmap")?, names, true)?;
    let weights = operand(&obj.need("weights")?, names, true)?;
    let out = operand(&obj.need("out")?, names, true)?;
    let mut m = Matmult::new(ifmap, weights, out);
    if let Some(n) = obj.take("calc") {
        m.calc = calc(&n)?;
    }
    if let Some(n) = obj.take("perf_mode") {
        let find = |w: &str| PerfMode::ALL.into_iter().find(|p| p.name() == w);
        m.perf_mode = n.word("perf mode", find, &PerfMode::ALL.map(PerfMode::name))?;
    }
    m.tile_position = position(obj)?;
    m.tile_size = size(obj)?;
    m.is_transpose = obj.flag("is_transpose")?;
    m.is_fmap_onezero = obj.flag("is_fmap_onezero")?;
    m.is_weight_onezero = obj.flag("is_weight_onezero")?;
    m.background_transpose = obj.flag("background_transpose")?;
    m.moving_transpose = obj.flag("moving_transpose")?;
    m.replication = byte(obj, "replication")?.unwrap_or(0);
    m.psum_zero_region = byte(obj, "psum_zero_region")?;
    if let Some(n) = obj.take("zero_points") {
        let mut points = n.object()?;
        m.zero_point_ifmap = byte(&mut points, "ifmap")?;
        m.zero_point_weights = byte(&mut points, "weights")?;
        points.finish()?;
    }
    Ok(m)
}

fn byte(obj: &mut Obj<'_>, key: &'static str) -> Result<Option<u8>, JsonError> {
    obj.take(key).map(|n| n.byte(key)).transpose()
}

fn calc(node: &Node<'_>) -> Result<Calc, JsonError> {
    const WORDS: [&str; 4] = ["start", "stop", "accumulate", "continue"];
    if node.is_string() {
        return node.word("calc", |w| (w == "auto").then_some(Calc::Auto), &["auto"]);
    }
    let mut flags = CalcFlags::default();
    for item in node.array()? {
        let flag = match &*item.string("a calc flag")? {
            "start" => &mut flags.start,
            "stop" => &mut flags.stop,
            "accumulate" => &mut flags.accumulate,
            "continue" => &mut flags.cont,
            _ => return item.word("calc flag", |_| None, &WORDS),
        };
        if std::mem::replace(flag, true) {
            return Err(item.error(
                JsonErrorKind::DuplicateName,
                format!("calc flag {} is given twice", item.describe()),
                "give each flag once",
            ));
        }
    }
    Ok(Calc::Explicit(flags))
}

fn pair_of_u32(obj: &mut Obj<'_>, key: &'static str) -> Result<Option<[u32; 2]>, JsonError> {
    let Some(node) = obj.take(key) else { return Ok(None) };
    match node.array()?.as_slice() {
        [row, column] => Ok(Some([row.u32(key, 0, 1024)?, column.u32(key, 0, 1024)?])),
        other => Err(node.error(
            JsonErrorKind::Range,
            format!("{key} has {} entries, not 2", other.len()),
            format!("write \"{key}\": [rows, columns]"),
        )),
    }
}

fn position(obj: &mut Obj<'_>) -> Result<Option<[u32; 2]>, JsonError> {
    pair_of_u32(obj, "tile_position")
}

fn size(obj: &mut Obj<'_>) -> Result<Option<[u32; 2]>, JsonError> {
    pair_of_u32(obj, "tile_size")
}

fn alu(node: &Node<'_>) -> Result<AluOp, JsonError> {
    node.word("ALU operation", AluOp::from_name, &AluOp::ALL.iter().map(|o| o.name()).collect::<Vec<_>>())
}

fn immediate(node: &Node<'_>, what: &str) -> Result<Immediate, JsonError> {
    if node.is_integer() {
        node.int(what, i64::MIN, i64::MAX).map(Immediate::Int)
    } else {
        node.float(what).map(Immediate::Float)
    }
}

/// The second operation of a TensorScalar and its scalar: both or neither.
fn second(obj: &mut Obj<'_>) -> Result<Option<(AluOp, Immediate)>, JsonError> {
    if let Some(op) = obj.take("op1") {
        return Ok(Some((alu(&op)?, immediate(&obj.need("operand1")?, "operand1")?)));
    }
    match obj.take("operand1") {
        None => Ok(None),
        Some(_) => obj.need("op1").map(|_| None),
    }
}

fn accumulate(node: &Node<'_>) -> Result<Accumulate, JsonError> {
    let mut obj = node.object()?;
    let command = obj.need("command")?.int("command", 0, 5)?;
    let a = Accumulate {
        command: u8::try_from(command).unwrap_or(0),
        op: alu(&obj.need("op")?)?,
        load: obj.take("load").map(|n| n.float("load")).transpose()?,
    };
    obj.finish()?;
    Ok(a)
}

/// An operand. `gather` says whether an `index` may follow: an index has none of its own.
fn operand(node: &Node<'_>, names: &Names, gather: bool) -> Result<Ap, JsonError> {
    let mut obj = node.object()?;
    let loc_node = obj.need("loc")?;
    let loc = loc_node.string("a location")?;
    let Some(&loc) = names.get(&*loc) else {
        return Err(loc_node.error(
            JsonErrorKind::UnknownName,
            format!("no location is called {}", quote(&loc)),
            "declare it in \"memlocs\", or name one that is declared there",
        ));
    };
    let dtype = dtype(&obj.need("dtype")?)?;
    let pattern = pattern(&obj.need("pattern")?, 1, limits::MAX_PAIRS)?;
    let partition = obj.take("partition").map_or(Ok(0), |n| {
        n.u32("partition", 0, u32::try_from(limits::MAX_PARTITIONS).unwrap_or(u32::MAX))
    })?;
    let most = i64::try_from(limits::MAX_DRAM_BYTES).unwrap_or(i64::MAX);
    let offset = obj.take("offset").map_or(Ok(0), |n| n.int("offset", 0, most))?.unsigned_abs();
    let index = match if gather { obj.take("index") } else { None } {
        Some(n) => Some(Box::new(operand(&n, names, false)?)),
        None => None,
    };
    obj.finish()?;
    Ok(Ap { loc, dtype, partition, offset, pattern, index })
}

fn pattern(node: &Node<'_>, least: usize, most: usize) -> Result<Vec<Pair>, JsonError> {
    let items = node.array()?;
    if items.len() < least || items.len() > most {
        return Err(node.error(
            JsonErrorKind::Range,
            format!("a pattern of {} pairs is outside {least}..={most}", items.len()),
            "write [[step, num], ...], partitions first in an operand, then at most 4 free dimensions",
        ));
    }
    items.iter().map(pair).collect()
}

fn pair(node: &Node<'_>) -> Result<Pair, JsonError> {
    match node.array()?.as_slice() {
        [step, num] => Ok(Pair {
            step: step.int("step", -limits::MAX_STEP, limits::MAX_STEP)?,
            num: num.int("count", 1, limits::MAX_COUNT)?.unsigned_abs(),
        }),
        other => Err(node.error(
            JsonErrorKind::Range,
            format!("a pattern entry has {} numbers, not 2", other.len()),
            "write [step, num]",
        )),
    }
}
