"""The package ``client``: exports, and the cost of importing."""

import subprocess
import sys
from collections.abc import Callable

import pytest

import client
from tests.support.processes.server_process import REPOSITORY


@pytest.mark.parametrize("name", client.__all__)
def test_everything_that_is_offered_is_there(name: str) -> None:
    assert getattr(client, name).__name__ == name


def test_what_is_not_offered_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'client' has no attribute 'nothing'"):
        _ = client.nothing


@pytest.mark.parametrize("module", ["aiohttp", "numpy", "pyarrow", "proto.PulsarApi_pb2"])
def test_help_of_the_command_line_does_not_wait_for(module: str) -> None:
    source = f"import sys, client.admin.commands.command_line; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY).returncode == 0


@pytest.mark.parametrize("module", ["aiohttp", "numpy", "pyarrow"])
def test_a_client_of_the_binary_protocol_does_not_load(module: str) -> None:
    source = (
        f"import sys; from client import Client, PulsarClient; sys.exit({module!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY).returncode == 0


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: client.LoggerLevel.Info, r"LoggerLevel.Info: use Python's logging"),
        (client.Function, "Function: this package is a client, and runs no Pulsar Functions"),
        (client.SerDe, "SerDe: it belongs to Pulsar Functions"),
    ],
)
def test_names_of_the_official_package_are_refused_with_a_reason(
    ask: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(client.OperationNotSupported, match=sentence):
        ask()
