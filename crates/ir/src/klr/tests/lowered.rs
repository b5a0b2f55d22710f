//! Lowering of the accepted files. Expected operands are worked out by hand from the dumps: an element offset
//! `o` of a tensor with `f` elements a row is partition `o / f`, byte `(o % f) * size`.

use super::{bytes, names};
use crate::klr::ast::{Edges, File};
use crate::klr::ops::{AluOp, DgeComputeOp, Immediate, NcMatMul, Operator, PerfMode};
use crate::klr::tensor::{Access, ApPair, Dtype, Index, Memory, Slice, TensorRef};
use crate::klr::{KlrTranspose, lower};
use crate::program::{self, Ap, Calc, Engine, LocKind, Module, Op, Program, Role};

fn file(name: &str) -> File {
    File::parse(&bytes(&format!("accept/{name}.klr"))).unwrap()
}

fn module(name: &str) -> Module {
    lower(&file(name), KlrTranspose::Refuse).unwrap_or_else(|violations| panic!("{name}: {violations:?}"))
}

fn show(program: &Program, ap: &Ap) -> String {
    let pattern: Vec<String> =
        ap.pattern.iter().map(|pair| format!("[{},{}]", pair.step, pair.num)).collect();
    let name = &program.loc(ap.loc).unwrap().name;
    format!("{name} {} p{} b{} {}", ap.dtype.name(), ap.partition, ap.offset, pattern.join(""))
}

/// `name: operand=ap, ...` of an instruction, in the order of the interchange form.
fn line(program: &Program, index: usize) -> String {
    let instr = &program.instrs[index];
    let operands = instr.op.operands();
    let operands: Vec<String> =
        operands.iter().map(|(name, _, ap)| format!("{name}={}", show(program, ap))).collect();
    format!("{}: {}", instr.name, operands.join(", "))
}

fn locs(program: &Program) -> Vec<String> {
    let number = |value: Option<u32>| value.map_or("-".to_owned(), |value| value.to_string());
    let kind = |kind: &LocKind| match kind {
        LocKind::Sb { partition, partitions, offset, bytes } => {
            format!("SB {}+{partitions} {}+{bytes}", number(*partition), number(*offset))
        }
        LocKind::Psum { partition, partitions, bank, offset, bytes } => {
            format!("PSUM {}+{partitions} {}:{}+{bytes}", number(*partition), number(*bank), number(*offset))
        }
        LocKind::Dram { role, dtype, shape } => format!("DRAM {} {} {shape:?}", role.name(), dtype.name()),
    };
    program.locs.iter().map(|loc| format!("{} {}", loc.name, kind(&loc.kind))).collect()
}

fn matmult(program: &Program, index: usize) -> &program::Matmult {
    let Op::Matmult(op) = &program.instrs[index].op else { panic!("{}", program.instrs[index].name) };
    op
}

#[test]
fn small_matmul() {
    let module = module("tiny_mm");
    assert_eq!((module.name.as_str(), module.cores.len(), module.notes.len()), ("t", 1, 0));
    let program = &module.cores[0];
    assert_eq!(locs(program), ["p PSUM 0+3 0:0+20", "a SB 0+4 0+6", "b SB 0+4 64+10"]);
    assert_eq!(
        line(program, 0),
        "matmult_0: ifmap=b bfloat16 p0 b0 [1,4][1,5], weights=a bfloat16 p0 b0 [1,4][1,3], \
         out=p float32 p0 b0 [1,3][1,5]"
    );
    let instr = &program.instrs[0];
    assert_eq!(
        (instr.engine, instr.pos.as_ref().unwrap().to_string()),
        (Engine::Pe, "kernel.py:10:2".into())
    );
    let op = matmult(program, 0);
    assert_eq!((op.calc, op.flags, op.tile_position, op.tile_size), (Calc::Auto, None, None, None));
    assert!(!op.is_transpose && !op.moving_transpose && !op.is_fmap_onezero && !op.is_weight_onezero);
}

#[test]
fn dense_kernel_of_one_core_equals_that_of_contents_2() {
    let module = module("a_dense_bf16_128x128x512");
    let program = &module.cores[0];
    assert_eq!(
        locs(program),
        [
            "lhsT DRAM input bfloat16 [128, 128]",
            "rhs DRAM input bfloat16 [128, 512]",
            "out DRAM output float32 [128, 512]",
            "a_sb SB -+128 -+256",
            "b_sb SB -+128 -+1024",
            "res_psum PSUM -+128 -:-+2048",
            "res_sb SB -+128 -+2048",
        ]
    );
    let expected = [
        "DmaCopy-0: src=lhsT bfloat16 p0 b0 [128,128][1,128], dst=a_sb bfloat16 p0 b0 [1,128][1,128]",
        "DmaCopy-1: src=rhs bfloat16 p0 b0 [512,128][1,512], dst=b_sb bfloat16 p0 b0 [1,128][1,512]",
        "matmult_2: ifmap=b_sb bfloat16 p0 b0 [1,128][1,512], weights=a_sb bfloat16 p0 b0 [1,128][1,128], \
         out=res_psum float32 p0 b0 [1,128][1,512]",
        "TensorCopy-3: src=res_psum float32 p0 b0 [1,128][1,512], dst=res_sb float32 p0 b0 [1,128][1,512]",
        "DmaCopy-4: src=res_sb float32 p0 b0 [1,128][1,512], dst=out float32 p0 b0 [512,128][1,512]",
    ];
    assert_eq!((0..program.instrs.len()).map(|i| line(program, i)).collect::<Vec<_>>(), expected);
    let engines: Vec<Engine> = program.instrs.iter().map(|instr| instr.engine).collect();
    assert_eq!(engines, [Engine::Dma, Engine::Dma, Engine::Pe, Engine::Dve, Engine::Dma]);
    assert_eq!(module, self::module("a_dense_kernel"));
}

#[test]
fn offsets_and_placed_psum() {
    let module = module("b_k512_accumulate4");
    let program = &module.cores[0];
    assert!(locs(program).contains(&"acc PSUM 0+128 2:0+2048".to_owned()));
    assert!(locs(program).contains(&"b_sb.3 SB 0+128 4096+1024".to_owned()));
    // Element 16384 of bfloat16.
    assert_eq!(
        line(program, 2),
        "DmaCopy-2: src=lhsT bfloat16 p0 b32768 [128,128][1,128], dst=a_sb.1 bfloat16 p0 b0 [1,128][1,128]"
    );
    let matmults = program.instrs.iter().filter(|instr| matches!(instr.op, Op::Matmult(_)));
    assert_eq!(
        matmults.map(|instr| instr.name.as_str()).collect::<Vec<_>>(),
        ["matmult_8", "matmult_9", "matmult_10", "matmult_11"]
    );
    assert_eq!(program.instrs[12].engine, Engine::Activation);
}

#[test]
fn tiles() {
    let module = module("c_tile64x64");
    let program = &module.cores[0];
    // Stationary element 8256 = 64 rows of 128 and 64 elements; destination 32768 = 64 rows of 512.
    assert_eq!(
        line(program, 5),
        "matmult_5: ifmap=b_sb bfloat16 p64 b0 [1,64][1,512], weights=a_sb bfloat16 p64 b128 [1,64][1,64], \
         out=psum_rows1 float32 p64 b0 [1,64][1,512]"
    );
    let op = matmult(program, 5);
    assert_eq!((op.tile_position, op.tile_size), (Some([64, 64]), Some([64, 64])));
    let Op::TensorTensor { op, .. } = &program.instrs[8].op else { panic!() };
    assert_eq!((*op, program.instrs[8].engine), (program::AluOp::Add, Engine::Dve));
}

#[test]
fn mx() {
    let module = module("d_mx_scattered");
    let program = &module.cores[0];
    let expected = [
        // The weights are stored as uint32 and seen as four-element containers.
        (
            0,
            "DmaCopy-0: src=stationary_mx_data float8_e4m3fn_x4 p0 b0 [128,128][1,128], \
             dst=st_x4 float8_e4m3fn_x4 p0 b0 [1,128][1,128]",
        ),
        (
            3,
            "DmaCopy-3: src=stationary_mx_scale uint8 p0 b512 [128,4][1,128], dst=st_scale uint8 p32 b0 [1,4][1,128]",
        ),
        (
            7,
            "QuantizeMX-7: src=mv_bf16 bfloat16 p0 b0 [1,128][1,2048], data=mv_x4 float8_e5m2_x4 p0 b0 [1,128][1,512], \
             scale=mv_scale uint8 p0 b0 [1,128][1,512]",
        ),
        (
            8,
            "MatmulMx-8: ifmap=mv_x4 float8_e5m2_x4 p0 b0 [1,128][1,512], weights=st_x4 float8_e4m3fn_x4 p0 b0 [1,128][1,128], \
             ifmap_scale=mv_scale uint8 p0 b0 [1,128][1,512], weights_scale=st_scale uint8 p0 b0 [1,128][1,128], \
             out=res float32 p0 b0 [1,128][1,512]",
        ),
    ];
    for (index, text) in expected {
        assert_eq!(line(program, index), text);
    }
    let Op::Memset { value, .. } = &program.instrs[1].op else { panic!() };
    assert_eq!(*value, program::Immediate::Int(0));
    assert_eq!((program.instrs[7].engine, program.instrs[8].engine), (Engine::Dve, Engine::Pe));
    assert_eq!(module, self::module("d_mx_scattered_placeholder_props"));

    let program = &self::module("d2_mx_rowtile32").cores[0];
    let Op::MatmultMx(op) = &program.instrs[4].op else { panic!() };
    assert_eq!((op.tile_position, op.tile_size), (Some([32, 0]), Some([32, 128])));
    assert_eq!(show(program, &op.weights_scale), "as uint8 p0 b0 [1,4][1,32]");
    assert!(locs(program).contains(&"as SB 32+4 1408+32".to_owned()));
}

#[test]
fn both_transpose_forms() {
    let module = module("e_transpose");
    let program = &module.cores[0];
    let Op::AffineSelect(select) = &program.instrs[3].op else { panic!() };
    assert_eq!((select.base, select.channel_multiplier), (0, -1));
    assert_eq!(select.pattern, [program::Pair::new(1, 128)]);
    assert_eq!((select.cmp, select.on_false), (program::AluOp::NotEqual, program::Immediate::Float(1.0)));
    // The public form: data stationary, identity moving and marked as ones and zeros.
    let user = matmult(program, 4);
    assert!(user.is_transpose && user.is_fmap_onezero && !user.is_weight_onezero && !user.moving_transpose);
    // KLR's own form is kept as written, and marked.
    let own = matmult(program, 5);
    assert!(own.is_transpose && !own.is_fmap_onezero && own.is_weight_onezero && own.moving_transpose);
    assert_eq!(show(program, &own.weights), "ident bfloat16 p0 b0 [1,128][1,128]");
    assert_eq!(show(program, &own.ifmap), "y_sb bfloat16 p0 b0 [1,128][1,128]");
    assert!(module.notes.is_empty());

    let module = lower(&file("e_transpose"), KlrTranspose::Moving).unwrap();
    let program = &module.cores[0];
    assert_eq!(matmult(program, 4), user);
    let own = matmult(program, 5);
    assert!(own.is_transpose && own.is_fmap_onezero && !own.is_weight_onezero && !own.moving_transpose);
    assert_eq!(show(program, &own.weights), "y_sb bfloat16 p0 b0 [1,128][1,128]");
    assert_eq!(show(program, &own.ifmap), "ident bfloat16 p0 b0 [1,128][1,128]");
    let note = &module.notes[0];
    assert_eq!((module.notes.len(), note.code), (1, "N-KLR-TRANSPOSE"));
    assert_eq!(note.pos.as_ref().unwrap().to_string(), "kernel.py:15:2");
}

#[test]
fn double_row() {
    let module = module("f_doublerow_fp8");
    let program = &module.cores[0];
    assert_eq!(matmult(program, 2).perf_mode, hadal_isa::PerfMode::DoubleRow);
    assert_eq!(
        line(program, 2),
        "matmult_2: ifmap=b_sb float8_e5m2 p0 b0 [1,128][512,2][1,512], \
         weights=a_sb float8_e4m3 p0 b0 [1,128][128,2][1,128], out=p float32 p0 b0 [1,128][1,512]"
    );
}

#[test]
fn a_dropped_performance_mode_is_noted() {
    let mut file = file("f_doublerow_fp8");
    edit(&mut file, 2, |op| {
        let Operator::NcMatMul(op) = op else { panic!() };
        op.perf_mode = PerfMode::DoubleRowSwInterleave;
    });
    let module = lower(&file, KlrTranspose::Refuse).unwrap();
    assert_eq!(matmult(&module.cores[0], 2).perf_mode, hadal_isa::PerfMode::None);
    let note = &module.notes[0];
    assert_eq!((note.code, note.pos.as_ref().unwrap().line), ("N-PERF-MODE", 12));
}

#[test]
fn every_access_form_but_the_dynamic_one() {
    let mut file = file("g_access_forms");
    let violations = lower(&file, KlrTranspose::Refuse).unwrap_err();
    assert_eq!(violations.len(), 1);
    assert_eq!(
        violations[0].to_string(),
        "error[KLR-102]: an offset from register r0 (scalarOffset/vectorOffset, dimension 1) is known only when the \
         kernel runs\n  --> kernel.py:14:2: ncMatMul, operand moving\n  = help: trace the kernel with constant offsets"
    );
    file.kernel.cores[0][0].body.pop();
    let module = lower(&file, KlrTranspose::Refuse).unwrap();
    let program = &module.cores[0];
    assert_eq!(
        locs(program),
        [
            "p PSUM 0+128 1:0+2048",
            "a SB 0+128 512+256",
            "b SB 0+128 1024+1024",
            "o DRAM internal float32 [65536]"
        ]
    );
    let expected = [
        // Index 1 of [2, 64] is element 64; 256:384 begins at element 256.
        "matmult_0: ifmap=b float16 p0 b512 [1,128][1,128], weights=a float16 p0 b128 [1,128][1,64], \
         out=p float32 p0 b0 [1,128][1,512]",
        // A free offset of 1 is in units of the dimension's 64 elements.
        "matmult_1: ifmap=b float16 p0 b0 [1,128][2,256], weights=a float16 p0 b128 [1,128][1,64], \
         out=p float32 p0 b1024 [1,64][1,256]",
        "matmult_2: ifmap=b float16 p0 b0 [1,128][1,256], weights=a float16 p0 b0 [1,128][1,64], \
         out=p float32 p64 b0 [1,64][1,256]",
        "DmaCopy-3: src=p float32 p0 b0 [1,128][1,512], dst=o float32 p0 b0 [512,128][1,512]",
    ];
    assert_eq!((0..4).map(|i| line(program, i)).collect::<Vec<_>>(), expected);
    assert_eq!(module.notes[0].code, "N-HBM-ADDRESS");
}

#[test]
fn two_cores_share_device_memory_only() {
    let module = module("h_lnc2_two_cores");
    assert_eq!(module.cores.len(), 2);
    for (core, program) in module.cores.iter().enumerate() {
        let own: Vec<String> = ["a", "b", "p", "r"].iter().map(|name| format!("{name}.{core}")).collect();
        let names: Vec<&str> = program.locs.iter().map(|loc| loc.name.as_str()).collect();
        assert_eq!(names[..3], ["lhsT", "rhs", "out"]);
        assert_eq!(names[3..], own);
        let LocKind::Dram { role: Role::Output, shape, .. } = &program.locs[2].kind else { panic!() };
        assert_eq!(*shape, [256, 512]);
        assert_eq!(program.instrs[2].name, "matmult_2");
    }
    let second = &module.cores[1];
    // Column 128 of bfloat16; row 128 of 512 float32.
    assert_eq!(
        line(second, 0),
        "DmaCopy-0: src=lhsT bfloat16 p0 b256 [256,128][1,128], dst=a.1 bfloat16 p0 b0 [1,128][1,128]"
    );
    assert_eq!(
        line(second, 4),
        "DmaCopy-4: src=r.1 float32 p0 b0 [1,128][1,512], dst=out float32 p0 b262144 [512,128][1,512]"
    );
}

fn edit(file: &mut File, statement: usize, change: impl FnOnce(&mut Operator)) {
    change(&mut file.kernel.cores[0][0].body[statement].op);
}

fn edit_matmul(file: &mut File, statement: usize, change: impl FnOnce(&mut NcMatMul)) {
    edit(file, statement, |op| match op {
        Operator::NcMatMul(op) => change(op),
        other => panic!("{}", other.name()),
    });
}

fn access(operand: &mut TensorRef) -> &mut crate::klr::tensor::BirAccessPattern {
    let TensorRef::Abstract(Access::BirPattern(access)) = operand else { panic!() };
    access
}

/// Everything wrong with a kernel is reported, in program order, with source positions.
#[test]
fn all_violations_at_once() {
    let mut file = file("a_dense_kernel");
    edit(&mut file, 0, |op| {
        let Operator::NcDmaCopy(op) = op else { panic!() };
        op.compute_op = DgeComputeOp::Add;
    });
    edit(&mut file, 1, |op| {
        let Operator::NcDmaCopy(op) = op else { panic!() };
        access(&mut op.src).dtype_override = Some(Dtype::Float32);
    });
    edit_matmul(&mut file, 2, |op| {
        op.tile_size = vec![128];
        access(&mut op.moving).pattern[1].num = 513;
    });
    edit(&mut file, 3, |op| {
        let Operator::NcCopy(op) = op else { panic!() };
        op.dtype = Some(Dtype::Bfloat16);
    });
    let offset = file.contents.offset;
    edit(&mut file, 4, |op| {
        let value = crate::klr::value::Value { offset, kind: crate::klr::value::Kind::Absent };
        *op = Operator::Other { name: "activate2", value };
    });
    file.kernel.edges.push(Edges { from: "main".into(), to: vec!["main".into(), "exit".into()] });
    let violations = lower(&file, KlrTranspose::Refuse).unwrap_err();
    let found: Vec<(&str, u32)> =
        violations.iter().map(|v| (v.code, v.pos.as_ref().map_or(0, |pos| pos.line))).collect();
    assert_eq!(
        found,
        [
            ("KLR-109", 0),
            ("KLR-107", 10),
            ("KLR-103", 11),
            ("KLR-105", 12),
            ("KLR-108", 12),
            ("KLR-107", 13),
            ("KLR-101", 14),
        ]
    );
    assert_eq!(violations[2].text, "bfloat16 seen as float32, whose containers have another size");
    assert_eq!(violations[6].text, "operator activate2 is not supported");
    assert_eq!(violations[1].subject, "ncDmaCopy dma.0");
}

/// One change to the small matmul, and the code it must give.
#[test]
fn each_rule_has_its_code() {
    type Change = fn(&mut NcMatMul);
    let cases: [(&str, Change); 12] = [
        ("KLR-102", |op| op.moving = TensorRef::Reg(3)),
        ("KLR-102", |op| access(&mut op.moving).tensor.address.memory = Memory::Reg),
        ("KLR-102", |op| {
            let inner = Access::BirPattern(access(&mut op.moving).clone());
            access(&mut op.moving).vector_offset = Some(Box::new(inner));
        }),
        // A partition step of 4 elements where a row has 5.
        ("KLR-104", |op| access(&mut op.moving).pattern[0].step = 4),
        ("KLR-104", |op| access(&mut op.moving).pattern.clear()),
        ("KLR-104", |op| access(&mut op.moving).pattern[1].num = 0),
        // Element 1 of a row and 5 from there on.
        ("KLR-105", |op| access(&mut op.moving).offset = 1),
        // Row 1 and 4 from there on, of 4.
        ("KLR-105", |op| access(&mut op.moving).offset = 5),
        ("KLR-105", |op| access(&mut op.moving).pattern[1].step = -1),
        // 4 partitions in an address of 3.
        ("KLR-106", |op| access(&mut op.moving).tensor.address.par_size = 3),
        ("KLR-106", |op| access(&mut op.moving).tensor.address.name = "a".into()),
        ("KLR-110", |op| access(&mut op.moving).tensor.address.free_size = 1 << 32),
    ];
    for (index, (code, change)) in cases.into_iter().enumerate() {
        let mut file = file("tiny_mm");
        edit_matmul(&mut file, 0, change);
        let violations = lower(&file, KlrTranspose::Refuse).unwrap_err();
        let codes: Vec<&str> = violations.iter().map(|violation| violation.code).collect();
        assert_eq!(codes, [code], "case {index}: {violations:?}");
    }
}

#[test]
fn other_settings_are_refused_by_name() {
    let mut file = file("e_transpose");
    edit(&mut file, 2, |op| {
        let Operator::MemSet(op) = op else { panic!() };
        op.value = Immediate::Pointer;
    });
    edit(&mut file, 3, |op| {
        let Operator::NcAffineSelect(op) = op else { panic!() };
        op.cmp_op = AluOp::Add;
        op.pred.pattern.push(ApPair { step: 1, num: 2, offset: 0 });
    });
    let violations = lower(&file, KlrTranspose::Refuse).unwrap_err();
    let found: Vec<(&str, &str)> = violations.iter().map(|v| (v.code, v.text.as_str())).collect();
    assert_eq!(
        found,
        [
            ("KLR-102", "a value behind a pointer is known only when the kernel runs"),
            ("KLR-107", "cmpOp add is no comparison"),
            ("KLR-104", "pred covers 256 elements a partition, dst 128"),
        ]
    );
}

/// A strided slice takes every second element; a negative step counts down.
#[test]
fn strided_slices() {
    let mut file = file("g_access_forms");
    file.kernel.cores[0][0].body.truncate(1);
    let slice = |file: &mut File, l: u64, u: u64, step: i64| {
        edit_matmul(file, 0, |op| {
            let TensorRef::Abstract(Access::Basic(basic)) = &mut op.moving else { panic!() };
            basic.indexes[1] = Index::Slice(Slice { l, u, step });
        });
        lower(file, KlrTranspose::Refuse).map(|module| {
            let program = &module.cores[0];
            show(program, &matmult(program, 0).ifmap)
        })
    };
    // Elements 1, 3, ..., 9 and 511, 508, ..., 502.
    assert_eq!(slice(&mut file, 1, 10, 2).unwrap(), "b float16 p0 b2 [1,128][2,5]");
    assert_eq!(slice(&mut file, 511, 501, -3).unwrap(), "b float16 p0 b1022 [1,128][-3,4]");
    for (l, u, step) in [(0, 513, 1), (512, 512, 1), (4, 4, 1), (0, 4, 0), (4, 0, 1), (0, 4, -1)] {
        assert_eq!(slice(&mut file, l, u, step).unwrap_err()[0].code, "KLR-105", "{l}:{u}:{step}");
    }
}

#[test]
fn every_accepted_file_lowers_or_says_why() {
    for name in names("accept", ".klr") {
        let file = File::parse(&bytes(&name)).unwrap();
        let dynamic = name.contains("g_access_forms");
        assert_eq!(lower(&file, KlrTranspose::Moving).is_err(), dynamic, "{name}");
    }
}
