"""OpenSSL's client against a broker's TLS port: features that Python's TLS cannot initiate."""

import asyncio
import shutil
from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command
from tests.support.certificates import PemFiles
from tests.support.processes.tls_servers import tls_broker

pytestmark = [
    pytest.mark.official,
    pytest.mark.skipif(
        shutil.which("openssl") is None,
        reason="openssl is not installed (Debian: apt-get install openssl).",
    ),
]

UPDATE = b"K\n"
"""Its key update command, with a request for the peer's key update."""


async def until_said(reader: asyncio.StreamReader, words: bytes) -> None:
    said = b""
    while words not in said:
        more = await reader.read(4096)
        assert more, said[-500:]
        said = said[-1000:] + more


async def test_tls_key_updates_do_not_disturb_a_connection(tmp_path: Path) -> None:
    pem = PemFiles(tmp_path)
    connect = pb.CommandConnect(client_version="openssl", protocol_version=21)
    frame = encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))
    async with tls_broker(pem) as broker:
        port = broker.urls.service_tls.rpartition(":")[2]
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3"]
        client = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert client.stdin is not None
        assert client.stdout is not None
        await until_said(client.stdout, b"---\n")
        # Both sides update their keys, twice
        for _ in range(2):
            client.stdin.write(UPDATE)
            await until_said(client.stdout, b"KEYUPDATE")
        client.stdin.write(frame)
        await until_said(client.stdout, b"Pulsar Server")
        client.stdin.close()
        await client.wait()
