#!/usr/bin/env python
"""Write a container's environment variables into a file of keys, as Apache Pulsar's image does.

``apply-config-from-env.py [--prefix PULSAR_PREFIX_] FILE ...``: a variable with the prefix sets the
key behind it, and a variable that is written as a key, ``likeThis``, sets that key.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEY = re.compile(r"[a-z]+[0-9]*([A-Z][a-z0-9]*)+")


def applied(text: str, variables: Mapping[str, str], prefix: str) -> str:
    """Return a file's text with the keys of the variables."""
    keys = {name: value for name, value in variables.items() if _KEY.fullmatch(name)}
    keys |= {
        name.removeprefix(prefix): value
        for name, value in variables.items()
        if name.startswith(prefix)
    }
    kept = [line for line in text.splitlines() if line.partition("=")[0].strip() not in keys]
    return "".join(f"{line}\n" for line in (*kept, *(f"{k}={v.strip()}" for k, v in keys.items())))


def main() -> None:
    """Change the files named on the command line."""
    parser = argparse.ArgumentParser(description="Write environment variables into files of keys.")
    parser.add_argument("--prefix", default="PULSAR_PREFIX_")
    parser.add_argument("files", nargs="+", type=Path)
    asked = parser.parse_args()
    for file in asked.files:
        file.write_text(applied(file.read_text(), os.environ, asked.prefix))


if __name__ == "__main__":
    main()
