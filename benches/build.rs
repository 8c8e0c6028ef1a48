//! Keeps the compiler's name: figures depend on it.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = env::var_os("RUSTC").expect("cargo names the compiler");
    let output = Command::new(rustc).arg("--version").output().expect("the compiler says its version");
    println!("cargo::rustc-env=WRAITH_RUSTC={}", String::from_utf8_lossy(&output.stdout).trim());
}
