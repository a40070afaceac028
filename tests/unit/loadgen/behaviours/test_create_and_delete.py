"""Clients create and delete topics when due."""

import subprocess
import sys

READY = """
import asyncio, sys
from types import SimpleNamespace
from loadgen.behaviours.create_and_delete import CreateAndDelete

async def connected() -> None: ...

before = "aiohttp" in sys.modules
group = CreateAndDelete(name="churn", count=1)
asyncio.run(group.ready(SimpleNamespace(service=SimpleNamespace(ready=connected))))
print(before, "aiohttp" in sys.modules)
"""


def test_the_rest_client_is_loaded_before_the_run_starts() -> None:
    # The import holds the loop longer than the first creation may be late.
    done = subprocess.run([sys.executable, "-c", READY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
