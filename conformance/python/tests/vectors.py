"""Reads the vectors of this repository."""

import json
import pathlib

FOLDER = pathlib.Path(__file__).parents[2] / "vectors"


def read(name, *names):
    """The vectors of a file, or those with these names; never none."""
    text = (FOLDER / f"{name}.json").read_text()
    vectors = [vector for vector in json.loads(text)["vectors"] if not names or vector["name"] in names]
    assert vectors, f"{name}.json has no vector {names}"
    return vectors


def unhex(fields):
    """All strings of hexadecimal digits as bytes."""
    return {key: bytes.fromhex(value) if isinstance(value, str) else value for key, value in fields.items()}
