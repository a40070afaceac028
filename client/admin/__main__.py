"""``floodgate-admin`` and ``python -m client.admin``."""

from __future__ import annotations

from client.admin.commands.command_line import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
