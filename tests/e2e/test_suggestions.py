"""Every command named by a program's text exists: help, errors, reports, alerts."""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from loadgen.documents.reading import shipped
from tests.e2e.test_docs import check
from tests.support.processes.server_process import REPOSITORY

FOLDERS = ("limiter", "proto", "client", "server", "broker", "proxy", "loadgen", "examples")
PROGRAM = r"(?:\.venv/bin/)?(?:loadgen|floodgate-(?:admin|broker|proxy))"
QUOTED = re.compile(rf"`+({PROGRAM}(?: [^`]+)?)`+")
AT_THE_END = re.compile(rf": ({PROGRAM} .*)$", re.MULTILINE)
EXAMPLE = re.compile(rf"^ *({PROGRAM} (?:[^\\\n]|\\\n)+)", re.MULTILINE)
TAKES_SCENARIO = re.compile(
    r"loadgen (?:run|sweep|cluster|find-limit|scenarios show) ([a-z][a-z-]*)(?: |$)"
)
PLACEHOLDER = re.compile(r" [A-Z]+\b\S*")
FILLED_IN = "X"


def texts_of_programs() -> Iterator[tuple[str, str]]:
    """Return every string of the modules, with its place; inserted values become X."""
    for folder in FOLDERS:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            if path.name.endswith("_pb2.py"):
                continue
            source = path.read_text(encoding="utf-8")
            if "loadgen" not in source and "floodgate-" not in source:
                continue
            for node in ast.walk(ast.parse(source)):
                where = f"{path.relative_to(REPOSITORY)}:{getattr(node, 'lineno', 0)}"
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield where, node.value
                elif isinstance(node, ast.JoinedStr):
                    yield where, "".join(map(_part, node.values))


def _part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else FILLED_IN


def commands_in(text: str) -> Iterator[str]:
    """Return the commands of a text: in backticks, after the last colon, or under Examples."""
    examples = text.partition("Examples:\n")[2].partition("\n    Options:")[0]
    said = text.partition("Raises:\n")[0]
    found = QUOTED.findall(text) + AT_THE_END.findall(said) + EXAMPLE.findall(examples)
    for command in found:
        yield " ".join(command.replace("\\\n", " ").split()).rstrip(".,;)")


@lru_cache
def suggestions() -> dict[str, str]:
    """Return each command that programs, pages or alerts name, with its places."""
    found = [(each, place) for place, text in texts_of_programs() for each in commands_in(text)]
    pages = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
    for path in [*pages, *sorted((REPOSITORY / "deploy").glob("*.yml"))]:
        prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        found += [(" ".join(each.split()), path.name) for each in QUOTED.findall(prose)]
    return dict(sorted(found))


def test_suggested_commands_are_found_in_help_errors_and_pages() -> None:
    suggested = suggestions()
    for command, place in {
        "loadgen advise --topics topics.txt --broker-conf broker.conf": "loadgen/",  # help
        "loadgen run X": "loadgen/__main__.py",  # an error with an inserted value
        "loadgen topics --out X": "loadgen/topics/",
        "floodgate-admin brokers list-dynamic-config": "client/admin/commands",
        "loadgen scenarios show NAME": "scenarios.md",
    }.items():
        assert suggested[command].startswith(place), suggested[command]


def test_every_suggested_command_exists() -> None:
    for command, place in suggestions().items():
        # Without placeholders, and quotes that continue in the next line.
        check(PLACEHOLDER.sub("", command.partition(" '")[0]).split())
        for name in TAKES_SCENARIO.findall(command):
            assert name in shipped(), f"{place}: there is no scenario {name}"
