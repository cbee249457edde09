#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holdfast_fuzz::run("worker_frame", bytes));
