//! cargo fuzz run shared
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::shared(data));
