"""Print the sizes of packages, tests and documentation; with --check, fail if one is too large.

Code lines are lines with a statement; blank lines, comments, docstrings, imports and generated
lines do not count. A change that makes a package larger than its bound raises the bound here, with
the reason in the commit.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
MOST_CODE_LINES = {
    "limiter": 4_690,
    "proto": 1_940,
    "server": 6_760,
    "client": 11_570,
    "broker": 26_870,
    "proxy": 2_410,
    "loadgen": 14_570,
}
MOST_TEST_LINES = 147_960
MOST_WORDS_OF_DOCS = 40_262
_NO_STATEMENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def main() -> None:
    """Print the sizes; with --check, exit with 1 if a size is above its bound."""
    rows = list(_rows())
    for name, size, most, unit in rows:
        print(f"{name:8} {size:>8,} {unit}, at most {most:,}")
    grown = [name for name, size, most, _ in rows if size > most]
    if grown and "--check" in sys.argv[1:]:
        sys.exit(f"{', '.join(grown)}: larger than tools/size.py allows")


def _rows() -> Iterator[tuple[str, int, int, str]]:
    for package, most in MOST_CODE_LINES.items():
        files = [path for path in (ROOT / package).rglob("*.py") if "_pb2" not in path.name]
        modules = sum(path.name != "__init__.py" for path in files)
        yield package, sum(map(code_lines, files)), most, f"code lines in {modules} modules"
    tests = sum(path.read_bytes().count(b"\n") for path in (ROOT / "tests").rglob("*.py"))
    yield "tests", tests, MOST_TEST_LINES, "lines"
    words = sum(len(page.read_text("utf-8").split()) for page in (ROOT / "docs").glob("*.md"))
    yield "docs", words, MOST_WORDS_OF_DOCS, "words"


def code_lines(path: Path) -> int:
    """Count the lines of a file that have a statement other than a docstring or import."""
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    lines = {
        line
        for token in tokens
        if token.type not in _NO_STATEMENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.stmt) and _is_left_out(node):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _is_left_out(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return is_for_types or isinstance(node, ast.Import | ast.ImportFrom)


if __name__ == "__main__":
    main()
