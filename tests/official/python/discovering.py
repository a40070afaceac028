"""Consumer of a pattern: ``discovering.py SERVICE_URL PATTERN PERIOD OPERATION_SECONDS``.

Prints ``subscribed`` or ``refused``, and closes the consumer when standard input ends.
"""

import re
import sys

import _pulsar
import pulsar

_, url, pattern, period, operation_seconds = sys.argv
_configuration = _pulsar.ConsumerConfiguration


def configuration():
    """Set the period, which this client accepts but does not pass on."""
    made = _configuration()
    made.pattern_auto_discovery_period(int(period))
    return made


_pulsar.ConsumerConfiguration = configuration
client = pulsar.Client(
    url,
    operation_timeout_seconds=int(operation_seconds),
    logger=pulsar.FileLogger(pulsar.LoggerLevel.Info, "python.log"),
)
try:
    consumer = client.subscribe(re.compile(pattern), "s", properties={"team": "red"})
except pulsar.PulsarException as error:
    sys.stdout.write(f"refused {type(error).__name__}\n")
    sys.exit()
sys.stdout.write("subscribed\n")
sys.stdout.flush()
sys.stdin.read()
consumer.close()
client.close()
