"""``python -m pulsar_floodgate`` and ``pulsar-floodgate``: the broker."""

from broker.__main__ import main

if __name__ == "__main__":
    main()
