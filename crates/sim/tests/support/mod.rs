//! Shared by the integration tests: programs by hand, golden arrays, and runs on both executors.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod generate;
pub mod naive;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use hadal_ir::encode::lower;
use hadal_ir::program::{Ap, Attrs, Instr, LocId, LocKind, Matmult, MemLoc, Module, Op, Pair, Program, Role};
use hadal_ir::verify::{LowerOptions, verify};
use hadal_isa::Target;
use hadal_num::Dtype;
use hadal_sim::bind::{self, Array, ArrayDtype};
use hadal_sim::{Machine, Options, bundle_exec, compare, ir_exec};

pub fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(path)
}

/// A version 1 .npy file in C order.
pub fn npy(path: &str) -> Array {
    let file = fs::read(data(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
    let len = usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = std::str::from_utf8(&file[10..10 + len]).unwrap();
    assert!(header.contains("'fortran_order': False"));
    let dtype = match header.split("'descr': '").nth(1).unwrap().split('\'').next().unwrap() {
        "<f4" => ArrayDtype::F32,
        "|u1" => ArrayDtype::U8,
        "<u2" => ArrayDtype::U16,
        "<u4" => ArrayDtype::U32,
        other => panic!("{other}"),
    };
    let dims = header.split("'shape': (").nth(1).unwrap().split(')').next().unwrap();
    let shape = dims.split(',').filter_map(|d| d.trim().parse().ok()).collect();
    let array = Array { dtype, shape, data: file[10 + len..].to_vec() };
    array.check().unwrap();
    array
}

pub fn sb(name: &str, partition: u32, partitions: u32, offset: u32, bytes: u32) -> MemLoc {
    let kind = LocKind::Sb { partition: Some(partition), partitions, offset: Some(offset), bytes };
    MemLoc { name: name.into(), kind, pos: None }
}

pub fn psum(name: &str, partition: u32, partitions: u32, bank: u32, offset: u32, bytes: u32) -> MemLoc {
    let kind = LocKind::Psum {
        partition: Some(partition),
        partitions,
        bank: Some(bank),
        offset: Some(offset),
        bytes,
    };
    MemLoc { name: name.into(), kind, pos: None }
}

pub fn dram(name: &str, role: Role, dtype: Dtype, shape: &[u64]) -> MemLoc {
    MemLoc { name: name.into(), kind: LocKind::Dram { role, dtype, shape: shape.to_vec() }, pos: None }
}

pub fn ap(loc: u32, dtype: Dtype, pairs: &[(i64, u64)]) -> Ap {
    let pattern = pairs.iter().map(|&(step, num)| Pair::new(step, num)).collect();
    Ap { loc: LocId(loc), dtype, partition: 0, offset: 0, pattern, index: None }
}

pub fn instr(name: &str, op: Op) -> Instr {
    Instr { name: name.into(), engine: op.default_engine(), op, pos: None }
}

pub fn matmult(ifmap: Ap, weights: Ap, out: Ap) -> Matmult {
    Matmult::new(ifmap, weights, out)
}

pub fn program(locs: Vec<MemLoc>, ops: Vec<Op>) -> Program {
    let instrs = ops.into_iter().enumerate().map(|(i, op)| instr(&format!("i{i}"), op)).collect();
    Program { attrs: Attrs::default(), locs, instrs }
}

pub fn bits(name: &str, dtype: ArrayDtype, shape: &[usize], data: Vec<u8>) -> (String, Array) {
    (name.to_owned(), Array { dtype, shape: shape.to_vec(), data })
}

pub fn floats(name: &str, shape: &[usize], values: &[f32]) -> (String, Array) {
    (name.to_owned(), Array::from_f32(shape.to_vec(), values))
}

/// Verifies, lowers with and without the weight cache, runs both executors, and demands identical memory.
/// Gives the program after the passes and the memory.
pub fn both(
    program: Program,
    target: Target,
    options: Options,
    given: &[(String, Array)],
) -> (Program, Machine) {
    both_with(program, LowerOptions::new(target), options, given)
}

pub fn both_with(
    program: Program,
    lowering: LowerOptions,
    options: Options,
    given: &[(String, Array)],
) -> (Program, Machine) {
    let given: BTreeMap<String, Array> = given.iter().cloned().collect();
    let target = lowering.target;
    let module = Module { name: "test".into(), cores: vec![program], notes: Vec::new() };
    let mut result: Option<(Program, Machine)> = None;
    for weight_cache in [true, false] {
        let v = verify(module.clone(), LowerOptions { weight_cache, ..lowering })
            .unwrap_or_else(|e| panic!("{}", e.iter().map(|v| v.to_string()).collect::<String>()));
        let lowered = lower(&v).unwrap();
        let program = v.core(0).unwrap();
        let start = || {
            let mut m = Machine::new(target);
            bind::fill(&mut m, program, 7, &given).unwrap();
            m
        };
        let mut a = start();
        ir_exec::run(program, target, &mut a, &options, &mut ()).unwrap_or_else(|e| panic!("{e}"));
        let mut b = start();
        bundle_exec::run(&lowered.cores[0], Some(program), target, &mut b, &options, &mut ())
            .unwrap_or_else(|e| panic!("{e}"));
        if let Some(d) = compare(&a, &b) {
            panic!("executors differ (weight cache {weight_cache}): {d}");
        }
        if let Some((_, first)) = &result {
            assert_eq!(compare(first, &a), None);
        }
        result = Some((program.clone(), a));
    }
    result.unwrap()
}

/// A location's elements as float32.
pub fn values(machine: &Machine, program: &Program, name: &str) -> Vec<f32> {
    let id = program.find_loc(name).unwrap();
    let dtype = bind::element_type(program, id);
    let array = bind::dump(machine, program, name).unwrap();
    bind::widen(&array, dtype).unwrap().to_f32().unwrap()
}

pub fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
