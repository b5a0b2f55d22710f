#![no_main]
use hadal_isa::{Word, properties};

libfuzzer_sys::fuzz_target!(|bytes: [u8; 64]| {
    for target in properties::targets() {
        properties::word(&Word(bytes), target).unwrap();
    }
});
