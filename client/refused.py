"""Classes of the official client that are not supported; creating one raises an error."""

from __future__ import annotations

from client.exceptions import OperationNotSupported


class _Refused:
    """A class that cannot be instantiated.

    Raises:
        OperationNotSupported: Always.
    """

    _reason = ""

    def __init__(self, *_: object, **__: object) -> None:
        raise OperationNotSupported(f"{type(self).__name__}: {self._reason}")


class AutoClusterFailover(_Refused):
    """Unsupported: the official client's class for automatic failover to another cluster."""

    _reason = (
        "this client does not move between clusters by itself: name several addresses of one "
        "cluster in the service URL, or open a second client"
    )


class ServiceInfoProvider(_Refused):
    """Unsupported: the official client's class for changing the service URL of a client."""

    _reason = "a client's service URL does not change: open another client for another cluster"


class CryptoKeyReader(_Refused):
    """Unsupported: the official client's class for the keys of end-to-end encryption."""

    _reason = "this client does not encrypt: encrypt and decrypt the content yourself"


class ConsoleLogger(_Refused):
    """Unsupported: the official client's class for logging to the console."""

    _reason = "use Python's logging: give Client a logging.Logger, or configure the logger 'client'"


class FileLogger(_Refused):
    """Unsupported: the official client's class for logging to a file."""

    _reason = ConsoleLogger._reason


class _NoLevels(type):
    """A metaclass whose classes raise an error at access to any attribute."""

    _reason: str

    def __getattr__(cls, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        raise OperationNotSupported(f"{cls.__name__}.{name}: {cls._reason}")


class LoggerLevel(_Refused, metaclass=_NoLevels):
    """Unsupported: the official client's class for the levels of its own loggers."""

    _reason = ConsoleLogger._reason


class Function(_Refused):
    """Unsupported: the official client's base class of Pulsar Functions."""

    _reason = (
        "this package is a client, and runs no Pulsar Functions: subscribe to their topics, or run "
        "them with the official package"
    )


class SerDe(_Refused):
    """Unsupported: the official client's base class of serializers for Pulsar Functions."""

    _reason = "it belongs to Pulsar Functions: give producers and consumers a schema"
