"""Arrival times of requests for a namespace at this host, by its kernel.

Arguments: a namespace, the number of requests to wait for, and the timeout in seconds. Output, as
JSON: the time and the sender of each.
"""

import json
import re
import socket
import struct
import sys
import time

_ETHERNET_IPV4 = 0x0800
_INTERFACE = "eth0"
_SO_TIMESTAMPNS = 35
_LARGEST_FRAME_BYTES = 65_536
_BUFFER_BYTES = 32 << 20
_SENDER = slice(26, 30)
"""Of an IPv4 packet behind the header of Ethernet."""


def arrivals(namespace: str, count: int, seconds: float) -> list[tuple[float, str]]:
    """Wait for so many requests that name a namespace; return time and sender of each."""
    named = re.compile(re.escape(namespace.encode()) + rb"(?![\w-])")
    found: list[tuple[float, str]] = []
    give_up = time.monotonic() + seconds
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERNET_IPV4)) as tap:
        tap.bind((_INTERFACE, _ETHERNET_IPV4))
        tap.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        tap.settimeout(1.0)
        sys.stderr.write("listening\n")
        while len(found) < count and time.monotonic() < give_up:
            try:
                frame, told, _, _ = tap.recvmsg(_LARGEST_FRAME_BYTES, 64)
            except TimeoutError:
                continue
            if named.search(frame):
                (whole, nanoseconds) = struct.unpack("qq", told[0][2])
                found.append((whole + nanoseconds / 1e9, socket.inet_ntoa(frame[_SENDER])))
    return found


if __name__ == "__main__":
    json.dump(arrivals(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])), sys.stdout)
