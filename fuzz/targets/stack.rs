//! cargo fuzz run stack
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::stack(data));
