//! Files of every size, over every way.

use std::fs;

use crate::support::{Running, run};
use crate::transfer::{Scene, WAYS, content, done, finish};

const MIB: usize = 1 << 20;

/// Sends, receives, compares, and returns the receiver's last words.
fn round_trip(name: &str, bytes: &[u8], bind: &str) -> serde_json::Value {
    round_trip_with(name, bytes, bind, "auto")
}

/// The same with files read and written in this way.
fn round_trip_with(name: &str, bytes: &[u8], bind: &str, files: &str) -> serde_json::Value {
    let scene = Scene::new(name, bytes);
    let sender = scene.send_from(bind, &["--files", files]);
    let done = done(&finish(&mut scene.receive(&sender.ticket(), &["--files", files])));
    assert!(fs::read(scene.received()).unwrap() == bytes, "{} bytes", bytes.len());
    assert_eq!(scene.names(), ["file.bin"]);
    let hash = blake3::hash(bytes).to_hex().to_string();
    assert_eq!((done["hash"].as_str(), done["bytes"].as_u64()), (Some(&*hash), Some(bytes.len() as u64)));
    assert_eq!(done["path"].as_str(), scene.received().to_str());
    assert_eq!((done["verified"].as_bool(), done["driver"].as_str()), (Some(true), Some("mio")));

    let end = sender.process.finish();
    assert_eq!((end.code, &*end.stderr), (Some(0), ""));
    let confirmed = end.json().pop().unwrap();
    assert_eq!((confirmed["event"].as_str(), confirmed["hash"].as_str()), (Some("confirmed"), Some(&*hash)));
    assert_eq!(confirmed["files"], done["files"]);
    done
}

/// PROTO §10.2, §10.12
#[test]
fn a_file_of_any_size_arrives_as_it_was_and_both_ends_say_so() {
    for files in WAYS {
        for size in [0, 1, MIB - 1, MIB, MIB + 1, 5_000_000] {
            assert_eq!(round_trip_with("size", &content(size), "127.0.0.1:0", files)["files"], *files);
        }
    }
}

#[test]
fn a_file_arrives_over_ipv6_and_from_a_sender_on_every_address() {
    round_trip("ipv6", &content(3 * MIB), "[::1]:0");
    round_trip("any", &content(3 * MIB), "[::]:0");
    round_trip("any-v4", &content(3 * MIB), "0.0.0.0:0");
}

#[test]
fn seconds_and_speed_fit_each_other_and_memory_stays_small() {
    for files in WAYS {
        let done = round_trip_with("speed", &content(64 * MIB), "127.0.0.1:0", files);
        let number = |name: &str| done[name].as_f64().unwrap();
        let moving = number("seconds") - number("fsync_seconds");
        assert!(moving > 0.0 && number("fsync_seconds") > 0.0);
        assert!((number("gbps") * moving * 1e9 / 8.0 / (64.0 * MIB as f64) - 1.0).abs() < 1e-6);
        if cfg!(target_os = "linux") {
            assert!(number("peak_rss") < 64.0 * MIB as f64);
        }
    }
}

#[test]
fn a_sparse_file_of_three_gibibytes_arrives_within_little_memory() {
    let full = std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full");
    // Two levels of lists begin above 1 GiB.
    let len = if full { 3 << 30 } else { (256 << 20) + 1 };
    let scene = Scene::sparse("sparse", len);
    let sender = scene.send(&[]);
    let receiver = Running::start(&mut scene.receive(&sender.ticket(), &[]));
    // As long as it moves, it may take its time.
    let moved = std::iter::from_fn(|| Some(serde_json::from_str(&receiver.line()).unwrap()));
    let done = moved.into_iter().find(|event: &serde_json::Value| event["event"] != "progress").unwrap();
    assert_eq!((done["event"].as_str(), done["bytes"].as_u64()), (Some("done"), Some(len)));
    assert_eq!(receiver.finish().code, Some(0));
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(fs::File::open(scene.received()).unwrap()).unwrap();
    assert_eq!(done["hash"].as_str(), Some(&*hasher.finalize().to_hex().to_string()));
    let end = sender.process.finish();
    assert_eq!(end.code, Some(0));
    if cfg!(target_os = "linux") {
        for peak in [&done["peak_rss"], &end.json().pop().unwrap()["peak_rss"]] {
            assert!(peak.as_u64().unwrap() < 64 << 20);
        }
    }
}

#[test]
fn stdout_gets_the_bytes_in_order_and_nothing_else() {
    use std::process::Stdio;

    let bytes = content(9 * MIB + 5);
    let scene = Scene::new("stdout", &bytes);
    let sender = scene.send(&[]);
    let out = scene.path("file.bin").with_file_name("target").join("out");
    let mut command = crate::support::program(["receive", "-q", "--stdout", &sender.ticket()]);
    let status = command.stdout(Stdio::from(fs::File::create(&out).unwrap())).status().unwrap();
    assert!(status.success());
    assert!(fs::read(&out).unwrap() == bytes);
    assert_eq!(sender.process.finish().code, Some(0));
}

#[test]
fn the_ticket_stands_alone_on_stdout_and_hints_on_stderr() {
    let scene = Scene::new("human", b"hello");
    let mut command = crate::support::program(["send", "--bind", "127.0.0.1:0"]);
    let sender = Running::start(command.arg(&scene.source));
    let ticket = sender.line();
    assert!(ticket.starts_with("wraith1") && !ticket.contains(' '));
    let end = run(["receive".as_ref(), ticket.as_ref(), "-o".as_ref(), scene.target.as_os_str()]);
    assert_eq!((end.code, &*end.stdout), (Some(0), &[scene.received().to_str().unwrap().to_owned()][..]));
    assert!(end.stderr.contains("verified"), "{}", end.stderr);
    let end = sender.finish();
    assert_eq!((end.code, end.stdout.len()), (Some(0), 0));
    assert!(end.stderr.contains("serving file.bin (5 bytes)") && end.stderr.contains("delivered to"));
}

#[cfg(unix)]
#[test]
fn with_keep_the_sender_serves_one_receiver_after_the_other() {
    let bytes = content(MIB + 7);
    let scene = Scene::new("keep", &bytes);
    let sender = scene.send(&["--keep"]);
    for _ in 0..2 {
        done(&finish(&mut scene.receive(&sender.ticket(), &["--rename"])));
    }
    assert_eq!(scene.names(), ["file (1).bin", "file.bin"]);
    sender.process.interrupt();
    let end = sender.process.finish();
    assert_eq!((end.code, &*end.stderr), (Some(130), ""));
    assert_eq!(end.json().iter().filter(|event| event["event"] == "confirmed").count(), 2);
}

#[test]
fn what_cannot_be_sent_is_refused_with_one_line() {
    let scene = Scene::new("refused", b"x");
    let line = |path: &std::path::Path| {
        let end = run(["send".as_ref(), path.as_os_str()]);
        assert!(end.stdout.is_empty());
        end.error(1).to_owned()
    };
    assert!(line(&scene.path("none")).contains("No such file"));
    assert!(line(&scene.target).contains("is a folder: only one file can be sent"));
    let several = run(["send".as_ref(), scene.source.as_os_str(), scene.source.as_os_str()]);
    assert_eq!(several.code, Some(2));
    assert!(several.stderr.contains("unexpected argument"), "{}", several.stderr);
    if cfg!(target_os = "linux") {
        // A file that nobody can read, not even root.
        assert!(line("/proc/self/mem".as_ref()).contains("cannot read /proc/self/mem"));
    }
}
