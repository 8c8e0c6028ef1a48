//! Identity files.

use std::fs;

use crate::support::{Done, Folder, Running, program, run};

/// Runs a command with the folder as the place of configuration.
fn at_home(folder: &Folder, args: &[&str]) -> Done {
    Running::start(program(args).env("XDG_CONFIG_HOME", folder.path("config"))).finish()
}

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[test]
fn keygen_makes_a_private_file_in_the_configuration_folder_and_id_reads_it() {
    let folder = Folder::new("keygen-default");
    let made = at_home(&folder, &["keygen"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert_eq!(made.stdout.len(), 1);
    assert_eq!(made.stdout[0].len(), 52);
    let path = folder.path("config").join("wraith").join("identity");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert!(made.stderr.contains("keep it secret"));

    let read = at_home(&folder, &["--json", "id"]).json();
    assert_eq!(read[0]["event"], "identity");
    assert_eq!(read[0]["peer"], made.stdout[0]);
    assert_eq!(read[0]["path"], path.to_str().unwrap());
}

#[test]
fn the_file_holds_the_version_the_seed_in_hex_and_the_peer_id() {
    let folder = Folder::new("keygen-format");
    let path = folder.path("key");
    let made = run(["keygen", "-q", "--output", path.to_str().unwrap()]);
    assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""));
    let text = fs::read_to_string(&path).unwrap();
    let words: Vec<_> = text.split(' ').collect();
    assert_eq!((words[0], words[1].len()), ("wraith-identity-1", 64));
    assert_eq!(words[2], format!("{}\n", made.stdout[0]));
    assert_eq!(words.len(), 3);
}

#[test]
fn an_identity_is_replaced_only_by_force() {
    let folder = Folder::new("keygen-force");
    let path = folder.path("key");
    let file = path.to_str().unwrap();
    let first = run(["keygen", "--output", file]).stdout;
    let refused = run(["keygen", "--output", file, "--json"]);
    let message = refused.error(1).to_owned();
    assert!(message.contains("exists") && message.contains("--force"), "{message}");
    assert_eq!(refused.json()[0], serde_json::json!({"event": "error", "message": message}));
    assert_eq!(run(["id", "--identity", file]).stdout, first);

    let second = run(["keygen", "--output", file, "--force"]).stdout;
    assert_ne!(second, first);
    assert_eq!(run(["id", "--identity", file]).stdout, second);
    #[cfg(unix)]
    assert_eq!(mode(&path), 0o600);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_missing_default_identity_is_an_error_and_a_named_one_is_made() {
    let folder = Folder::new("id-missing");
    let missing = at_home(&folder, &["id"]);
    assert!(missing.error(1).contains("make one with `wraith-cli keygen`"));
    let path = folder.path("new");
    let made = run(["id", "--identity", path.to_str().unwrap()]);
    assert!(made.stderr.contains("wrote a new identity"));
    assert_eq!(run(["--identity", path.to_str().unwrap(), "id"]).stdout, made.stdout);
}

#[test]
fn a_damaged_identity_is_refused_and_stays() {
    let folder = Folder::new("id-damaged");
    let path = folder.path("key");
    let file = path.to_str().unwrap();
    run(["keygen", "--output", file]);
    let mut text = fs::read(&path).unwrap();
    let digit = "wraith-identity-1 ".len();
    text[digit] = if text[digit] == b'0' { b'1' } else { b'0' };
    fs::write(&path, &text).unwrap();
    assert!(run(["id", "--identity", file]).error(1).contains("damaged"));
    assert_eq!(fs::read(&path).unwrap(), text);
}

#[cfg(unix)]
#[test]
fn an_identity_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("id-open");
    let path = folder.path("key");
    let file = path.to_str().unwrap();
    run(["keygen", "--output", file]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let refused = run(["listen", "--identity", file]);
    assert!(refused.error(1).contains("chmod 600"), "{}", refused.stderr);
}
