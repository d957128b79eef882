//! cargo fuzz run target
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::target(data));
