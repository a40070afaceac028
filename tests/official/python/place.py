"""Environment of a scenario: servers, a namespace, and a client each."""

import hashlib
import json
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pulsar

PATIENCE_MILLIS = 60_000
"""Timeout of an expected message."""
QUIET_MILLIS = 300
"""Wait that shows the absence of a message."""


TURN_MILLIS = 5
"""Poll time of each of several consumers."""


def payloads(name, count, start=0):
    """Return the messages of a scenario: ``name-0``, ``name-1``, ..."""
    return [f"{name}-{number}".encode() for number in range(start, start + count)]


def digest(messages):
    """Return the hash of messages in order."""
    found = hashlib.sha256()
    for message in messages:
        found.update(message)
        found.update(b"\n")
    return found.hexdigest()


@dataclass
class Place:
    service_url: str
    admin_url: str
    namespace: str
    files: Path
    name: str = ""
    clients: list = field(default_factory=list)

    def topic(self, part="", domain="persistent"):
        """Return the name of a topic of this scenario."""
        return f"{domain}://{self.namespace}/{self.name}{part}"

    def client(self):
        """Return a new client, closed when the scenario ends."""
        log = pulsar.FileLogger(pulsar.LoggerLevel.Info, str(self.files / "client.log"))
        client = pulsar.Client(self.service_url, operation_timeout_seconds=20, logger=log)
        self.clients.append(client)
        return client

    def close(self):
        for client in self.clients:
            client.close()

    def rest(self, method, path, body=None):
        """Call the admin REST API; return status and answer."""
        request = urllib.request.Request(
            f"{self.admin_url}/admin/v2/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, None

    def path(self, part=""):
        """Return the REST path of a topic of this scenario."""
        return self.topic(part).replace("://", "/")


@contextmanager
def place_for(common, name):
    """Yield a scenario's place, and close its clients at the end."""
    place = Place(common.service_url, common.admin_url, common.namespace, common.files, name)
    try:
        yield place
    finally:
        place.close()


def receive(consumer, count, ack=True):
    """Return the next messages, acknowledged by default."""
    found = []
    for _ in range(count):
        message = consumer.receive(PATIENCE_MILLIS)
        if ack:
            consumer.acknowledge(message)
        found.append(message)
    return found


def receive_data(consumer, count):
    """Return the payloads of the next messages."""
    return [message.data() for message in receive(consumer, count)]


def nothing_comes(consumer):
    """Return True if no message arrives for a while."""
    try:
        consumer.receive(QUIET_MILLIS)
    except pulsar.Timeout:
        return True
    return False


def drain(consumers, count):
    """Return each consumer's messages, once ``count`` arrived in total."""
    found = [[] for _ in consumers]
    quiet = 0
    while sum(map(len, found)) < count and quiet * TURN_MILLIS < PATIENCE_MILLIS:
        before = sum(map(len, found))
        for consumer, got in zip(consumers, found, strict=True):
            try:
                message = consumer.receive(TURN_MILLIS)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            got.append(message)
        quiet = quiet + 1 if sum(map(len, found)) == before else 0
    return found


def refusal(attempt, *arguments, **named):
    """Return the name of the client's error; an empty text without an error."""
    try:
        attempt(*arguments, **named)
    except pulsar.PulsarException as error:
        return type(error).__name__
    return ""
