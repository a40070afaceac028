"""Contradictory options are refused in advance."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadgen.documents.model import Document
from loadgen.errors import UsageError
from loadgen.places.launcher import ServerFiles
from loadgen.places.operator_files import OwnServer
from loadgen.places.options import RunOptions, resolved

FILES = ServerFiles(
    OwnServer("broker"), OwnServer("proxy", Path("p.conf"), {"maxMessageSize": "9"})
)


def document(**values: Any) -> Document:
    clients = [{"name": "all", "do": "list", "count": 3}]
    return Document.model_validate({"name": "mine", "clients": clients, **values})


@pytest.mark.parametrize(
    ("options", "place", "tasks"),
    [
        (RunOptions(), "processes", 2),
        (RunOptions(tasks=3), "processes", 3),
        (RunOptions(master="local[2]"), "spark", 2),
        (RunOptions(place="virtual"), "virtual", 1),
    ],
)
def test_place_name_and_number_of_tasks_follow_from_the_options(
    options: RunOptions, place: str, tasks: int
) -> None:
    _, found = resolved(document(), options)
    assert (found.place, found.name, found.tasks) == (place, "mine", tasks)


def test_the_drain_option_overrides_the_document() -> None:
    assert resolved(document(), RunOptions(drain=1.5))[0].phases.drain == 1.5


def test_a_proxy_configuration_file_adds_a_proxy_with_its_keys() -> None:
    servers = resolved(document(), RunOptions(files=FILES))[0].servers
    assert servers.proxy == {"maxMessageSize": "9"}


NAMED = RunOptions(service_url="pulsar://127.0.0.1:1")
CHURN = [{"name": "churn", "do": "create-and-delete", "count": 2}]
AT_ONCE = {"kind": "concurrency", "count": 1}
CLOSED = [{"name": "closed", "do": "list", "count": 3, "arrive": AT_ONCE}]


@pytest.mark.parametrize(
    ("values", "options", "told"),
    [
        ({}, RunOptions(tasks=4), "--tasks 4 does not fit 3 clients: use 1 to 3"),
        ({}, RunOptions(name="a/b"), "--name 'a/b' cannot be"),
        ({"clients": CLOSED}, RunOptions(), "arrive.count 1 cannot be shared by --tasks 2"),
        ({}, RunOptions(admin_urls={"broker": "x"}), "--admin-url is of a running server"),
        ({}, replace(NAMED, service_url="http://x"), "not of the form pulsar://host:port"),
        ({}, replace(NAMED, service_url="pulsar://x:0"), "a port is a number from 1 to 65535"),
        ({}, replace(NAMED, files=FILES), "--proxy-conf is for a scenario's own proxy"),
        ({}, replace(NAMED, place="virtual"), "virtual simulates its own servers"),
        ({"clients": CHURN}, NAMED, "group churn creates topics by admin REST: name"),
        ({"shocks": [{"at": 1, "kill": "broker"}]}, NAMED, "the broker is not this run's own"),
        (
            {},
            RunOptions(place="virtual", abort_early=lambda totals: None),
            "--place virtual cannot end a run early",
        ),
    ],
)
def test_contradictory_run_options_are_refused(values, options, told) -> None:
    with pytest.raises(UsageError, match=told):
        resolved(document(**values), options)
