//! Wrong usage, and what needs no network.

use wraith_proto::Identity;

use crate::support::{Folder, run};

#[test]
fn wrong_usage_ends_with_code_2() {
    let peer = run(["keygen", "--output", "/dev/null/x"]);
    assert_eq!(peer.code, Some(1));
    for args in [
        &["no-such-command"][..],
        &[],
        &["ping"],
        &["ping", "nobody"],
        &["id", "--no-such-option"],
        &["bench", "--packet-size", "63"],
        &["bench", "--duration", "soon"],
        &["listen", "--bind", "nowhere"],
        &["drivers", "--driver", "quick"],
        &["listen", "--suite", "rot13"],
    ] {
        let done = run(args);
        assert_eq!((done.code, done.stdout.len()), (Some(2), 0), "{args:?}: {}", done.stderr);
        assert!(!done.stderr.is_empty());
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    let help = run(["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.iter().any(|line| line.starts_with("Usage: wraith-cli")));
    assert_eq!(run(["--version"]).stdout, [concat!("wraith-cli ", env!("CARGO_PKG_VERSION"))]);
}

#[cfg(not(feature = "trace"))]
#[test]
fn a_build_without_traces_does_not_know_their_options() {
    let help = run(["ping", "--help"]).stdout.join("\n");
    assert!(help.contains("--driver") && !help.contains("--qlog") && !help.contains("--keylog"), "{help}");
    for option in ["--qlog", "--keylog"] {
        assert_eq!(run(["listen", option, "/nowhere/at/all"]).code, Some(2));
    }
}

#[test]
fn drivers_are_listed_with_what_they_can_do() {
    let drivers = run(["drivers", "--json"]).json();
    let uring = cfg!(all(target_os = "linux", feature = "io-uring"));
    let xdp = cfg!(all(target_os = "linux", feature = "af-xdp"));
    assert_eq!(drivers.len(), 1 + usize::from(uring) + usize::from(xdp));
    assert_eq!((&drivers[0]["driver"], &drivers[0]["available"]), (&"mio".into(), &true.into()));
    assert!(drivers[0]["mode"].as_str().unwrap().starts_with("syscall"));
    if uring {
        assert_eq!((&drivers[1]["driver"], &drivers[1]["mode"]), (&"uring".into(), &"uring".into()));
    }
    let table = run(["drivers"]).stdout;
    assert!(table[0].starts_with("driver") && table[1].starts_with("mio"), "{table:?}");
}

#[cfg(all(target_os = "linux", not(feature = "af-xdp")))]
#[test]
fn a_driver_that_is_not_built_in_fails_with_the_remedy() {
    let remedy = "install it with `cargo install --path wraith-cli --features af-xdp`, or use --driver mio";
    for command in ["listen", "demo", "bench"] {
        let done = run([command, "-q", "--driver", "xdp"]);
        assert_eq!(done.error(1), format!("the driver xdp is not part of this build: {remedy}"));
    }
    assert_eq!(run(["listen", "--interface", "lo"]).code, Some(2));
    assert_eq!(run(["demo", "--veth"]).code, Some(2));
}

#[test]
fn an_address_of_no_interface_fails_with_the_remedy() {
    // RFC 5737: for documentation only.
    let done = run(["listen", "--bind", "198.51.100.1:0"]);
    assert!(done.error(1).contains("choose another with --bind"), "{}", done.stderr);
}

#[test]
fn a_peer_of_the_other_ip_version_than_the_address_to_bind_is_wrong_usage_and_makes_no_files() {
    let folder = Folder::new("versions");
    let (identity, file) = (folder.path("own.id"), folder.path("file"));
    std::fs::write(&file, "x").unwrap();
    let (identity, file, hash) = (identity.to_str().unwrap(), file.to_str().unwrap(), "ab".repeat(32));
    let peer = Identity::from_seed([3; 32]).peer_id();
    let commands: [&[&str]; 6] = [
        &["ping"],
        &["bench", "--connect"],
        &["listen", "--bootstrap"],
        &["send", file, "--announce", "--bootstrap"],
        &["receive", &hash, "--from"],
        &["receive", &hash, "--bootstrap"],
    ];
    for (bind, at, family) in [("127.0.0.1:0", "[::1]:9", "IPv6"), ("[::1]:0", "127.0.0.1:9", "IPv4")] {
        let target = format!("{peer}@{at}");
        for command in commands {
            let output = folder.path("output");
            let output = ["--output", output.to_str().unwrap()];
            let more = if command[0] == "receive" { &output[..] } else { &[] };
            let common = [&target, "--bind", bind, "--identity", identity];
            let done = run(command.iter().chain(&common).chain(more));
            assert_eq!(
                done.error(2),
                format!("{at} cannot be reached from {bind}: bind an {family} address, or leave --bind out"),
                "{command:?}"
            );
            assert_eq!(done.stdout.len(), 0);
        }
    }
    assert_eq!(std::fs::read_dir(folder.path(".")).unwrap().count(), 1, "there is the file alone");
}

#[test]
fn an_address_that_nobody_can_be_at_is_wrong_usage() {
    let (peer, hash) = (Identity::from_seed([3; 32]).peer_id(), "ab".repeat(32));
    for nowhere in ["255.255.255.255:9", "0.1.2.3:9", "224.0.0.1:9", "127.0.0.1:0", "[::]:9", "[ff02::1]:9"] {
        let target = format!("{peer}@{nowhere}");
        let commands: [&[&str]; 6] = [
            &["ping"],
            &["bench", "--connect"],
            &["listen", "--bootstrap"],
            &["receive", &hash, "--from"],
            &["receive", &hash, "--bootstrap"],
            &["dht", "get", &hash, "--bootstrap"],
        ];
        for command in commands {
            let done = run(command.iter().copied().chain([&*target]));
            let expected = format!("{nowhere} is no peer's address: give the one that the peer's");
            assert!(done.code == Some(2) && done.stderr.contains(&expected), "{command:?}: {}", done.stderr);
        }
    }
}
