//! Files of the accepted dialects.

use serde_json::{Value as Json, json};

use super::{bytes, json, names};
use crate::klr::ast::File;
use crate::klr::ops::{Engine, Operator, PerfMode};
use crate::klr::read::Dialect;
use crate::klr::tensor::{Access, Dtype, Index, Memory, ScalarOffset, TensorRef};

fn parse(name: &str) -> File {
    File::parse(&bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn accepted_files_equal_their_dumps() {
    let files = names("accept", ".klr");
    assert_eq!(files.len(), 13);
    for name in files {
        // The same kernel from the writer that puts a byte in the place of each proof.
        let dump = name.replace("_placeholder_props", "").replace(".klr", ".json");
        let file = parse(&name);
        assert_eq!(file.to_json(), json(&dump), "{name}");
        assert_eq!(file.version, [0, 0, 12]);
        assert_eq!(file.metadata, "NKI");
        assert_eq!(file.dialect.placeholder_props, Some(name.contains("placeholder")), "{name}");
        assert_eq!(file.dialect.block_no_reorder, Some(true), "{name}");
    }
}

fn visit(value: &mut Json, change: &dyn Fn(&mut serde_json::Map<String, Json>)) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(|item| visit(item, change)),
        Json::Object(fields) => {
            change(fields);
            fields.values_mut().for_each(|field| visit(field, change));
        }
        _ => {}
    }
}

/// Earlier dialects hold the same kernels without `NcDmaCopy.priority`, the earliest also without
/// `Block.noReorder`.
#[test]
fn older_dialects_lack_fields_only() {
    let cases = [
        ("older/feb19_a_dense.klr", "accept/a_dense_bf16_128x128x512.json", false, Some(false)),
        ("older/feb28_a_dense.klr", "accept/a_dense_bf16_128x128x512.json", true, Some(false)),
        ("older/feb19_tiny_mm.klr", "accept/tiny_mm.json", false, None),
    ];
    for (name, dump, no_reorder, priority) in cases {
        let file = parse(name);
        let mut expected = json(dump);
        visit(&mut expected, &|fields| {
            if !no_reorder {
                fields.remove("noReorder");
            }
            fields.remove("priority");
        });
        assert_eq!(file.to_json(), expected, "{name}");
        let dialect = Dialect {
            placeholder_props: Some(false),
            block_no_reorder: Some(no_reorder),
            dma_priority: priority,
            dma_engine: priority.map(|_| true),
        };
        assert_eq!(file.dialect, dialect, "{name}");
    }
}

/// Seven fields may also be all but the last.
#[test]
fn dma_copy_may_lack_its_engine() {
    let file = bytes("accept/a_dense_kernel.klr");
    // oobMode error, dgeMode 0, uniqueIndices false, priority none, engine unassigned.
    let (whole, without) = ([0xd9, 0x8d, 1, 0x80, 0, 0xf4, 0xd9, 0xff, 0, 0x80, 0xd9, 0x82, 0, 0x80], 10);
    let mut shorter = Vec::new();
    let mut rest = file.as_slice();
    let mut copies = 0;
    while let [first, tail @ ..] = rest {
        if rest.starts_with(&whole) {
            shorter.extend(&whole[..without]);
            rest = &rest[whole.len()..];
            copies += 1;
            continue;
        }
        shorter.push(if shorter.ends_with(&[0xd9, 0x99, 0]) { 0x87 } else { *first });
        rest = tail;
    }
    assert_eq!(copies, 3);
    let parsed = File::parse(&shorter).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((parsed.dialect.dma_priority, parsed.dialect.dma_engine), (Some(true), Some(false)));
    let Operator::NcDmaCopy(dma) = &parsed.kernel.cores[0][0].body[0].op else { panic!() };
    assert_eq!((dma.priority, dma.engine), (None, Engine::Unassigned));
}

#[test]
fn typed_view_of_the_small_matmul() {
    let file = parse("accept/tiny_mm.klr");
    let kernel = &file.kernel;
    assert_eq!((kernel.name.as_str(), kernel.inputs.len(), kernel.cores.len()), ("t", 0, 1));
    let block = &kernel.cores[0][0];
    assert_eq!((block.label.as_str(), block.no_reorder), ("b", false));
    let stmt = &block.body[0];
    // Byte offset from the annotated listing of the file.
    assert_eq!((stmt.offset, stmt.name.as_deref()), (0x25, None));
    assert_eq!(stmt.pos.to_string(), "kernel.py:10:2");
    let Operator::NcMatMul(op) = &stmt.op else { panic!("{}", stmt.op.name()) };
    assert_eq!(op.perf_mode, PerfMode::None);
    assert!(!op.is_transpose && op.tile_position.is_empty() && op.tile_size.is_empty());
    let TensorRef::Abstract(Access::BirPattern(moving)) = &op.moving else { panic!() };
    assert_eq!((moving.tensor.name.as_str(), moving.tensor.dtype), ("b", Dtype::Bfloat16));
    let address = &moving.tensor.address;
    assert_eq!((address.memory, address.par_size, address.free_size), (Memory::Sbuf, 4, 10));
    assert_eq!((address.par_offset, address.free_offset), (Some(0), Some(64)));
    assert_eq!((moving.pattern[0].step, moving.pattern[0].num), (5, 4));
    assert_eq!((moving.offset, moving.dtype_override), (0, None));
}

#[test]
fn typed_view_of_every_access_form() {
    let file = parse("accept/g_access_forms.klr");
    let body = &file.kernel.cores[0][0].body;
    let matmul = |index: usize| match &body[index].op {
        Operator::NcMatMul(op) => op,
        other => panic!("{}", other.name()),
    };
    assert!(matches!(&matmul(0).dst, TensorRef::Abstract(Access::Simple(tensor)) if tensor.name == "p"));
    let TensorRef::Abstract(Access::Basic(basic)) = &matmul(0).stationary else { panic!() };
    assert_eq!(basic.indexes[1], Index::Coord(1));
    assert!(matches!(&basic.indexes[2], Index::Slice(slice) if (slice.l, slice.u, slice.step) == (0, 64, 1)));
    let TensorRef::Abstract(Access::Pattern(pattern)) = &matmul(1).dst else { panic!() };
    assert_eq!((pattern.par_num, pattern.free_offset, pattern.pattern[1].offset), (64, 256, 256));
    assert!(
        matches!(&matmul(2).dst, TensorRef::Psum(view) if (view.par_offset, view.free_offset) == (64, 2048))
    );
    assert!(matches!(&matmul(2).moving, TensorRef::Sbuf(view) if view.name == "b" && view.par_num == 128));
    let Operator::NcDmaCopy(dma) = &body[3].op else { panic!() };
    assert!(matches!(&dma.dst, TensorRef::Hbm(view) if view.address == 4096 && view.dims.len() == 2));
    assert_eq!(dma.engine, Engine::Unassigned);
    let TensorRef::Abstract(Access::BirPattern(dynamic)) = &matmul(4).moving else { panic!() };
    assert_eq!(dynamic.scalar_offset, Some(ScalarOffset::Reg("r0".to_owned())));
    assert_eq!(file.to_json()["kernel"]["kernel"]["name"], json!("forms"));
}

#[test]
fn two_cores_are_two_bodies() {
    let kernel = parse("accept/h_lnc2_two_cores.klr").kernel;
    assert_eq!(kernel.cores.len(), 2);
    assert_eq!(kernel.shared_buffers.len(), 1);
    assert_eq!(kernel.outputs[0].shape.par_dim, 256);
}
