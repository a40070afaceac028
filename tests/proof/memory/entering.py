"""``python -m tests.proof.memory.entering GROUP|BYTES COMMAND...`` bounds itself and becomes it."""

import os
import resource
import sys
from pathlib import Path


def main() -> None:
    """Enter a control group, or set RLIMIT_DATA; then run the command in this process."""
    where, *command = sys.argv[1:]
    if where.isdigit():
        resource.setrlimit(resource.RLIMIT_DATA, (int(where), int(where)))
    else:
        (Path(where) / "cgroup.procs").write_text(str(os.getpid()))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
