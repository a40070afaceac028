"""The package ``client``: exports, and the cost of importing."""

import subprocess
import sys

import pytest

import client
from tests.support.processes.server_process import REPOSITORY

DEAR = {"aiohttp", "numpy", "pyarrow"}


def test_every_exported_name_exists() -> None:
    assert [getattr(client, name).__name__ for name in client.__all__] == list(client.__all__)


def test_an_unknown_attribute_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'client' has no attribute 'nothing'"):
        _ = client.nothing


@pytest.mark.parametrize(
    ("statement", "dear"),
    [
        ("import client.admin.commands.command_line", {*DEAR, "proto.PulsarApi_pb2"}),
        ("from client import Client, PulsarClient", DEAR),
    ],
    ids=["help of the command line", "a client of the binary protocol"],
)
def test_imports_do_not_load_expensive_packages(statement: str, dear: set[str]) -> None:
    source = f"{statement}; import sys; sys.exit(sorted({dear} & sys.modules.keys()) or 0)"
    assert subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY).returncode == 0


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: client.LoggerLevel.Info, r"LoggerLevel.Info: use Python's logging"),
        (client.Function, "Function: this package is a client, and runs no Pulsar Functions"),
        (client.SerDe, "SerDe: it belongs to Pulsar Functions"),
    ],
)
def test_names_of_the_official_package_are_refused_with_a_reason(ask, sentence) -> None:
    with pytest.raises(client.OperationNotSupported, match=sentence):
        ask()
