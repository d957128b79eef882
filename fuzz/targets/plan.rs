//! cargo fuzz run plan
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::plan(data));
