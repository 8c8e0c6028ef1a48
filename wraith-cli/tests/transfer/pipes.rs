//! What the program does to pipes and to signals other than Ctrl-C's.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::network::{LARGE, Network};
use crate::support::program;
use crate::transfer::{Scene, error};

#[test]
fn when_nobody_reads_stdout_any_more_the_peer_hears_of_the_end_and_nothing_is_left() {
    let scene = Scene::sparse("lost-stdout", LARGE);
    let sender = scene.send(&[]);
    let (_network, ticket) = Network::of(&sender);
    let mut receiver = scene.receive(&ticket, &[]).spawn().unwrap();
    let mut first = String::new();
    let mut stdout = BufReader::new(receiver.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    drop(stdout);
    assert_eq!(receiver.wait().unwrap().code(), Some(1));
    assert_eq!(scene.names(), Vec::<String>::new());
    assert!(error(&sender.process.finish()).contains("stopped the transfer"));
}

#[cfg(unix)]
#[test]
fn sigterm_ends_a_transfer_as_ctrl_c_does() {
    use crate::support::Running;
    use crate::transfer::wait_for_middle;

    let scene = Scene::sparse("sigterm", LARGE);
    let sender = scene.send(&[]);
    let (_network, ticket) = Network::of(&sender);
    let receiver = Running::start(&mut scene.receive(&ticket, &[]));
    wait_for_middle(&receiver);
    receiver.signal(nix::sys::signal::Signal::SIGTERM);
    let end = receiver.finish();
    assert_eq!((end.code, &*end.stderr), (Some(130), ""));
    assert_eq!(scene.names(), Vec::<String>::new());
    assert!(error(&sender.process.finish()).contains("stopped the transfer"));
}

#[cfg(unix)]
#[test]
fn a_pipe_gets_the_path_as_it_is_and_the_ticket_may_have_spaces_around_it() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    let scene = Scene::new("exact-path", b"x");
    let sender = scene.send(&[]);
    let folder = scene.target.join(OsStr::from_bytes(b"\xff\x1b"));
    if std::fs::create_dir(&folder).is_err() {
        // The file system takes UTF-8 only: then there is no such path to print.
        return;
    }
    let ticket = format!(" {}\n", sender.ticket());
    let mut receiver = program(["receive", "-q", &ticket, "--output"]).arg(&folder).spawn().unwrap();
    let mut printed = Vec::new();
    receiver.stdout.take().unwrap().read_to_end(&mut printed).unwrap();
    assert_eq!(receiver.wait().unwrap().code(), Some(0));
    let mut path = folder.join("file.bin").into_os_string().into_vec();
    path.push(b'\n');
    assert_eq!(printed, path);
}

#[cfg(unix)]
#[test]
fn a_file_beyond_the_limit_of_the_process_fails_in_one_line_and_leaves_nothing() {
    let scene = Scene::new("file-limit", &vec![7; 3_000_000]);
    let sender = scene.send(&[]);
    let receive = scene.receive(&sender.ticket(), &[]);
    let mut limited = std::process::Command::new("sh");
    // Blocks of 512 bytes or of 1024: half of the file, or all but a bit.
    limited.args(["-c", "ulimit -f 2000 && exec \"$0\" \"$@\""]).arg(receive.get_program());
    limited.args(receive.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let end = crate::transfer::finish(&mut limited);
    assert!(error(&end).contains("a limit (ulimit -f) allows no larger file"), "{}", end.stderr);
    assert_eq!(scene.names(), Vec::<String>::new());
    assert!(error(&sender.process.finish()).contains("could not store the content"));
}
