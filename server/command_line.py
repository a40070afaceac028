"""The command line that broker and proxy share.

A process is described by a :class:`Program`; a user's mistakes before it is ready end in plain
sentences on standard error and exit status 2 (1 when the configuration was right and the start
failed). A drained process exits with 0, or with 3 when its ledger has unreleased memory: a bug of
Floodgate, logged with the owners.
"""

from __future__ import annotations

import argparse
import logging
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NoReturn, Protocol, TypeVar

from limiter.extras import MissingExtraError
from limiter.permits.ledger import UnbalancedLedgerError
from proto.excerpts import one_line
from proto.version import VERSION
from server import loop
from server.configuration.authentication import literal_refusal
from server.configuration.file import parse_setting, read_properties
from server.connection.listener import raise_open_files_limit
from server.errors import ConfigError, StartError
from server.imports import NO_IMPORTS, Imports
from server.logs import LogFormat, LogLevel, configure_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from server.configuration.known_keys import KnownKeys, Notice

EXIT_START_FAILED = 1
EXIT_USAGE = 2
EXIT_UNBALANCED = 3
EXIT_INTERRUPTED = 130

logger = logging.getLogger(__name__)


class ProgramConfig(Protocol):
    """An interface with the members of a configuration that the command line reads."""

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Sentences about the configuration, to log at startup."""


ConfigT = TypeVar("ConfigT", bound=ProgramConfig)


@dataclass(frozen=True, slots=True)
class Program(Generic[ConfigT]):
    """A server program, broker or proxy, as the shared command line needs to know it.

    Attributes:
        role: The name of the server in the ready line: broker or proxy.
        summary: The description for ``--help``: the server's purpose and addresses.
        examples: Command lines for ``--help``, each after a line with its purpose.
        known_keys: Returns the known keys.
        configure: Makes the configuration from the keys of file and command line.
        serve: Runs the process until it has drained, and returns its exit status. Its second
            argument is the imports before the start.
        imports: Whether ``--import`` exists.
    """

    role: str
    summary: str
    examples: tuple[str, ...]
    known_keys: Callable[[], KnownKeys]
    configure: Callable[[Mapping[str, str]], ConfigT]
    serve: Callable[[ConfigT, Imports], Coroutine[object, object, int]]
    imports: bool = False


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print a usage error as a sentence that points to ``--help``, and exit."""
        self.exit(
            EXIT_USAGE, f"Error: {one_line(message)}; {self.prog} --help shows what can be said\n"
        )


def run_program(program: Program[ConfigT], arguments: Sequence[str] | None = None) -> NoReturn:
    """Parse the command line (``sys.argv`` by default), run the server to its end, and exit."""
    given = _parser(program).parse_args(arguments)
    imports = NO_IMPORTS
    if program.imports:
        imports = Imports(tuple(given.imports), given.skip_invalid, given.import_again)
    configure_logs(LogLevel(given.log_level), LogFormat(given.log_format))
    sys.exit(_run(program, given.file, given.settings, imports))


def _parser(program: Program[ConfigT]) -> argparse.ArgumentParser:
    parser = _Arguments(
        f"floodgate-{program.role}",
        description=textwrap.fill(program.summary),
        epilog="\n\n".join(("Examples:", *program.examples)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    option = parser.add_argument
    text = "Configuration file in Pulsar's format: KEY=VALUE lines."
    option("file", metavar="FILE", nargs="?", type=Path, help=text)
    text = "Set one key, over FILE. May be repeated."
    option("--set", dest="settings", metavar="KEY=VALUE", action="append", default=[], help=text)
    if program.imports:
        _add_imports(parser)
    text = "Least severe level that is logged (default: info)."
    option("--log-level", choices=[one.value for one in LogLevel], default="info", help=text)
    text = "console for people (default), json for log collectors."
    option("--log-format", choices=[one.value for one in LogFormat], default="console", help=text)
    option("--version", action="version", version=f"Floodgate {VERSION}")
    return parser


def _add_imports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--import",
        dest="imports",
        metavar="PATH",
        action="append",
        type=Path,
        default=[],
        help="Topics to create before the broker is ready: a text file with one full name a line "
        "(lines with # are comments), a Parquet file, or a directory of Parquet files. May be "
        "repeated. Existing topics keep their properties, and their partitions never become fewer. "
        "Topics that a metadata store on disk has imported are not imported at the next start.",
    )
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="Skip invalid topics of --import (default: abort the import).",
    )
    parser.add_argument(
        "--import-again",
        action="store_true",
        help="Also import files imported before: topics deleted since are created again.",
    )


def properties_of(
    file: Path | None, settings: Sequence[str], known_keys: KnownKeys
) -> dict[str, str]:
    """Return the keys and values of the configuration file, overridden by ``--set``.

    Raises:
        ConfigError: The file cannot be read, or settings are malformed or have unknown keys; lists
            every problem.
    """
    properties: dict[str, str] = {}
    problems: list[str] = []
    try:
        if file is not None:
            properties.update(read_properties(file))
    except ConfigError as error:
        problems.extend(error.problems)
    for text in settings:
        try:
            key, value = parse_setting(text)
        except ConfigError as error:
            problems.extend(error.problems)
        else:
            properties[key] = value
            if refusal := known_keys.refusal(key) or literal_refusal(key, value):
                problems.append(refusal)
    if problems:
        raise ConfigError(problems)
    return properties


def _run(
    program: Program[ConfigT], file: Path | None, settings: Sequence[str], imports: Imports
) -> int:
    """Run the server until it has drained (shut down gracefully), and return the exit status."""
    try:
        config = program.configure(properties_of(file, settings, program.known_keys()))
        for notice in config.notices:
            logger.log(logging.getLevelNamesMapping()[notice.level.upper()], "%s", notice.sentence)
        raise_open_files_limit()
        return loop.run(program.serve(config, imports))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE
    except (StartError, MissingExtraError) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_START_FAILED
    except UnbalancedLedgerError:
        return EXIT_UNBALANCED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
