//! The CUDA path through the real loader: the program loads a double of the driver, `gpu/fakecuda`.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A folder with the double under the name that the loader looks for.
fn driver() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fakecuda");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("gpu/fakecuda/Cargo.toml");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--manifest-path"])
            .arg(manifest)
            .env("CARGO_TARGET_DIR", &target)
            .status();
        assert!(built.is_ok_and(|status| status.success()), "gpu/fakecuda does not build");
        let folder = target.join("driver");
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in ["libcuda.so", "libcuda.so.1"] {
            std::fs::copy(target.join("release/libfakecuda.so"), folder.join(name)).expect("a copy");
        }
        folder
    })
}

fn smoke(failure: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_graph-oracle"))
        .args(["smoke", "--device", "cuda", "--interleavings", "2", "--repetitions", "2"])
        .args(arguments)
        .env("LD_LIBRARY_PATH", driver())
        .env("FAKECUDA", failure)
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_suite_is_clean() {
    let output = smoke("", &["--table"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", text(&output.stderr));
    assert!(out.starts_with("device fakecuda, driver CUDA 13.0, kernels PTX 8.0 "), "{out}");
    assert!(out.contains("granularity 512 bytes"), "{out}");
    assert!(out.contains("pass 7 captured graph: ok (launched twice)"), "{out}");
    assert!(!out.contains("skipped") && !out.contains("WRONG"), "{out}");
}

#[test]
fn planted_faults_are_found() {
    for (fault, sign) in [
        ("use-after-free", "freed memory"),
        ("out-of-bounds", "guard-broken"),
        ("leak", "memory: step"),
        ("missing-wait", "race: step"),
        ("early-reuse", "overlap"),
    ] {
        let output = smoke("", &["--inject", fault]);
        let out = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{fault}: {out}{}", text(&output.stderr));
        assert!(out.contains(sign), "{fault}: {out}");
        assert!(
            out.contains(&format!("again: graph-oracle smoke --device cuda --seed 0 --inject {fault}")),
            "{out}"
        );
    }
}

#[test]
fn a_device_that_computes_wrongly_is_found() {
    let output = smoke("wrongmul", &["bucketed_scatter"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("self-test: mul_f32") && out.contains("first divergence"), "{out}");
}

#[test]
fn each_failure_has_its_own_line() {
    for (failure, line) in [
        ("stub", "is the stub of a toolkit"),
        ("nodevice", "finds no device"),
        ("oldptx", "older than PTX ISA 8.0"),
        ("oom", "out of device memory"),
    ] {
        let output = smoke(failure, &[]);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{failure}: {complaint}");
        assert!(
            complaint.contains(line) && complaint.trim_end().lines().count() == 1,
            "{failure}: {complaint}"
        );
    }
    let output = smoke("nodevice", &["--skip-without-gpu"]);
    assert_eq!(output.status.code(), Some(77), "{}", text(&output.stdout));
}

#[test]
fn without_a_driver_it_says_so() {
    if ["/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1"]
        .iter()
        .any(|at| Path::new(at).exists())
    {
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_graph-oracle"))
        .args(["smoke", "--device", "cuda"])
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .expect("the program runs");
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("no CUDA driver found: libcuda.so.1 could not be loaded"), "{complaint}");
}

/// Where NVRTC 12.0 is installed (or NVRTC names it), the source compiles to the file that is embedded.
#[test]
fn the_kernels_have_not_drifted() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("gpu/kernels/build.py");
    let Ok(output) = Command::new("python3").arg(script).arg("--check").output() else { return };
    if output.status.code() != Some(77) {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}
