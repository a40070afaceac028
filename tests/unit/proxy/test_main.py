import subprocess
import sys

from proxy import __main__, service
from tests.support.processes.server_process import REPOSITORY


def test_a_proxy_does_not_load_what_it_does_not_need() -> None:
    loaded = f"{__main__.__name__}, {service.__name__}"
    dear = {"numpy", "pyarrow", "broker"}
    source = f"import sys, {loaded}; sys.exit(sorted({dear} & sys.modules.keys()) or 0)"
    assert subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY).returncode == 0
