//! Wrong usage, and what needs no network.

use crate::support::run;

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
