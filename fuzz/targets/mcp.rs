//! cargo fuzz run mcp
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::mcp(data));
