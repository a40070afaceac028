"""Mutations of configuration lines: known keys, meaningful values."""

from functools import cache
from random import Random

from loadgen.documents.reading import shipped
from server.configuration.known_keys import KnownKeys

VALUES = (
    "", " ", "0", "1", "-1", "2147483647", "2147483648", "9223372036854775808", "1.5", "1e400",
    "nan", "true", "false", "TRUE", "yes", "null", "[]", "[a, b]", "Optional[1]", "Optional.empty",
    "64k", "1,2,,3", "pulsar://a:1", "pulsar+ssl://a:2", "http://b", "http://[::1", "a:b:c",
    "memory:local", "sqlite:///x", "postgresql://u:p@h/d", "sqlite:///x?fsync=true", "fair", "fifo",
    "pulsar", "floodgate", "6650-6651", "*", "127.0.0.1", "::1", "x" * 300, "ä\\u00e4", "\\u12",
    "a=b:c", "{}", '{"a":1}', "PT5S", "10s", "5%", "^(", "/tmp", "org.x.Y", "token:x",
)  # fmt: skip
_YAML_VALUES = (
    "", "0", "-1", "1.5", "4s", "10/s", "5 MB", "50%", "true", "null", "~", "[]", "{}", "[0, 1]",
    "{kind: constant}", "*x", "&x 1", "!!python/object:x", "discover", "list", "consume", "lookup",
    "floodgate", "pulsar", "go", "polite", ".inf", ".nan", "1e309", "999999999999999999999",
    "'", '"', "|", ">", "? x", "<<: *x", "restart-storm", "a.yaml", "list.p99 < 2s", "x" * 200,
)  # fmt: skip


def changed_lines(text: str, keys: KnownKeys, choices: Random) -> str:
    """Return a properties text with a line added, removed or changed."""
    lines = text.splitlines()[:60]
    for _ in range(choices.choice((1, 1, 2, 4))):
        at = choices.randrange(len(lines) + 1)
        if at == len(lines) or choices.random() < 0.5:
            lines.insert(at, _line(keys, choices))
        elif choices.random() < 0.6:
            key = lines[at].partition("=")[0]
            lines[at] = f"{key}={choices.choice(VALUES)}"
        else:
            del lines[at]
    return choices.choice(("\n", "\n", "\n", "\r\n", "\r", "\\\n")).join(lines)


def _line(keys: KnownKeys, choices: Random) -> str:
    known = choices.choice(_names(keys))
    values = keys[known].values
    own = choices.choice(values) if values and choices.random() < 0.5 else choices.choice(VALUES)
    return f"{known}{choices.choice(('=', '=', '=', ':', ' ', ' = '))}{own}"


@cache
def _names(keys: KnownKeys) -> list[str]:
    return [known.key for known in keys]


def changed_yaml(text: str, choices: Random) -> str:
    """Return a scenario with a line added, removed or changed."""
    lines = text.splitlines()[:120]
    for _ in range(choices.choice((1, 1, 2, 4))):
        at, what = choices.randrange(len(lines) + 1), choices.random()
        if at == len(lines) or what < 0.35:
            lines.insert(at, choices.choice(_yaml_lines()))
        elif what < 0.7 and ":" in lines[at]:
            key = lines[at].partition(":")[0]
            lines[at] = f"{key}: {choices.choice(_YAML_VALUES)}"
        elif what < 0.8:
            lines[at] = " " * choices.randrange(8) + lines[at].lstrip()
        else:
            del lines[at]
    return "\n".join(lines)


@cache
def _yaml_lines() -> list[str]:
    texts = (file.read_text(encoding="utf-8") for file in shipped().values())
    return sorted({line for text in texts for line in text.splitlines() if ":" in line})
