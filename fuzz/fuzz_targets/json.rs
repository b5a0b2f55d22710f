#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| hadal_ir::properties::json(text).unwrap());
