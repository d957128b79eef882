//! cargo fuzz run trace
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::trace(data));
