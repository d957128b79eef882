//! cargo fuzz run request
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::request(data));
