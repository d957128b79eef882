//! cargo fuzz run stored
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::stored(data));
