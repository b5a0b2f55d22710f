//! The type table against the documented facts, written out here a second time and column by column.

use hadal_num::{Dtype, Format};

const NAMES: &str = "uint8 int8 float4_e2m1fn_x4 float8_e3m4 float8_e4m3 float8_e4m3fn float8_e8m0fnu float8_e5m2 \
    float8_e4m3fn_x4 float8_e5m2_x4 uint16 int16 bfloat16 float16 uint32 int32 float32 float32r uint64 int64";

#[test]
fn the_table_holds_the_documented_columns() {
    let bytes = [1, 1, 2, 1, 1, 1, 1, 1, 4, 4, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8];
    assert_eq!(Dtype::ALL.map(Dtype::bytes), bytes);
    let x4: Vec<u8> = Dtype::ALL.into_iter().filter(|t| t.is_x4()).map(Dtype::ordinal).collect();
    assert_eq!(x4, [2, 8, 9]);
    let floats: Vec<u8> = Dtype::ALL.into_iter().filter(|t| t.is_float()).map(Dtype::ordinal).collect();
    assert_eq!(floats, [2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17]);
    let integers: Vec<u8> = Dtype::ALL.into_iter().filter(|t| t.is_integer()).map(Dtype::ordinal).collect();
    assert_eq!(integers, [0, 1, 10, 11, 14, 15, 18, 19]);
    let fp8: Vec<u8> = Dtype::ALL.into_iter().filter(|t| t.is_fp8()).map(Dtype::ordinal).collect();
    assert_eq!(fp8, [3, 4, 5, 7]);
    // The exponent table of the quantizer, from ordinal 2 on; 0 marks what forms no block.
    let emax = [2, 0, 0, 8, 0, 15, 8, 15];
    for (dtype, want) in Dtype::ALL.into_iter().skip(2).zip(emax) {
        assert_eq!(dtype.emax().unwrap_or(0), want, "{dtype}");
    }
    assert!([0, 1].into_iter().chain(10..20).all(|o| Dtype::from_ordinal(o).unwrap().emax().is_none()));
}

#[test]
fn names_and_ordinals_go_both_ways() {
    for (ordinal, name) in (0..).zip(NAMES.split_whitespace()) {
        let dtype = Dtype::from_ordinal(ordinal).unwrap();
        assert_eq!((dtype.ordinal(), dtype.name()), (ordinal, name));
        assert_eq!((dtype.to_string().as_str(), name.parse()), (name, Ok(dtype)));
    }
    assert_eq!(Dtype::from_ordinal(20), None);
    let error = "float17".parse::<Dtype>().unwrap_err();
    assert_eq!(error.code(), "num-unknown-dtype");
    assert_eq!(
        error.to_string(),
        "unknown element type `float17`; known types are those of `Dtype::ALL`, such as `bfloat16`"
    );
}

#[test]
fn every_type_of_at_most_32_bits_has_a_format() {
    for dtype in Dtype::ALL {
        let format = dtype.format();
        assert_eq!(format.is_none(), dtype.bytes() == 8, "{dtype}");
        if let Some(format) = format {
            assert_eq!(dtype.name().trim_end_matches("_x4"), format.name());
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
    }
}
