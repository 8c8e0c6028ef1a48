//! Names that are taken, folders that cannot be written to, disks that are full.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{PATIENCE, Running, run};
use crate::transfer::{Scene, WAYS, content, done, error, finish};

#[test]
fn an_existing_file_is_kept_replaced_or_passed_by_as_asked() {
    let bytes = content(50_000);
    let scene = Scene::new("exists", &bytes);
    fs::write(scene.received(), b"old").unwrap();
    let sender = scene.send(&["--keep"]);
    let end = finish(&mut scene.receive(&sender.ticket(), &[]));
    assert!(error(&end).contains("file.bin exists: use --overwrite, --rename or another --output"));
    assert!(end.stdout.len() == 1 && fs::read(scene.received()).unwrap() == b"old");

    let renamed = done(&finish(&mut scene.receive(&sender.ticket(), &["--rename"])));
    let second = scene.target.join("file (1).bin");
    assert_eq!(renamed["path"].as_str(), second.to_str());
    assert!(fs::read(&second).unwrap() == bytes && fs::read(scene.received()).unwrap() == b"old");

    done(&finish(&mut scene.receive(&sender.ticket(), &["--overwrite"])));
    assert!(fs::read(scene.received()).unwrap() == bytes);
    assert_eq!(scene.names(), ["file (1).bin", "file.bin"]);
}

#[test]
fn options_that_do_not_go_together_are_wrong_usage() {
    for options in [["--overwrite", "--rename"], ["--stdout", "--rename"], ["--stdout", "--json"]] {
        assert_eq!(run(["receive", "wraith1", options[0], options[1]]).code, Some(2));
    }
}

#[test]
fn a_target_that_cannot_be_written_to_fails_before_anything_is_fetched() {
    let scene = Scene::new("readonly", b"x");
    let sender = scene.send(&[]);
    let line = |output: &std::path::Path| {
        let end =
            finish(crate::support::program(["receive", "--json", "-q", &sender.ticket(), "-o"]).arg(output));
        assert_eq!(end.stdout.len(), 1, "no progress: {:?}", end.stdout);
        error(&end).to_owned()
    };
    assert!(line(&scene.path("none")).contains("cannot use the folder"));
    assert!(line(&scene.source).contains("is no folder"));
    if cfg!(target_os = "linux") {
        // Not even root creates files there.
        assert!(line("/proc/self".as_ref()).contains("cannot create a file in /proc/self"));
    }
}

/// `command` behind a shell that first does `setup`.
#[cfg(target_os = "linux")]
fn behind(setup: &str, command: &Command) -> Command {
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!("{setup}; exec \"$@\"")).arg("bash");
    shell.arg(command.get_program()).args(command.get_args());
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_the_size_of_files_ends_both_sides_and_leaves_nothing() {
    for files in WAYS {
        let scene = Scene::new("limit", &content(4 << 20));
        let sender = scene.send(&[]);
        // Without the signal that comes with it, as on a full disk; 1 KiB is the unit.
        let end = finish(&mut behind(
            "trap '' XFSZ; ulimit -f 2048",
            &scene.receive(&sender.ticket(), &["--files", files]),
        ));
        let line = error(&end);
        assert!(line.starts_with("cannot write") && line.contains("ulimit -f"), "{line}");
        assert_eq!(scene.names(), Vec::<String>::new());
        let end = sender.process.finish();
        assert!(error(&end).contains("the receiver could not store the content"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_both_sides_and_leaves_nothing() {
    let scene = Scene::new("full", &content(8 << 20));
    let mounted = Command::new("unshare")
        .args(["-m", "mount", "-t", "tmpfs", "none"])
        .arg(&scene.target)
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!(
            "skipped: a small disk needs the right to mount; the limit on the size of files stands for it"
        );
        return;
    }
    for files in WAYS {
        let sender = scene.send(&[]);
        let target = scene.target.display();
        let mut mount = Command::new("unshare");
        let inner = behind(
            &format!("mount -t tmpfs -o size=3m none '{target}'; cd '{target}'"),
            &scene.receive(&sender.ticket(), &["--files", files]),
        );
        mount.arg("-m").arg(inner.get_program()).args(inner.get_args());
        mount.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let end = finish(&mut mount);
        let line = error(&end);
        assert!(line.contains("No space left on device") && line.contains("make room"), "{line}");
        assert!(end.took < PATIENCE);
        assert!(error(&sender.process.finish()).contains("the receiver could not store the content"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_of_stdout_that_goes_away_ends_both_sides() {
    let scene = Scene::sparse("pipe", 64 << 20);
    let sender = scene.send(&[]);
    let receive = crate::support::program(["receive", "-q", "--stdout", &sender.ticket()]);
    let mut shell = Command::new("bash");
    shell.args(["-c", "\"$@\" | head -c 10 >/dev/null; exit ${PIPESTATUS[0]}", "bash"]);
    shell.arg(receive.get_program()).args(receive.get_args());
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let end = Running::start(&mut shell).finish();
    assert!(end.error(1).starts_with("cannot write to stdout"), "{}", end.stderr);
    assert_eq!(sender.process.finish().code, Some(1));
}
