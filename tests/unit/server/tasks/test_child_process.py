"""Child processes of a server."""

import os
import subprocess
import sys

import pytest

from server.tasks.worker_processes import ChildProcess

ECHO = (sys.executable, "-c", "print(input(), flush=True); input()")


async def test_a_child_is_told_and_answers() -> None:
    child = ChildProcess.started(ECHO)
    await child.send(b"hello\n")
    assert await child.receive(6) == b"hello\n"
    assert not child.is_gone
    child.kill()
    await child.gone()
    assert child.is_gone


async def test_a_child_that_ends_within_its_answer_is_told() -> None:
    child = ChildProcess.started((sys.executable, "-c", "print('x' * 9)"))
    with pytest.raises(EOFError, match="2 of 12 bytes are missing"):
        await child.receive(12)
    await child.gone()


async def test_a_child_that_is_ended_leaves_no_descriptor_whatever_it_had_to_say() -> None:
    before = len(os.listdir("/proc/self/fd"))
    child = ChildProcess.started((sys.executable, "-c", "print('x' * 1_000_000)"))
    await child.receive(1)
    child.kill()
    await child.gone()
    child.kill()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_child_starts_without_a_copy_of_the_servers_memory(monkeypatch) -> None:
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


async def test_a_ctrl_c_is_not_for_a_child() -> None:
    child = ChildProcess.started(ECHO)
    assert os.getpgid(child.pid) == child.pid
    assert os.getsid(child.pid) == os.getsid(0)
    child.kill()
    await child.gone()


async def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(FileNotFoundError):
        ChildProcess.started(("/no/such/program",))
