"""Child processes of a server."""

import os
import subprocess
import sys

import pytest

from server.tasks.worker_processes import ChildProcess

ECHO = (sys.executable, "-c", "print(input(), flush=True); input()")


async def test_a_child_process_receives_input_and_answers() -> None:
    child = ChildProcess.started(ECHO)
    await child.send(b"hello\n")
    assert await child.receive(6) == b"hello\n"
    assert not child.is_gone
    child.kill()
    await child.gone()
    assert child.is_gone


async def test_a_child_process_ending_within_its_answer_is_reported() -> None:
    child = ChildProcess.started((sys.executable, "-c", "print('x' * 9)"))
    with pytest.raises(EOFError, match="2 of 12 bytes are missing"):
        await child.receive(12)
    await child.gone()


async def test_a_killed_child_process_leaves_no_descriptor_despite_unread_output() -> None:
    before = len(os.listdir("/proc/self/fd"))
    child = ChildProcess.started((sys.executable, "-c", "print('x' * 1_000_000)"))
    await child.receive(1)
    child.kill()
    await child.gone()
    child.kill()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_child_process_starts_without_copying_the_memory_of_the_server(monkeypatch) -> None:
    started: list[dict[str, object]] = []
    popen = subprocess.Popen

    def noted(*command: object, **how: object) -> object:
        started.append(how)
        return popen(*command, **how)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", noted)
    child = ChildProcess.started(ECHO)
    child.kill()
    await child.gone()
    # A pre-exec function or another user would make the parent's whole memory be copied.
    assert set(started[0]) == {"stdin", "stdout", "process_group"}


async def test_a_child_process_is_in_a_separate_process_group_of_the_same_session() -> None:
    child = ChildProcess.started(ECHO)
    assert os.getpgid(child.pid) == child.pid
    assert os.getsid(child.pid) == os.getsid(0)
    child.kill()
    await child.gone()


async def test_a_missing_program_is_reported() -> None:
    with pytest.raises(FileNotFoundError):
        ChildProcess.started(("/no/such/program",))
