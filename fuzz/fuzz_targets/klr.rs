#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hadal_ir::properties::klr(bytes).unwrap());
