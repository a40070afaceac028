"""docker-compose.yml as values: only the used part of the Compose format.

Unknown keys are refused, so that typing errors show without a container engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Z_]+):-(?P<default>[^}]*)\}")
_DURATION = r"^\d+(ms|s|m)$"
_PUBLISHED = r"^127\.0\.0\.1:\d+:\d+$"
_VOLUME = r"^(\./)?[a-z][\w./-]*:/[\w./-]+(:ro)?$"

Duration = Annotated[str, Field(pattern=_DURATION)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HealthCheck(_Strict):
    """A service's health check, or the image's switched off."""

    test: list[str] = Field(default_factory=list)
    interval: Duration | None = None
    timeout: Duration | None = None
    start_period: Duration | None = None
    retries: int | None = None
    disable: bool = False


class Dependency(_Strict):
    """A start condition on another service."""

    condition: Literal["service_healthy", "service_completed_successfully"]


class Ulimits(_Strict):
    """Limits of the kernel; ``nofile`` counts open files."""

    nofile: int


class Build(_Strict):
    context: Literal["."]
    target: Literal["servers", "loadgen"]


class Network(_Strict):
    """A network; internal networks lead nowhere else."""

    internal: bool = False


class Service(_Strict):
    """A service with a memory limit, published on the loopback or not at all."""

    image: str
    build: Build | None = None
    command: list[str] = Field(default_factory=list)
    user: Annotated[str, Field(pattern=r"^(root|[1-9]\d*:[1-9]\d*)$")] | None = None
    init: bool = False
    read_only: bool = False
    tmpfs: list[str] = Field(default_factory=list)
    cap_drop: list[Literal["ALL"]] = Field(default_factory=list)
    cap_add: list[Literal["DAC_OVERRIDE", "FOWNER"]] = Field(default_factory=list)
    security_opt: list[Literal["no-new-privileges:true"]] = Field(default_factory=list)
    networks: list[str] = Field(default_factory=lambda: ["default"])
    environment: dict[str, str] = Field(default_factory=dict)
    volumes: list[Annotated[str, Field(pattern=_VOLUME)]] = Field(default_factory=list)
    ports: list[Annotated[str, Field(pattern=_PUBLISHED)]] = Field(default_factory=list)
    depends_on: dict[str, Dependency] = Field(default_factory=dict)
    healthcheck: HealthCheck | None = None
    profiles: list[str] = Field(default_factory=list)
    secrets: list[str] = Field(default_factory=list)
    ulimits: Ulimits | None = None
    mem_limit: Annotated[str, Field(pattern=r"^\d+[mg]$")]
    stop_grace_period: Duration | None = None
    restart: Literal["no", "unless-stopped"]

    @property
    def mounted_files(self) -> list[str]:
        """Repository paths mounted read-only by the service."""
        mounted = [text for text in self.volumes if text.startswith("./")]
        return [text.split(":")[0] for text in mounted if text.endswith(":ro")]

    @property
    def named_volumes(self) -> list[str]:
        """Volumes to be declared in the file."""
        return [text.split(":")[0] for text in self.volumes if not text.startswith("./")]


class SecretFile(_Strict):
    """A secret, below /run/secrets in a service."""

    file: Annotated[str, Field(pattern=r"^\./out/")]


class ComposeFile(_Strict):
    name: str
    services: dict[str, Service]
    networks: dict[str, Network | None]
    volumes: dict[str, None]
    secrets: dict[str, SecretFile] = Field(default_factory=dict)


def load_compose(path: Path, variables: Mapping[str, str], over: Path | None = None) -> ComposeFile:
    """Read the file as Compose does, with ``${NAME:-default}`` filled in from ``variables``.

    Args:
        path: The file.
        variables: Environment variables.
        over: An overlaid file: lists are appended, except commands.

    Raises:
        ValueError: The file holds an unknown key.
    """
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if over is not None:
        content = _laid_over(content, yaml.safe_load(over.read_text(encoding="utf-8")))
    templates = [key for key in content if key.startswith("x-")]
    for key in templates:
        del content[key]
    return ComposeFile.model_validate(_filled_in(content, variables))


def _laid_over(below: object, above: object, key: str = "") -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{k: _laid_over(below.get(k), v, k) for k, v in above.items()}}
    if isinstance(below, list) and isinstance(above, list) and key != "command":
        return below + above
    return above


def _filled_in(value: object, variables: Mapping[str, str]) -> object:
    if isinstance(value, dict):
        return {key: _filled_in(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled_in(each, variables) for each in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: variables.get(found["name"], found["default"]), value)
    return value
