//! Traces and key logs of the real binary.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "these tests need less")]
mod support;

use support::{Folder, Listener, Running, program, run};

/// The events of a trace, behind its one header.
fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut records: Vec<Value> =
        text.split_terminator('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
    let header = records.remove(0);
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert!(records.iter().all(|record| record["file_schema"].is_null()), "one header");
    records
}

fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["name"] == name).count()
}

/// The sessions that a trace is about.
fn groups(events: &[Value]) -> BTreeSet<String> {
    let groups = events.iter().map(|event| event["group_id"].as_str().unwrap().to_owned());
    groups.filter(|group| group != "endpoint").collect()
}

/// The lines of a key log, whose first two ids they share.
fn keys(path: &Path) -> BTreeSet<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn is_warning(line: &str, path: &Path) -> bool {
    let path = path.display();
    line == format!("warning: whoever has {path} can read the sessions of this run: delete it when done")
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777
}

#[cfg(unix)]
#[test]
fn both_ends_of_a_ping_write_their_traces_and_the_same_keys() {
    let folder = Folder::new("trace-ping");
    let names = ["ours.sqlog", "ours.keys", "theirs.sqlog", "theirs.keys"];
    let [ours, our_keys, theirs, their_keys] = names.map(|name| folder.path(name));
    let mut command = program(["listen", "--json", "--bind", "127.0.0.1", "--qlog"]);
    let listening = Running::start(command.arg(&theirs).arg("--keylog").arg(&their_keys));
    let event = listening.event("listening");
    let target = format!("{}@{}", event["peer"].as_str().unwrap(), event["address"].as_str().unwrap());
    let mut command = program(["ping", &target, "--count", "2", "--interval", "10ms", "--qlog"]);
    let ping = Running::start(command.arg(&ours).arg("--keylog").arg(&our_keys)).finish();
    assert_eq!(ping.code, Some(0), "{}", ping.stderr);
    assert!(is_warning(ping.stderr.trim_end(), &our_keys), "{}", ping.stderr);
    listening.event("connected");
    listening.event("closed");
    listening.interrupt();
    assert_eq!(listening.finish().code, Some(130));

    for path in [&ours, &our_keys, &theirs, &their_keys] {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    let (ours, theirs) = (events(&ours), events(&theirs));
    for events in [&ours, &theirs] {
        assert_eq!(count(events, "wraith:session_established"), 1);
        assert_eq!(count(events, "quic:connection_closed"), 1);
        assert!(count(events, "quic:packet_sent") >= 2 && count(events, "quic:packet_received") >= 2);
    }
    assert_eq!((groups(&ours), groups(&ours).len()), (groups(&theirs), 1));
    let (our_keys, their_keys) = (keys(&our_keys), keys(&their_keys));
    assert_eq!((our_keys.len(), &our_keys), (4, &their_keys));
    let id = groups(&ours).pop_first().unwrap();
    assert!(our_keys.iter().all(|line| line.split(' ').nth(1) == Some(&id)), "{our_keys:?}");
}

#[test]
fn a_demo_leaves_a_trace_of_each_end_and_one_key_log() {
    let folder = Folder::new("trace-demo");
    let [sender, receiver, key_log] =
        ["demo.sqlog", "demo.receiver.sqlog", "demo.keys"].map(|name| folder.path(name));
    let mut command = program(["demo", "--quiet", "--size", "1MiB", "--dir"]);
    command.arg(folder.path("")).arg("--qlog").arg(&sender).arg("--keylog").arg(&key_log);
    let demo = Running::start(&mut command).finish();
    assert_eq!(demo.code, Some(0), "{}", demo.stderr);
    assert!(is_warning(demo.stderr.trim_end(), &key_log), "{}", demo.stderr);
    let (sender, receiver) = (events(&sender), events(&receiver));
    assert_eq!((groups(&sender), groups(&sender).len()), (groups(&receiver), 1));
    assert!(count(&sender, "quic:packets_acked") > 1);
    let received = receiver.iter().filter(|event| event["name"] == "quic:packet_received");
    let frames = received.flat_map(|event| event["data"]["frames"].as_array().unwrap());
    let streams = frames.filter(|frame| frame["frame_type"] == "stream");
    assert!(streams.map(|frame| frame["raw"]["length"].as_u64().unwrap()).sum::<u64>() >= 1 << 20);
    assert_eq!(keys(&key_log).len(), 4);
}

#[test]
fn a_bench_has_all_its_rounds_in_one_trace() {
    let folder = Folder::new("trace-bench");
    let trace = folder.path("bench.sqlog");
    let mut command = program(["bench", "--quiet", "--stream", "--duration", "100ms", "--qlog"]);
    let bench = Running::start(command.arg(&trace)).finish();
    assert_eq!((bench.code, &*bench.stderr), (Some(0), ""));
    let events = events(&trace);
    assert_eq!(groups(&events).len(), 2, "datagrams and the stream");
    assert_eq!(count(&events, "quic:connection_closed"), 2);
    let roles = events.iter().filter(|event| event["name"] == "wraith:session_established");
    assert!(roles.into_iter().all(|event| event["data"]["role"] == "initiator"));
}

#[test]
fn a_file_that_cannot_be_made_is_named_before_anything_is_sent() {
    let listener = Listener::start("127.0.0.1");
    let target = listener.at("127.0.0.1");
    for (option, what) in [("--qlog", "trace"), ("--keylog", "key log")] {
        let done = run(["ping", &target, option, "/nowhere/at/all"]);
        let start = format!("cannot write the {what} /nowhere/at/all: ");
        let error = done.error(1);
        assert!(error.starts_with(&start) && error.ends_with("name a file in a folder of yours"), "{error}");
    }
}

#[test]
fn no_secrets_get_into_a_trace() {
    let folder = Folder::new("trace-both");
    let path = folder.path("one.keys");
    fs::write(&path, "of a former run").unwrap();
    let mut command = program(["listen", "--bind", "127.0.0.1", "--keylog"]);
    let done = Running::start(command.arg(&path).arg("--qlog").arg(&path)).finish();
    assert_eq!(done.error(1), format!("trace and key log cannot both be {}: name two files", path.display()));
    assert_eq!(fs::read_to_string(&path).unwrap(), "of a former run");
}

#[cfg(unix)]
#[test]
fn a_key_log_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("trace-mode");
    let path = folder.path("open.keys");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = program(["listen", "--bind", "127.0.0.1", "--keylog"]);
    let done = Running::start(command.arg(&path)).finish();
    let shown = path.display();
    assert_eq!(
        done.error(1),
        format!(
            "others may read the key log {shown} (mode 644): name another file, or run `chmod 600 {shown}`"
        )
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_complained_of_once_and_the_session_goes_on() {
    let listener = Listener::start("127.0.0.1");
    let target = listener.at("127.0.0.1");
    let done = run(["ping", &target, "--count", "1", "--qlog", "/dev/full"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let lines: Vec<_> = done.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(
        lines,
        ["warning: cannot write /dev/full: No space left on device (os error 28); it ends here"]
    );
}

#[test]
fn the_help_names_the_options() {
    let help = run(["demo", "--help"]).stdout.join("\n");
    assert!(help.contains("--qlog <FILE>") && help.contains("--keylog <FILE>"), "{help}");
}
