"""Generate proto/PulsarApi_pb2.py and its type stubs, or check that both are up to date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "proto/PulsarApi.proto"
_OF_ONE_VERSION = re.compile(
    r"# Protobuf Python Version.*\n|from google.protobuf import runtime_version.*\n"
    r"|_runtime_version\.Validate\w+\([^)]*\)\n"
)
"""What refuses every other protobuf than the generator's: the tests say which ones do."""
GENERATED = ("proto/PulsarApi_pb2.py", "proto/PulsarApi_pb2.pyi")


def generate(target: Path) -> None:
    """Write the modules generated from the protocol definition to the folder ``target``.

    The stubs are made by mypy-protobuf: protoc's own stubs are invalid Python, because Schema.Type
    has a member called None.
    """
    tools = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={target}"]
    command += [f"--mypy_out=quiet:{target}", SOURCE]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    module = target / GENERATED[0]
    module.write_text(_OF_ONE_VERSION.sub("", module.read_text("utf-8")), encoding="utf-8")


def main() -> None:
    """Generate the modules in place or, with --check, fail if they are out of date."""
    if "--check" not in sys.argv:
        generate(ROOT)
        return
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        stale = [f for f in GENERATED if (Path(folder) / f).read_bytes() != (ROOT / f).read_bytes()]
    if stale:
        sys.exit(f"Out of date: {', '.join(stale)}. Run: make protos")
    print("Generated code is up to date")


if __name__ == "__main__":
    main()
