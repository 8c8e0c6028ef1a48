"""The Rust files of the repository, as `.ci/clauses` and `.ci/style` read them, and the way both report."""

import os
import re
import sys
import tempfile

CFG_TEST = re.compile(r"^(\s*)#\[cfg\((?:test|all\(test\b.*\))\)\]$")


class RustFile:
    """One source file: its path from the root, its lines, and which of them are tests."""

    def __init__(self, path, lines):
        self.path = path
        self.lines = lines
        whole = is_test_path(path)
        self.is_test = [True] * len(lines) if whole else test_module_lines(lines)

    def numbered(self):
        """Line number from 1, text, and whether the line belongs to a test."""
        return zip(range(1, len(self.lines) + 1), self.lines, self.is_test)


def rust_files(root):
    """Every .rs file below `root` that is not a build product, in the order of the paths."""
    found = []
    for folder, children, names in os.walk(root):
        children[:] = [name for name in children if name not in ("target", ".git")]
        for name in names:
            if name.endswith(".rs"):
                full = os.path.join(folder, name)
                found.append(RustFile(os.path.relpath(full, root), read_lines(full)))
    return sorted(found, key=lambda file: file.path)


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def is_test_path(path):
    *folders, name = path.split(os.sep)
    return "tests" in folders or name == "tests.rs"


def test_module_lines(lines):
    """For each line, whether it is inside a `#[cfg(test)] mod name { … }` of rustfmt's layout."""
    marks = [False] * len(lines)
    for start, line in enumerate(lines):
        cfg = CFG_TEST.match(line)
        if not cfg:
            continue
        item = skip_attributes(lines, start)
        if item < len(lines) and re.match(r"\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{$", lines[item]):
            end = closing_brace(lines, item, cfg[1])
            marks[start : end + 1] = [True] * (end + 1 - start)
    return marks


def skip_attributes(lines, at):
    """The first line from `at` on that is neither attribute nor comment."""
    while at < len(lines):
        text = lines[at].strip()
        if text.startswith("#[") and not text.endswith("]"):
            while at < len(lines) and not lines[at].rstrip().endswith(")]"):
                at += 1
        elif not text.startswith(("#[", "//")):
            break
        at += 1
    return at


def closing_brace(lines, start, indent):
    """The line that closes the block begun at `start`: rustfmt puts it at the same indent."""
    for at in range(start + 1, len(lines)):
        if re.match(re.escape(indent) + r"\}[,;)]*$", lines[at]):
            return at
    return len(lines) - 1


def main(check, cases):
    """Runs `check(root)`, which gives summary lines and failures, or with --self-test runs it on `cases`."""
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        sys.exit(self_test(check, cases))
    if arguments:
        sys.exit(f"usage: {sys.argv[0]} [--self-test]")
    summary, failures = check(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    print("\n".join(summary + failures))
    sys.exit(1 if failures else 0)


def self_test(check, cases):
    """Lays each case's files out in a folder of its own and compares what the check finds; 1 on a difference."""
    wrong = 0
    for name, files, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            failures = check(root)[1]
        if failures != expected:
            wrong += 1
            print(f"self-test: {name}\n  expected {expected}\n  found    {failures}")
    print(f"self-test: {len(cases) - wrong} of {len(cases)} cases as expected")
    return 1 if wrong else 0
