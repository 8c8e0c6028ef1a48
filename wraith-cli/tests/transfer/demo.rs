//! The run for newcomers.

use std::fs;
use std::path::Path;

use crate::support::{Running, program, run};
use crate::transfer::Scene;

#[test]
fn the_demo_reports_a_verified_transfer_between_two_processes_and_leaves_nothing() {
    let scene = Scene::empty("demo");
    let end = run([
        "demo".as_ref(),
        "--json".as_ref(),
        "--size=3MiB".as_ref(),
        "--suite=xchacha20-poly1305".as_ref(),
        "--dir".as_ref(),
        scene.target.as_os_str(),
    ]);
    assert_eq!((end.code, &*end.stderr), (Some(0), ""));
    let done = end.json().pop().unwrap();
    assert_eq!((done["event"].as_str(), done["bytes"].as_u64()), (Some("done"), Some(3 << 20)));
    assert_eq!((done["verified"].as_bool(), done["driver"].as_str()), (Some(true), Some("mio")));
    assert_eq!(done["suite"], "XChaCha20-Poly1305");
    assert_eq!(done["crypto"], if cfg!(feature = "accel") { "aws-lc" } else { "pure-rust" });
    assert_eq!(done["hash"].as_str().unwrap().len(), 64);
    assert!(done["gbps"].as_f64().unwrap() > 0.0 && done["seconds"].as_f64().unwrap() > 0.0);
    let pids: Vec<_> = done["pids"].as_array().unwrap().iter().map(|pid| pid.as_u64().unwrap()).collect();
    assert!(pids.len() == 2 && pids[0] != pids[1]);
    if cfg!(target_os = "linux") {
        for peak in ["peak_rss_sender", "peak_rss_receiver"] {
            assert!(done[peak].as_u64().unwrap() < 64 << 20);
        }
    }
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[test]
fn with_keep_the_demo_says_where_both_files_are() {
    let scene = Scene::empty("demo-keep");
    let mut command = program(["demo", "--json", "--keep", "--size", "1000", "--dir"]);
    let end = Running::start(command.arg(&scene.target)).finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let done = end.json().pop().unwrap();
    let read = |name: &str| fs::read(Path::new(done[name].as_str().unwrap())).unwrap();
    assert_eq!(read("path").len(), 1000);
    assert!(read("path") == read("source"));
    assert!(end.stderr.starts_with("kept "), "{}", end.stderr);
    assert_eq!(scene.names().len(), 1);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_demo_and_leaves_nothing() {
    let scene = Scene::empty("demo-int");
    let mut command = program(["demo", "--json", "--size", "256MiB", "--dir"]);
    let demo = Running::start(command.arg(&scene.target));
    demo.event("progress");
    demo.interrupt();
    let end = demo.finish();
    assert_eq!((end.code, &*end.stderr), (Some(130), ""));
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[test]
fn a_demo_without_a_folder_fails_with_one_line() {
    let end = run(["demo", "--dir", "/nowhere/at/all"]);
    assert!(end.error(1).starts_with("cannot make /nowhere/at/all/wraith-demo-"));
}

#[test]
fn the_size_of_packets_can_be_fixed_within_what_every_session_may_have() {
    let scene = Scene::empty("demo-size");
    let with = |size: &str| {
        run([
            "demo".as_ref(),
            "--json".as_ref(),
            "--size=100kB".as_ref(),
            format!("--packet-size={size}").as_ref(),
            "--dir".as_ref(),
            scene.target.as_os_str(),
        ])
    };
    for size in ["1200", "1472", "65507"] {
        let end = with(size);
        assert_eq!((end.code, &*end.stderr), (Some(0), ""), "{size}");
        assert_eq!(end.json().pop().unwrap()["verified"], true, "{size}");
    }
    for size in ["1199", "65508"] {
        assert_eq!(with(size).code, Some(2), "{size}");
    }
}
