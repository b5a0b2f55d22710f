#![no_main]
use hadal_isa::properties;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for target in properties::targets() {
        properties::text(text, target).unwrap();
    }
});
