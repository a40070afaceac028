"""The command line shared by broker and proxy.

A process is described by a :class:`Program`; a user's mistakes before it is ready end in plain
sentences on standard error and exit status 2 (1 when the configuration was right and the start
failed). A drained process exits with 0, or with 3 when its ledger has unreleased memory: a bug of
Floodgate, logged with the owners.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, Protocol, TypeVar

import typer

from limiter.permits.ledger import UnbalancedLedgerError
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

logger = logging.getLogger(__name__)


class ProgramConfig(Protocol):
    """The part of a configuration needed by the command line."""

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Sentences to log at the start."""


ConfigT = TypeVar("ConfigT", bound=ProgramConfig)


@dataclass(frozen=True, slots=True)
class Program(Generic[ConfigT]):
    """A server process.

    Attributes:
        role: Its name in the ready line: broker or proxy.
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


def say_version(asked: bool) -> None:
    """Print the version and exit, if requested."""
    if asked:
        typer.echo(f"Floodgate {VERSION}")
        raise typer.Exit


_File = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="Configuration file in Pulsar's format: KEY=VALUE lines."),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set one key, over FILE. May be repeated."),
]
_Imports = Annotated[
    list[Path] | None,
    typer.Option(
        "--import",
        metavar="PATH",
        help="Topics to create before the broker is ready: a text file with one full name a line "
        "(lines with # are comments), a Parquet file, or a directory of Parquet files. May be "
        "repeated. Existing topics keep their properties, and their partitions never become fewer. "
        "Topics that a metadata store on disk has imported are not imported at the next start.",
    ),
]
_SkipInvalid = Annotated[
    bool,
    typer.Option(
        "--skip-invalid",
        help="Skip invalid topics of --import (default: abort the import).",
    ),
]
_ImportAgain = Annotated[
    bool,
    typer.Option(
        "--import-again",
        help="Also import files imported before: topics deleted since are created again.",
    ),
]
_Level = Annotated[LogLevel, typer.Option("--log-level", help="Least severe level that is logged.")]
_Format = Annotated[
    LogFormat, typer.Option("--log-format", help="console for people, json for log collectors.")
]
_Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=say_version, is_eager=True, help="Print the version and exit."
    ),
]


def application(program: Program[ConfigT]) -> typer.Typer:
    """Build the command line of ``program``."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    epilog = "\n\n\b\n".join(("Examples:", *program.examples))  # \b: keeps the line breaks
    command = app.command(help=program.summary, epilog=epilog)
    command(_with_imports(program) if program.imports else _without_imports(program))
    return app


def _with_imports(program: Program[ConfigT]) -> Callable[..., None]:
    def main(  # noqa: PLR0913 - Typer makes an option of each
        file: _File = None,
        settings: _Settings = None,
        imports: _Imports = None,
        skip_invalid: _SkipInvalid = False,
        import_again: _ImportAgain = False,
        log_level: _Level = LogLevel.INFO,
        log_format: _Format = LogFormat.CONSOLE,
        _version: _Version = False,
    ) -> None:
        taken = Imports(tuple(imports or ()), skip_invalid, import_again)
        configure_logs(log_level, log_format)
        _run(program, file, settings or (), taken)

    return main


def _without_imports(program: Program[ConfigT]) -> Callable[..., None]:
    def main(
        file: _File = None,
        settings: _Settings = None,
        log_level: _Level = LogLevel.INFO,
        log_format: _Format = LogFormat.CONSOLE,
        _version: _Version = False,
    ) -> None:
        configure_logs(log_level, log_format)
        _run(program, file, settings or (), NO_IMPORTS)

    return main


def properties_of(
    file: Path | None, settings: Sequence[str], known_keys: KnownKeys
) -> dict[str, str]:
    """Return the keys of the file, overridden by ``--set``.

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
) -> None:
    try:
        config = program.configure(properties_of(file, settings, program.known_keys()))
        for notice in config.notices:
            logger.log(logging.getLevelNamesMapping()[notice.level.upper()], "%s", notice.sentence)
        raise_open_files_limit()
        status = loop.run(program.serve(config, imports))
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT_USAGE) from None
    except StartError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT_START_FAILED) from None
    except UnbalancedLedgerError:
        raise typer.Exit(EXIT_UNBALANCED) from None
    raise typer.Exit(status)
