//! cargo fuzz run file
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::file(data));
