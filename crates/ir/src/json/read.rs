//! Modules, cores and locations.

use std::collections::{HashMap, HashSet};

use hadal_num::Dtype;

use super::error::{JsonError, JsonErrorKind};
use super::instr;
use super::limits;
use super::node::{Doc, Node, Obj, quote};
use crate::program::{Attrs, LocId, LocKind, MemLoc, Module, Program, Role, Space};

/// Names of the locations of a core.
pub(super) type Names = HashMap<String, LocId>;

/// Reads a whole document.
pub(super) fn module(text: &str, file: &str) -> Result<Module, JsonError> {
    let doc = Doc::new(text, file);
    let mut top = doc.root()?.object()?;
    header(&mut top)?;
    let name = match top.take("name") {
        Some(n) => name_of(&n)?,
        None => stem(file).to_owned(),
    };
    let cores = match top.take("cores") {
        Some(list) => {
            let items = list.array()?;
            if items.is_empty() || items.len() > limits::MAX_CORES {
                return Err(list.error(
                    JsonErrorKind::Range,
                    format!("{} cores are outside 1..={}", items.len(), limits::MAX_CORES),
                    "give one program for each core",
                ));
            }
            let mut cores = Vec::with_capacity(items.len());
            for item in items {
                let mut obj = item.object()?;
                cores.push(program(&mut obj)?);
                obj.finish()?;
            }
            same_tensors(&list, &cores)?;
            cores
        }
        None => vec![program(&mut top)?],
    };
    top.finish()?;
    Ok(Module { name, cores, notes: Vec::new() })
}

/// The file's name without folders and without the extensions of the form.
fn stem(file: &str) -> &str {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    base.strip_suffix(".json").map_or(base, |b| b.strip_suffix(".bir").unwrap_or(b))
}

fn header(top: &mut Obj<'_>) -> Result<(), JsonError> {
    let format = top.need("format")?;
    let word = format.string("the format")?;
    if word != "hadal-bir" {
        return Err(format.error(
            JsonErrorKind::Format,
            format!("the format is {}, not \"hadal-bir\"", quote(&word)),
            "this reader takes programs in the form \"hadal-bir\" only",
        ));
    }
    let version = top.need("version")?;
    let number = version.int("version", 0, i64::MAX)?;
    if number != 1 {
        return Err(version.error(
            JsonErrorKind::Format,
            format!("version {number} is not known"),
            "this reader takes version 1",
        ));
    }
    Ok(())
}

fn program(obj: &mut Obj<'_>) -> Result<Program, JsonError> {
    let attrs = obj.take("attrs").map_or(Ok(Attrs::default()), |n| attrs(&n))?;
    let memlocs = obj.need("memlocs")?;
    let instructions = obj.need("instructions")?;

    let items = bounded(&memlocs, "locations")?;
    let mut locs = Vec::with_capacity(items.len());
    let mut names = Names::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let (loc, name_node) = memloc(item)?;
        let id = LocId(u32::try_from(i).unwrap_or(u32::MAX));
        if names.insert(loc.name.clone(), id).is_some() {
            return Err(duplicate(&name_node, "location", &loc.name));
        }
        locs.push(loc);
    }

    let items = bounded(&instructions, "instructions")?;
    let mut instrs = Vec::with_capacity(items.len());
    let mut seen = HashSet::with_capacity(items.len());
    for item in &items {
        let (instr, name_node) = instr::instruction(item, &names)?;
        if !seen.insert(instr.name.clone()) {
            return Err(duplicate(&name_node, "instruction", &instr.name));
        }
        instrs.push(instr);
    }
    Ok(Program { attrs, locs, instrs })
}

fn bounded<'a>(list: &Node<'a>, what: &str) -> Result<Vec<Node<'a>>, JsonError> {
    let items = list.array()?;
    if items.len() > limits::MAX_ITEMS {
        return Err(list.error(
            JsonErrorKind::Range,
            format!("{} {what} are more than {}", items.len(), limits::MAX_ITEMS),
            "split the program",
        ));
    }
    Ok(items)
}

fn duplicate(node: &Node<'_>, what: &str, name: &str) -> JsonError {
    node.error(
        JsonErrorKind::DuplicateName,
        format!("a second {what} is called {}", quote(name)),
        format!("give every {what} of a core its own name"),
    )
}

/// A name: not empty, not long, without control characters.
pub(super) fn name_of(node: &Node<'_>) -> Result<String, JsonError> {
    let name = node.string("a name")?;
    if name.is_empty() || name.len() > limits::MAX_NAME || name.chars().any(char::is_control) {
        return Err(node.error(
            JsonErrorKind::Range,
            format!("a name of {} bytes cannot be used", name.len()),
            format!("a name has 1 to {} bytes and no control characters", limits::MAX_NAME),
        ));
    }
    Ok(name.into_owned())
}

fn attrs(node: &Node<'_>) -> Result<Attrs, JsonError> {
    let mut obj = node.object()?;
    let auto_psum_accumulate = obj.take("auto_psum_accumulate").map(|n| n.bool()).transpose()?;
    let fp8_conv_config = match obj.take("fp8_conv_config") {
        None => [0, 0],
        Some(n) => match n.array()?.as_slice() {
            [a, b] => {
                let flag = |n: &Node<'_>| n.u32("fp8_conv_config", 0, 1).map(|v| u8::from(v == 1));
                [flag(a)?, flag(b)?]
            }
            other => {
                return Err(n.error(
                    JsonErrorKind::Range,
                    format!("fp8_conv_config has {} entries, not 2", other.len()),
                    "write [saturate, nan_suppress], each 0 or 1",
                ));
            }
        },
    };
    obj.finish()?;
    Ok(Attrs { auto_psum_accumulate, fp8_conv_config })
}

fn memloc<'a>(node: &Node<'a>) -> Result<(MemLoc, Node<'a>), JsonError> {
    const SPACES: [Space; 3] = [Space::Sb, Space::Psum, Space::Dram];
    let mut obj = node.object()?;
    let name_node = obj.need("name")?;
    let name = name_of(&name_node)?;
    let space = obj.need("space")?.word(
        "memory space",
        |w| SPACES.into_iter().find(|s| s.name() == w),
        &SPACES.map(Space::name),
    )?;
    let kind = match space {
        Space::Dram => dram(&mut obj)?,
        Space::Sb | Space::Psum => on_chip(&mut obj, space)?,
    };
    obj.finish()?;
    Ok((MemLoc { name, kind, pos: Some(node.pos()) }, name_node))
}

fn on_chip(obj: &mut Obj<'_>, space: Space) -> Result<LocKind, JsonError> {
    fn at_most(node: Node<'_>, what: &str, least: u32, most: i64) -> Result<u32, JsonError> {
        node.u32(what, least, u32::try_from(most).unwrap_or(u32::MAX))
    }
    let partition =
        obj.take("partition").map(|n| at_most(n, "partition", 0, limits::MAX_PARTITIONS)).transpose()?;
    let partitions = at_most(obj.need("partitions")?, "partitions", 1, limits::MAX_PARTITIONS)?;
    let bank = match space {
        Space::Psum => obj.take("bank").map(|n| at_most(n, "bank", 0, limits::MAX_BANK)).transpose()?,
        Space::Sb | Space::Dram => None,
    };
    let offset =
        obj.take("offset").map(|n| at_most(n, "offset", 0, limits::MAX_PARTITION_BYTES)).transpose()?;
    let bytes = at_most(obj.need("bytes")?, "bytes", 1, limits::MAX_PARTITION_BYTES)?;
    Ok(match space {
        Space::Psum => LocKind::Psum { partition, partitions, bank, offset, bytes },
        Space::Sb | Space::Dram => LocKind::Sb { partition, partitions, offset, bytes },
    })
}

fn dram(obj: &mut Obj<'_>) -> Result<LocKind, JsonError> {
    const ROLES: [Role; 3] = [Role::Input, Role::Output, Role::Internal];
    let role = match obj.take("role") {
        None => Role::Internal,
        Some(n) => n.word("role", |w| ROLES.into_iter().find(|r| r.name() == w), &ROLES.map(Role::name))?,
    };
    let dtype = dtype(&obj.need("dtype")?)?;
    let node = obj.need("shape")?;
    let dims = node.array()?;
    if dims.is_empty() || dims.len() > limits::MAX_DIMS {
        return Err(node.error(
            JsonErrorKind::Range,
            format!("a shape of {} dimensions is outside 1..={}", dims.len(), limits::MAX_DIMS),
            "give the shape, outermost dimension first",
        ));
    }
    let mut shape = Vec::with_capacity(dims.len());
    let mut bytes = dtype.bytes() as u64;
    for dim in dims {
        let d = dim.int("dimension", 1, 1 << 32)?.unsigned_abs();
        bytes = bytes.saturating_mul(d);
        shape.push(d);
    }
    if bytes > limits::MAX_DRAM_BYTES {
        return Err(node.error(
            JsonErrorKind::Range,
            format!(
                "a {dtype} tensor of this shape takes {bytes} bytes, more than {}",
                limits::MAX_DRAM_BYTES
            ),
            "give a smaller shape",
        ));
    }
    Ok(LocKind::Dram { role, dtype, shape })
}

/// An element type.
pub(super) fn dtype(node: &Node<'_>) -> Result<Dtype, JsonError> {
    node.word("element type", Dtype::from_name, &Dtype::ALL.map(Dtype::name))
}

/// DRAM tensors are shared by name, so the cores must agree on them.
fn same_tensors(list: &Node<'_>, cores: &[Program]) -> Result<(), JsonError> {
    let mut first: HashMap<&str, (usize, Dtype, &[u64])> = HashMap::new();
    for (core, program) in cores.iter().enumerate() {
        for loc in &program.locs {
            let LocKind::Dram { dtype, shape, .. } = &loc.kind else { continue };
            let (other, d, s) = *first.entry(&loc.name).or_insert((core, *dtype, shape));
            if d != *dtype || s != shape.as_slice() {
                return Err(list.error(
                    JsonErrorKind::Conflict,
                    format!(
                        "DRAM tensor {} is {d} {s:?} on core {other} and {dtype} {shape:?} on core {core}",
                        quote(&loc.name)
                    ),
                    "DRAM tensors of one name are one tensor: give them one type and shape",
                ));
            }
        }
    }
    Ok(())
}
