import subprocess
import sys

from proxy import __main__, service
from tests.support.processes.server_process import REPOSITORY


def test_the_proxy_does_not_import_numpy_pyarrow_or_the_broker() -> None:
    loaded = f"{__main__.__name__}, {service.__name__}"
    dear = {"numpy", "pyarrow", "broker"}
    source = f"import sys, {loaded}; sys.exit(sorted({dear} & sys.modules.keys()) or 0)"
    assert subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY).returncode == 0
