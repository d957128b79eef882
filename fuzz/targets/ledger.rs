//! cargo fuzz run ledger
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systoll_fuzz::ledger(data));
