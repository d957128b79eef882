//! cargo fuzz run recording
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::recording(data));
