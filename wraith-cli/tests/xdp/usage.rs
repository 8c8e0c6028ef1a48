//! Options that do not fit together.

use crate::support::run;

#[test]
fn a_device_and_its_driver_are_asked_for_together() {
    let other = "--interface and --xdp-generic are for the driver xdp: add --driver xdp, or leave them out";
    let needed = "--driver xdp needs a network device: add --interface IF; `ip link` lists them";
    let both = "both ends on this machine cannot share a device: leave --interface out, and they get a pair of virtual ones";
    for (args, message) in [
        (&["listen", "--interface", "lo"][..], other),
        (&["send", "--driver", "mio", "--interface", "lo", "/dev/null"], other),
        (&["demo", "--xdp-generic"], other),
        (&["listen", "--driver", "xdp"], needed),
        (&["receive", "--driver", "xdp", "wraith1"], needed),
        (&["demo", "--driver", "xdp", "--interface", "lo"], both),
        (&["bench", "--driver", "xdp", "--interface", "lo"], both),
    ] {
        assert_eq!(run(args).error(2), message, "{args:?}");
    }
    let own = run(["demo", "--veth", "--bind", "192.0.2.1"]);
    assert!(
        own.error(2).starts_with("the virtual devices do not have 192.0.2.1: give --bind"),
        "{}",
        own.stderr
    );
}
