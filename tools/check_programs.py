"""Check the Python programs on the client library's pages with mypy in strict mode.

The programs are the ``python`` blocks that are marked to be run. A test of the types of records is
checked too. Run this from the root of the repository.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from mypy import api

PROGRAM = re.compile(r"^<!-- runs: \w+ -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPES = "tests/unit/client/schema/test_record_types.py"


def main() -> int:
    """Check all programs; return the exit code of mypy."""
    with tempfile.TemporaryDirectory() as folder:
        programs = []
        for page in sorted(Path("docs").glob("client*.md")):
            text = page.read_text(encoding="utf-8")
            for found in PROGRAM.finditer(text):
                # The file name gives the page and the line.
                line = text.count("\n", 0, found.start()) + 3
                name = f"{page.stem.replace('-', '_')}_{line}.py"
                programs.append(str(Path(folder, name)))
                Path(folder, name).write_text(found[1], encoding="utf-8")
        said, failed, code = api.run(["--no-error-summary", TYPES, *programs])
    sys.stderr.write(said.replace(f"{folder}/", "docs/") + failed)
    if not code:
        sys.stdout.write(f"{len(programs)} programs of docs/client*.md pass mypy's strict mode\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
