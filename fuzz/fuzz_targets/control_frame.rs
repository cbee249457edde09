#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holdfast_fuzz::run("control_frame", bytes));
