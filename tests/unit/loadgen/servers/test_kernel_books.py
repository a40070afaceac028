"""Memory, processor time and descriptors of a process, as /proc has them."""

from __future__ import annotations

import os

import pytest

from loadgen.errors import UsageError
from loadgen.servers.kernel_books import KernelBooks


def test_resident_memory_is_read_from_the_kernels_books(tmp_path) -> None:
    # Given
    directory = tmp_path / "42"
    directory.mkdir()
    (directory / "status").write_text("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n")
    memory = KernelBooks("broker", 42, tmp_path)
    # When
    idle = memory.reset_high_water_mark()
    # Then
    assert (idle, memory.peak_bytes()) == (1024 * 1024, 2048 * 1024)
    assert (directory / "clear_refs").read_text() == "5"


def test_a_process_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"process 42 \(--proxy-pid\)"):
        KernelBooks("proxy", 42, tmp_path).reset_high_water_mark()


def test_a_process_that_has_ended_is_told_from_one_without_memory(tmp_path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "status").write_text("Name:\tzombie\n")
    with pytest.raises(UsageError, match="has ended"):
        KernelBooks("proxy", 42, tmp_path).peak_bytes()


def test_a_process_is_described_by_the_names_that_it_would_use_itself(tmp_path) -> None:
    # Given a process whose name would mislead who splits at blanks
    directory = tmp_path / "42"
    (directory / "fd").mkdir(parents=True)
    for number in range(3):
        (directory / "fd" / str(number)).touch()
    ticks = os.sysconf("SC_CLK_TCK")
    before = "S 1 1 1 0 -1 4194560 0 0 0 0"
    (directory / "stat").write_text(f"42 (a ) b) {before} {3 * ticks} {ticks // 2} 0 0 20 0 1")
    (directory / "status").write_text("VmRSS:\t  1024 kB\n")
    (directory / "limits").write_text("Max open files            20000                1048576\n")
    # When / Then
    assert KernelBooks("broker", 42, tmp_path).samples() == {
        "process_resident_memory_bytes": 1024 * 1024,
        "process_cpu_seconds_total": 3.5,
        "process_open_fds": 3,
        "process_max_fds": 20_000,
    }
