//! cargo fuzz run budget
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::budget(data));
