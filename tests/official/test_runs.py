"""A client run reports a client that exits silently."""

import signal
import sys
from pathlib import Path

import pytest

from tests.official import runs
from tests.official.clients import OfficialClient

NOWHERE = runs.Target("pulsar://nowhere", "http://nowhere")


@pytest.mark.parametrize(
    ("last_act", "said"),
    [
        (f"os.kill(os.getpid(), {signal.SIGSEGV:d})", "(ended by SIGSEGV)"),
        ("os._exit(3)", "(exit code 3)"),
    ],
)
def test_a_client_that_ends_without_a_word_is_told_by_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, last_act: str, said: str
) -> None:
    monkeypatch.setattr(runs, "_put", lambda _url: None)
    client = OfficialClient("C", (sys.executable, "-c", f"import os; {last_act}"))
    run = runs.run_client(client, NOWHERE, tmp_path, ["shared"])
    assert run.differences == [f"C said:  {said}"]
