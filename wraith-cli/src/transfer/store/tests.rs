use super::*;
use crate::transfer::files::tests::ways;

const HASH: Hash = [7; 32];

static GO: AtomicBool = AtomicBool::new(false);

fn place(folder: &tempfile::TempDir, existing: Existing) -> Place {
    Place::new(folder.path(), "file.txt", existing).unwrap()
}

fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn create(folder: &tempfile::TempDir, existing: Existing, files: Files) -> Result<Store> {
    Store::create(place(folder, existing), &HASH, files)
}

/// A store with these bytes, all of them written.
fn store_by(files: Files, folder: &tempfile::TempDir, existing: Existing, bytes: &[u8]) -> Store {
    let mut store = create(folder, existing, files).unwrap();
    store.set_len(bytes.len() as u64).unwrap();
    store.write(bytes.into(), bytes.len(), 0).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while store.written().unwrap().is_none() {
        assert!(store.is_busy() && Instant::now() < until);
    }
    store
}

fn store(folder: &tempfile::TempDir, existing: Existing, bytes: &[u8]) -> Store {
    store_by(Files::Std, folder, existing, bytes)
}

#[test]
fn a_file_has_its_name_only_when_it_is_finished() {
    for files in ways() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_by(files, &folder, Existing::Refuse, b"content");
        assert_eq!(names(&folder), [".file.txt.07070707.wraith"]);
        let stored = store.finish(&GO).unwrap();
        assert_eq!(stored.path, folder.path().join("file.txt"));
        assert_eq!(fs::read(stored.path).unwrap(), b"content");
        assert_eq!(names(&folder), ["file.txt"]);
    }
}

#[test]
fn a_file_that_is_given_up_leaves_nothing_and_can_be_begun_again_at_once() {
    for files in ways() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let mut store = create(&folder, Existing::Refuse, files).unwrap();
            store.write(vec![1; 1 << 20].into(), 1 << 20, 0).unwrap();
            drop(store);
            assert_eq!(names(&folder), Vec::<String>::new());
        }
    }
}

#[test]
fn a_file_that_is_cancelled_before_it_has_its_name_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let result = store(&folder, Existing::Refuse, b"content").finish(&AtomicBool::new(true));
    assert!(matches!(result, Err(Failure::Interrupted)));
    assert_eq!(names(&folder), Vec::<String>::new());
}

#[test]
fn a_name_that_was_taken_meanwhile_is_not_replaced() {
    for rename in [rename_to_new, link_to_new] {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, b"new").unwrap();
        fs::write(&to, b"old").unwrap();
        assert_eq!(rename(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"old");
        fs::remove_file(&to).unwrap();
        rename(&from, &to).unwrap();
        assert_eq!(names(&folder), ["to"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, Existing::Refuse, b"new");
    fs::write(folder.path().join("file.txt"), b"old").unwrap();
    assert!(store.finish(&GO).unwrap_err().to_string().contains("exists: use --overwrite"));
    assert_eq!(fs::read(folder.path().join("file.txt")).unwrap(), b"old");
    assert_eq!(names(&folder), ["file.txt"]);
}

#[test]
fn rename_takes_the_next_free_name_and_overwrite_the_same() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file.txt"), b"old").unwrap();
    fs::write(folder.path().join("file (1).txt"), b"old").unwrap();
    let stored = store(&folder, Existing::Rename, b"new").finish(&GO).unwrap();
    assert_eq!(stored.path, folder.path().join("file (2).txt"));
    let stored = store(&folder, Existing::Overwrite, b"newer").finish(&GO).unwrap();
    assert_eq!(fs::read(stored.path).unwrap(), b"newer");
    assert_eq!(names(&folder), ["file (1).txt", "file (2).txt", "file.txt"]);
}

#[test]
fn what_a_killed_run_left_is_taken_over_and_what_a_running_one_has_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = place(&folder, Existing::Refuse).temporary(&HASH);
    for files in ways() {
        fs::write(&temporary, b"longer than the new content").unwrap();
        let first = store_by(files, &folder, Existing::Overwrite, b"content");
        let error = create(&folder, Existing::Overwrite, files).unwrap_err().to_string();
        assert!(error.starts_with("another `wraith-cli receive` writes"), "{error}");
        assert_eq!(fs::read(first.finish(&GO).unwrap().path).unwrap(), b"content");
    }
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_the_temporary_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::write(&target, b"precious").unwrap();
    let temporary = place(&folder, Existing::Refuse).temporary(&HASH);
    std::os::unix::fs::symlink(&target, &temporary).unwrap();
    assert!(create(&folder, Existing::Refuse, Files::Std).is_err());
    fs::remove_file(&temporary).unwrap();
    fs::hard_link(&target, &temporary).unwrap();
    assert!(create(&folder, Existing::Refuse, Files::Std).is_err());
    assert_eq!(fs::read(&target).unwrap(), b"precious");
}
