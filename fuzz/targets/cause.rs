//! cargo fuzz run cause
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::cause(data));
