//! What holds for every way.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use super::*;

/// Blocks of the files here: more than any way reads ahead.
const BLOCKS: usize = 40;

/// The ways that this build and this system have.
pub(in crate::transfer) fn ways() -> Vec<Files> {
    #[cfg_attr(
        not(all(feature = "io-uring", target_os = "linux")),
        expect(unused_mut, reason = "there is one")
    )]
    let mut ways = vec![Files::Std];
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    match wraith_drivers_uring::file::probe() {
        Ok(()) => ways.push(Files::Uring),
        Err(refusal) => cannot_run(&refusal.to_string()),
    }
    ways
}

/// Says that a test does not run as it should, which is a failure where all must run.
#[cfg(target_os = "linux")]
fn cannot_run(why: &str) {
    assert!(!std::env::var("WRAITH_CONFORMANCE_STRICT").is_ok_and(|strict| strict == "1"), "{why}");
    println!("not run: {why}");
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 % 251) as u8).collect()
}

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    /// A file of `len` bytes, to be read.
    fn source(&self, len: usize) -> Arc<File> {
        fs::write(self.path(), content(len)).unwrap();
        Arc::new(File::open(self.path()).unwrap())
    }

    /// An empty file, to be written.
    fn target(&self) -> Arc<File> {
        Arc::new(File::create(self.path()).unwrap())
    }
}

/// Pieces of `len` bytes, each of which is the number of the piece.
fn piece(number: u8, len: usize) -> Box<[u8]> {
    vec![number; len].into()
}

/// Waits for the next piece that is written.
fn written(writer: &mut dyn Pieces) -> io::Result<(u64, Box<[u8]>)> {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        if let Some(written) = writer.written()? {
            return Ok(written);
        }
        assert!(writer.is_busy() && std::time::Instant::now() < until, "nothing is written");
        std::thread::yield_now();
    }
}

/// The block at `at`, which stands at its end.
fn block(reader: &mut dyn Blocks, at: usize) -> io::Result<Vec<u8>> {
    reader.read(vec![9; 3], (at * BLOCK) as u64)
}

#[test]
fn blocks_are_read_in_any_order_and_the_last_one_is_short() {
    for way in ways() {
        let len = BLOCKS * BLOCK + 5;
        let (scene, expected) = (Scene::new(), content(len));
        let mut reader = way.reader(&scene.source(len), len as u64).unwrap();
        let last_first = std::iter::once(BLOCKS);
        // Losses far and near, a whole run elsewhere, and back.
        let order =
            last_first.chain(0..12).chain([3, 2]).chain(12..15).chain(25..=BLOCKS).chain([7]).chain(15..25);
        for at in order {
            let end = len.min((at + 1) * BLOCK);
            assert!(block(&mut *reader, at).unwrap() == expected[at * BLOCK..end], "{way:?}, block {at}");
        }
        assert!(block(&mut *reader, BLOCKS + 1).unwrap().is_empty(), "behind the end is nothing");
    }
}

#[test]
fn a_file_that_was_cut_gives_no_block_behind_the_cut() {
    for way in ways() {
        let len = BLOCKS * BLOCK;
        let (scene, expected) = (Scene::new(), content(len));
        let mut reader = way.reader(&scene.source(len), len as u64).unwrap();
        block(&mut *reader, 0).unwrap();
        OpenOptions::new().write(true).open(scene.path()).unwrap().set_len((20 * BLOCK + 9) as u64).unwrap();
        for at in [30, 20] {
            let error = block(&mut *reader, at).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{way:?}, block {at}");
        }
        for at in 1..20 {
            assert!(block(&mut *reader, at).unwrap() == expected[at * BLOCK..(at + 1) * BLOCK]);
        }
        assert_eq!(block(&mut *reader, 20).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn pieces_are_written_where_they_belong_and_come_back() {
    const LEN: usize = 300_000;
    for way in ways() {
        let scene = Scene::new();
        let mut writer = way.writer(&scene.target()).unwrap();
        assert!(writer.written().unwrap().is_none() && !writer.is_busy());
        // More at once than any way writes at the same time, in no order; of the last one the first half.
        let order: Vec<u8> = (0..20).rev().step_by(2).chain((0..20).step_by(2)).collect();
        for number in &order {
            let len = if *number == 19 { LEN / 2 } else { LEN };
            writer.write(piece(*number, LEN), len, u64::from(*number) * LEN as u64).unwrap();
        }
        let mut back: Vec<_> = order.iter().map(|_| written(&mut *writer).unwrap()).collect();
        back.sort();
        for (number, (offset, buffer)) in (0..20).zip(back) {
            assert_eq!((offset, buffer), (u64::from(number) * LEN as u64, piece(number, LEN)), "{way:?}");
        }
        assert!(writer.written().unwrap().is_none() && !writer.is_busy());
        let mut expected: Vec<u8> = (0..20).flat_map(|number| piece(number, LEN)).collect();
        expected.truncate(LEN * 39 / 2);
        assert!(fs::read(scene.path()).unwrap() == expected, "{way:?}");
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_the_file_to_others() {
    for way in ways() {
        let scene = Scene::new();
        let target = scene.target();
        target.try_lock().unwrap();
        let mut writer = way.writer(&target).unwrap();
        writer.write(piece(1, 1 << 20), 1 << 20, 0).unwrap();
        drop((writer, target));
        File::open(scene.path()).unwrap().try_lock().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn what_the_system_answers_comes_out_as_it_is() {
    use nix::errno::Errno;

    let code = |errno: Errno| Some(errno as i32);
    for way in ways() {
        let scene = Scene::new();
        let folder = Arc::new(File::open(scene.folder.path()).unwrap());
        let mut reader = way.reader(&folder, 9).unwrap();
        assert_eq!(block(&mut *reader, 0).unwrap_err().raw_os_error(), code(Errno::EISDIR), "{way:?}");

        let mut writer = way.writer(&scene.source(9)).unwrap();
        let error = writer.write(piece(1, 9), 9, 0).and_then(|()| written(&mut *writer)).unwrap_err();
        assert_eq!(error.raw_os_error(), code(Errno::EBADF), "{way:?}");
        assert_eq!(fs::read(scene.path()).unwrap(), content(9));
    }
}

/// The store takes over what a run before left, and opens it so as not to be held up by a pipe.
#[cfg(unix)]
#[test]
fn a_file_that_was_opened_not_to_wait_is_waited_for() {
    use std::os::unix::fs::OpenOptionsExt as _;

    for way in ways() {
        let scene = Scene::new();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
        let file = Arc::new(options.open(scene.path()).unwrap());
        let mut writer = way.writer(&file).unwrap();
        writer.write(piece(5, 1 << 20), 1 << 20, 0).unwrap();
        assert_eq!(written(&mut *writer).unwrap(), (0, piece(5, 1 << 20)), "{way:?}");
        let mut reader = way.reader(&file, 1 << 20).unwrap();
        assert_eq!(block(&mut *reader, 3).unwrap(), vec![5; BLOCK], "{way:?}");
    }
}

/// A file system of 1 MiB in a mount namespace of the calling thread alone.
#[cfg(target_os = "linux")]
fn little_disk(at: &Path) -> nix::Result<()> {
    use nix::mount::{MsFlags, mount};

    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    mount(Some("wraith"), at, Some("tmpfs"), MsFlags::empty(), Some("size=1m"))
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_takes_what_fits_and_is_named() {
    let run = || {
        for way in ways() {
            let scene = Scene::new();
            if let Err(error) = little_disk(scene.folder.path()) {
                return cannot_run(&format!("a file system of its own takes root: {error}"));
            }
            let mut writer = way.writer(&scene.target()).unwrap();
            writer.write(piece(1, 600_000), 600_000, 0).unwrap();
            assert_eq!(written(&mut *writer).unwrap(), (0, piece(1, 600_000)));
            // Half of it fits: the first write is a short one.
            let second =
                writer.write(piece(2, 600_000), 600_000, 600_000).and_then(|()| written(&mut *writer));
            assert_eq!(second.unwrap_err().kind(), io::ErrorKind::StorageFull, "{way:?}");
            let there = fs::read(scene.path()).unwrap();
            assert_eq!(there.len(), 1 << 20, "{way:?}");
            assert!(
                there[..600_000] == *piece(1, 600_000)
                    && there[600_000..] == piece(2, 600_000)[..there.len() - 600_000]
            );
        }
    };
    // The namespace ends with its thread.
    std::thread::spawn(run).join().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn signals_change_nothing() {
    use nix::sys::pthread::{pthread_kill, pthread_self};
    use nix::sys::signal::Signal;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    signal_hook::flag::register(Signal::SIGUSR1 as i32, Arc::new(AtomicBool::new(false))).unwrap();
    let (target, sent, over) = (pthread_self(), AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                pthread_kill(target, Signal::SIGUSR1).unwrap();
                sent.fetch_add(1, Ordering::SeqCst);
            }
        });
        for way in ways() {
            let enough = sent.load(Ordering::SeqCst) + 1000;
            while sent.load(Ordering::SeqCst) < enough {
                write_and_read(way);
            }
        }
        over.store(true, Ordering::SeqCst);
    });
}

#[cfg(target_os = "linux")]
fn write_and_read(way: Files) {
    const PIECE: usize = 4 * BLOCK;
    let scene = Scene::new();
    let mut writer = way.writer(&scene.target()).unwrap();
    for number in 0..16 {
        writer.write(piece(number, PIECE), PIECE, u64::from(number) * PIECE as u64).unwrap();
    }
    for _ in 0..16 {
        written(&mut *writer).unwrap();
    }
    let mut reader = way.reader(&Arc::new(File::open(scene.path()).unwrap()), 16 * PIECE as u64).unwrap();
    for at in 0..64 {
        assert!(block(&mut *reader, at).unwrap() == vec![(at / 4) as u8; BLOCK], "{way:?}");
    }
}
