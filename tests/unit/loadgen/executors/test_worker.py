"""A worker's report reaches the driver whole."""

from __future__ import annotations

import os
import select
import signal
import threading
import time

from loadgen.executors.worker import write_report

REPORT = bytes(range(256)) * 2_000


def test_a_signal_in_the_middle_of_a_report_costs_none_of_it() -> None:
    # Given a driver that reads nothing before the worker was interrupted
    reading, writing = os.pipe()
    worker, received = threading.get_ident(), bytearray()

    def drive() -> None:
        while select.select([], [writing], [], 0)[1]:
            time.sleep(0.001)  # Once the pipe is full it stays so, and the worker waits.
        signal.pthread_kill(worker, signal.SIGUSR1)
        with open(reading, "rb") as pipe:
            received.extend(pipe.read())

    handler = signal.signal(signal.SIGUSR1, lambda *_: None)
    driver = threading.Thread(target=drive)
    driver.start()
    # When
    write_report(writing, REPORT)
    os.close(writing)
    driver.join()
    signal.signal(signal.SIGUSR1, handler)
    # Then
    assert bytes(received) == b"REPORT %d\n" % len(REPORT) + REPORT
