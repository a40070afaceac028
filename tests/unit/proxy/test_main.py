import subprocess
import sys

import pytest

from proxy import __main__, service
from tests.support.processes.server_process import REPOSITORY


@pytest.mark.parametrize("module", ["numpy", "pyarrow", "broker"])
def test_a_proxy_does_not_load(module: str) -> None:
    loaded = f"{__main__.__name__}, {service.__name__}"
    source = f"import sys, {loaded}; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY).returncode == 0
