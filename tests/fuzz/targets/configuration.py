"""Configuration: files of broker and proxy, a command-line setting, a scenario.

An input: a byte for the kind, then the text.
"""

import random
from collections.abc import Mapping
from pathlib import Path

from broker.configuration.config import BrokerConfig
from broker.configuration.config import known_keys as broker_keys
from loadgen.documents.reading import parse_document, shipped
from loadgen.errors import LoadgenError
from proxy.config import ProxyConfig
from proxy.config import known_keys as proxy_keys
from server.configuration.file import key_lines, parse_properties, parse_setting
from server.errors import ConfigError
from tests.fuzz.inputs.config_texts import changed_lines, changed_yaml
from tests.fuzz.rules import BrokenRuleError

ALLOWED = (ConfigError, LoadgenError)
FIGURES = {"made": 0}
SCENARIO_BELOW, PROXY_FROM, SETTING_FROM = 24, 136, 248
"""A scenario costs twenty times as much as a properties file, so scenarios are rarer."""
MOST_SHOWN = 2_000
_BROKER = b"\x20"
_NO_FILE = Path("nowhere/scenario.yaml")


def one_input(data: bytes) -> None:
    """Parse a text as a kind of configuration; the result can be printed."""
    chosen, rest = data[0] if data else 0, data[1:]
    try:
        text = rest.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = rest.decode("latin-1")
    try:
        if chosen < SCENARIO_BELOW:
            parse_document(text, _NO_FILE)
        elif chosen < SETTING_FROM:
            model = BrokerConfig if chosen < PROXY_FROM else ProxyConfig
            values = parse_properties(text, "broker.conf")
            key_lines(text)
            _made(model, values)
        else:
            key, value = parse_setting(text)
            _made(BrokerConfig, {key: value})
        FIGURES["made"] += 1
    except ConfigError as error:
        if any(len(problem) > MOST_SHOWN for problem in error.problems):
            raise BrokenRuleError("a problem is told in more words than anybody reads") from None
        raise


def _made(model: type[BrokerConfig | ProxyConfig], values: Mapping[str, str]) -> None:
    config = model.from_properties(values)
    repr(config)
    for notice in config.notices:
        if not notice.sentence:
            raise BrokenRuleError("a notice says nothing")


def seeds() -> list[bytes]:
    """Return files with each key's default, and the shipped scenarios."""
    files = []
    for first, keys in ((_BROKER, broker_keys()), (bytes((PROXY_FROM,)), proxy_keys())):
        lines = [f"{known.key}={known.default}" for known in keys]
        files += [first + line.encode() for line in lines]
    scenarios = [b"\x00" + file.read_bytes() for file in shipped().values()]
    return [*files, *scenarios, bytes((SETTING_FROM,)) + b"webServicePort=0"]


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Mutate lines of properties or YAML, occasionally bytes."""
    import atheris

    choices = random.Random(seed)
    if choices.random() < 0.3 or not data:
        return bytes(atheris.Mutate(data, most_bytes))
    first, text = data[:1], data[1:].decode(errors="replace")
    if first[0] < SCENARIO_BELOW:
        changed = changed_yaml(text, choices)
    else:
        keys = proxy_keys() if PROXY_FROM <= first[0] < SETTING_FROM else broker_keys()
        changed = changed_lines(text, keys, choices)
    return (first + changed.encode(errors="replace"))[:most_bytes]
