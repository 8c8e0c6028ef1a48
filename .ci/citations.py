"""How clauses are cited, and which test stands where a citation does."""

import os
import re

# `PROTO §4.4`, also the first of a list: `PROTO §4.4, §4.5 and §4.6`.
CITATION = re.compile(r"\b(PROTO|DRV) (§\d+(?:\.\d+)+(?:(?:, | and |, and )§\d+(?:\.\d+)+)*)")
# The clauses of a conformance case: `"DRV §2.1 and §2.8"`, a string in conformance/src that holds nothing else.
CASES = os.path.join("conformance", "src", "")
CASE = re.compile(r'"((?:PROTO|DRV) §[^"]*)"')
CASE_NAME = re.compile(r"\s*(\w+): \"")
# What makes a file run every case of a driver, every one of the protocol, or every one of the DHT.
SUITE = re.compile(r"\bwraith_conformance::(protocol_|dht_)?\w*suite!")
TEST_ATTRIBUTE = re.compile(r"\s*#\[test\]")
FUNCTION = re.compile(r"(\s*)(?:pub )?fn (\w+)")


def citations(text):
    """Each clause that the text cites, as `PROTO §4.4`."""
    for tag, sections in CITATION.findall(text):
        for section in re.findall(r"§[\d.]*\d", sections):
            yield f"{tag} {section}"


def case_clauses(file, line):
    """The clauses that a line of a Rust file proves as the data of a conformance case."""
    if file.path.startswith(CASES):
        for text in CASE.findall(line):
            yield from citations(text)


def citing_tests(files):
    """Clause → tests that cite it, each a (package folder, target, name); a conformance case runs in several.

    A citation belongs to the function that it stands in, or to the next one if it stands in the comment above it. One
    in a module's own comment belongs to no test.
    """
    found = {}
    suites = {"protocol_": set(), "dht_": set(), "": set()}
    for file in files:
        for kind in SUITE.findall("\n".join(file.lines)):
            suites[kind].add(test_target(file.path))
    for file in files:
        for clause, name in cases(file):
            for suite in filter(None, suites[kind_of_cases(file.path)]):
                found.setdefault(clause, set()).add((*suite, name))
        target = test_target(file.path) or source_target(file.path)
        if target:
            for clause, name in functions(file):
                found.setdefault(clause, set()).add((*target, name))
    return found


def named_tests(files):
    """(package folder, name) → tests of that name, as above."""
    found = {}
    for file in files:
        target = test_target(file.path) or source_target(file.path)
        is_test = False
        for _, line, in_tests in file.numbered():
            head = FUNCTION.match(line)
            if target and head and is_test and in_tests:
                found.setdefault((target[0], head[2]), set()).add((*target, head[2]))
            is_test = bool(TEST_ATTRIBUTE.match(line)) or is_test and not head
    return found


def kind_of_cases(path):
    """What stands before `suite!` where the cases of this file run."""
    kinds = ("protocol_", "dht_")
    return next((kind for kind in kinds if path.startswith(os.path.join(CASES, kind[:-1], ""))), "")


def cases(file):
    for line in file.lines:
        name = CASE_NAME.match(line)
        for clause in case_clauses(file, line) if name else ():
            yield clause, name[1]


def functions(file):
    """(clause, test function) for each citation in a test and in the comment above it."""
    pending, current, end, is_test, counts = [], None, None, False, False
    for _, line, in_tests in file.numbered():
        head = FUNCTION.match(line)
        if head and not current:
            yield from ((clause, head[2]) for clause in pending if is_test)
            # What stands in a function that is no test belongs to none.
            current, end, counts = head[2], head[1] + "}", is_test and in_tests
            pending, is_test = [], False
            if line.endswith("}"):
                current = None
        elif line == end:
            current = None
        elif current:
            yield from ((clause, current) for clause in citations(line) if counts)
        elif TEST_ATTRIBUTE.match(line):
            is_test = True
        elif line.strip().startswith("//") and not line.strip().startswith("//!"):
            pending += citations(line) if in_tests else []
        elif not line.strip():
            pending, is_test = [], False


def test_target(path):
    """(package folder, cargo's choice of the target) of a file below a package's tests/."""
    package, *rest = path.split(os.sep)
    if len(rest) > 1 and rest[0] == "tests":
        return package, f"--test={rest[1].removesuffix('.rs')}"
    return None


def source_target(path):
    package, *rest = path.split(os.sep)
    if len(rest) > 1 and rest[0] == "src":
        return package, "--lib"
    return None
