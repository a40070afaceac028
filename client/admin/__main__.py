"""Entry point of ``floodgate-admin`` and of ``python -m client.admin``."""

from __future__ import annotations

import sys

from limiter.extras import MissingExtraError, extra


def main() -> None:
    """Run the command line ``floodgate-admin``."""
    try:
        with extra("admin"):
            from client.admin.commands.command_line import main as run

            run()
    except MissingExtraError as error:
        sys.exit(f"floodgate-admin cannot do this: {error}")


if __name__ == "__main__":
    main()
