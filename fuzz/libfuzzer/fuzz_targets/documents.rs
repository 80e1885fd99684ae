#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| waitroom_fuzz::documents(data));
