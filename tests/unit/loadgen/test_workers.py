"""Workers end when the driver is killed."""

import os
import select
import subprocess
import sys
from pathlib import Path

DRIVER = """
from multiprocessing import get_context

from loadgen.workers import end_with_driver

if __name__ == "__main__":
    worker = get_context("spawn").Process(target=end_with_driver)
    worker.start()
    print(worker.pid, flush=True)
    worker.join()
"""


def test_a_worker_ends_when_its_driver_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env={**os.environ, **path}
    ) as driver:
        assert driver.stdout is not None
        ended = os.pidfd_open(int(driver.stdout.readline()))
        driver.kill()
    try:
        assert select.select([ended], [], [], 60.0)[0] == [ended]
    finally:
        os.close(ended)
