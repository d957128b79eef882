//! cargo fuzz run image
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::image(data));
