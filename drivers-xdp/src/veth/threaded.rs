//! Threads of the kernel's for the queues of a device (NAPI, Documentation/networking/napi.rst), turned on in sysfs.

use std::fs;
use std::io;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Turns them on for a device of this thread's network namespace.
pub(super) fn turn_on(device: &str) -> io::Result<()> {
    in_sysfs(device, |file| fs::write(file, "1"))
}

/// Does something with a device's setting.
///
/// A sysfs shows the devices of the network namespace in which it was mounted. So a thread that ends at once mounts one where
/// nobody else sees it.
fn in_sysfs<T: Send>(device: &str, work: impl FnOnce(String) -> io::Result<T> + Send) -> io::Result<T> {
    let mounted = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
        mount(None::<&str>, "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)?;
        work(format!("/sys/class/net/{device}/threaded"))
    };
    thread::scope(|scope| scope.spawn(mounted).join().expect("a thread without a cause for panic"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hosts;
    use crate::veth::Options;

    #[test]
    fn the_queues_have_threads_if_it_was_asked_for() {
        for threaded_napi in [false, true] {
            let Some(veth) = hosts(&Options { threaded_napi, ..Options::default() }) else { return };
            for side in [veth.left(), veth.right()] {
                let device = side.interface().to_owned();
                let setting = side.run(move || in_sysfs(&device, fs::read_to_string)).unwrap();
                assert_eq!(setting.trim(), if threaded_napi { "1" } else { "0" });
            }
        }
    }
}
