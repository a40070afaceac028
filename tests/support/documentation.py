"""The documentation's commands as values: ```sh blocks of Markdown pages and their programs.

A ```python block is a single command: a program, run unchanged if marked.

An HTML comment on the line before a block defines its trial: ``<!-- run -->`` unchanged, ``<!--
runs: NAME -->`` in the named set-up. Commands of unmarked blocks are only looked up.

A ```console block is a transcript: commands behind ``$ ``, each with its output below, where
``...`` stands for omitted lines.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

AS_IT_IS = "run"
PYTHON = "python"
_FENCE = re.compile(r"^```(\w*)\s*$")
_DIRECTIVE = re.compile(r"^<!-- (?:(run)|runs: ([\w-]+)) -->$")
_TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
_COMMENT = re.compile(r"\s+# .*$|^#.*$")
_PROMPT = "$ "
_LEFT_OUT = "..."


@dataclass(frozen=True)
class Block:
    """A block of commands.

    Attributes:
        page: The Markdown file.
        line: Number of the first command's line.
        set_up: ``run``, a set-up's name, or empty.
        language: ``sh``, ``console`` or ``python``.
        commands: A command line each; continuation lines joined, comments removed.
        outputs: Output of each command of a transcript; empty for other blocks.
    """

    page: Path
    line: int
    set_up: str
    language: str
    commands: tuple[str, ...]
    outputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return a page's ```sh, ```console and ```python blocks, in order."""
    return list(_blocks(page, page.read_text(encoding="utf-8").splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    begun, language, before = 0, "", ""
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence is None:
            if not begun and line.strip():
                before = line
        elif begun:
            if language in _READERS:
                body = lines[begun : number - 1]
                read = _READERS[language](body)
                yield Block(page, begun + 1, _set_up(before), language, *read)
            begun, before = 0, ""
        else:
            begun, language = number, fence[1]


def _set_up(before: str) -> str:
    found = _DIRECTIVE.match(before.strip())
    return "" if found is None else found[1] or found[2]


def _commands(lines: list[str]) -> Iterator[str]:
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if command := _COMMENT.sub("", line).strip():
            yield command


def _script(lines: list[str]) -> tuple[tuple[str, ...]]:
    return (tuple(_commands(lines)),)


def _transcript(lines: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a transcript's commands and outputs."""
    steps = "\n".join(lines).replace("\\\n", " ").split(f"\n{_PROMPT}")
    pairs = [step.removeprefix(_PROMPT).partition("\n") for step in steps]
    return tuple(pair[0] for pair in pairs), tuple(pair[2] for pair in pairs)


_READERS: dict[str, Callable[[list[str]], tuple[tuple[str, ...], ...]]] = {
    "sh": _script,
    "console": _transcript,
    PYTHON: lambda lines: (("\n".join(lines),),),
}


def prints(expected: str, printed: str) -> bool:
    """Return whether a command's output matches a transcript."""
    lines = [".*" if line == _LEFT_OUT else re.escape(line) for line in expected.splitlines()]
    return re.fullmatch("\n".join(lines), printed.rstrip("\n"), re.DOTALL) is not None


def make_targets(makefile: Path) -> set[str]:
    return set(_TARGET.findall(makefile.read_text(encoding="utf-8")))


def programs(command: str) -> Iterator[list[str]]:
    """Return the words of each program in a command line, through pipes and lists."""
    words: list[str] = []
    for word in shlex.split(command):
        if word in ("|", "&&", "||", ";"):
            yield words
            words = []
        elif word in (">", ">>", "<", "2>"):
            yield words
            return
        else:
            words.append(word)
    if words:
        yield words


def flags(words: list[str]) -> list[str]:
    """Return a program's long flags, without values.

    Words after a lone ``--`` belong to another program.
    """
    own = words[: words.index("--")] if "--" in words else words
    return [word.partition("=")[0] for word in own if word.startswith("--")]
