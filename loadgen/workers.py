"""Worker processes: their driver alone decides when they end, and they end when it is killed."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import parent_process

from loadgen.errors import ExitCode


def follow_driver() -> None:
    """Leave Ctrl-C, which a terminal sends to all, to the driver; end when the driver has died.

    What a killed driver's workers still wrote would stand in the way of the next one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_driver, daemon=True).start()


def end_with_driver() -> None:
    """Wait, in a worker process, until the driver has died; then end, and report to nobody."""
    driver = parent_process()
    assert driver is not None
    driver.join()
    os._exit(ExitCode.INTERRUPTED)
