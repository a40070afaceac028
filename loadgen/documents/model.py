"""A scenario document: groups of clients with a behaviour, servers, shocks, and expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import yaml
from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from loadgen.behaviours.consume import Consume
from loadgen.behaviours.publish import Publish
from loadgen.behaviours.registry import AnyGroup
from loadgen.documents.service_times import FLOODGATE, StatedTimes
from loadgen.plan.clients import MOST_REQUESTS, Namespace, Phases, start_moments
from loadgen.plan.fields import Duration, Moment, Name, NamespaceName, Part, Speed, Whole
from loadgen.topics.distributions import FIXED
from loadgen.topics.plan import WORDS_NAME_BYTES, TopicPlan, TopicShape, plan_namespaces
from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.plan.group import Group

Profile = Literal["pulsar", "floodgate"]
Role = Literal["broker", "proxy"]
MOST_NAMESPACES = 100_000
MOST_REPEATS = 1_000
LENGTH_KEY = "subscriptionPatternMaxLength"
_PULSARS_LENGTH = 50
_SHOCK_SECONDS = 3.0
_SEND_NO_PATTERN = ("cpp", "go")
"""Libraries that ask for whole namespaces anyway."""
_WIDTH = 100


def key_text(value: Any) -> Any:  # noqa: ANN401 - not checked yet
    """Return the value of a configuration key as a file has it: YAML's numbers as words."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool | int | float) else value


Keys = dict[str, Annotated[str, BeforeValidator(key_text)]]


class FurtherTopics(Part):
    """Namespaces of another size."""

    namespaces: Annotated[Whole, Field(ge=1, le=MOST_NAMESPACES)]
    per_namespace: Annotated[Whole, Field(ge=1, le=2_000_000)]


class Topics(Part):
    """The topics of a run: made up, of a file, or those that a server has.

    Attributes:
        per_namespace: Names that a listing of one namespace has.
        mean_name_bytes: Mean length of a full name, ``persistent://`` included; under 90 all names
            are as long, and made of digits.
        further: More namespaces, of other sizes; clients list those before them first.
        names: Names of all these namespaces, in that order; without them they are made up, too.
        corpus: A folder of ``loadgen topics``, or a list of names, instead.
        of: Names of namespaces that a server has already, whatever they hold.
    """

    namespaces: Annotated[Whole, Field(ge=1, le=MOST_NAMESPACES)] = 10
    per_namespace: Annotated[Whole, Field(ge=1, le=2_000_000)] = 10_000
    mean_name_bytes: Annotated[Whole, Field(ge=32, le=512)] = 100
    seed: Annotated[Whole, Field(ge=0, le=(1 << 63) - 1)] = 1
    further: Annotated[tuple[FurtherTopics, ...], Field(max_length=1_000)] = ()
    names: tuple[NamespaceName, ...] = ()
    corpus: str | None = None
    of: tuple[NamespaceName, ...] = ()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        namespaces = self.namespaces + sum(each.namespaces for each in self.further)
        if namespaces > MOST_NAMESPACES:
            raise ValueError(f"{namespaces:,} namespaces in all; at most {MOST_NAMESPACES:,}")
        named = len(set(self.names))
        if named not in (0, namespaces):
            said = f"names has {named:,} different names for {namespaces:,} namespaces"
            raise ValueError(f"{said}: name each once")
        if self.corpus is not None and self.of:
            raise ValueError("corpus and of are two places to take topics from: leave one out")
        self.plan()
        return self

    def plan(self) -> TopicPlan:
        """Return the plan by which topics are made up."""
        sizes, length = self.sizes, self.mean_name_bytes
        shape = TopicShape(max(length, WORDS_NAME_BYTES))
        if length < WORDS_NAME_BYTES:
            shape = TopicShape(length, plain_share=1.0, name_lengths=FIXED)
        # Equal namespaces are dealt by number: that keeps the plan small.
        own = sizes if self.further else ()
        return TopicPlan(sum(sizes), len(sizes), self.seed, shape, own, self.names)

    def expected(self) -> tuple[Namespace, ...]:
        """Return the namespaces that clients list; empty for a corpus, which names its own."""
        if self.corpus is not None:
            return ()
        made = () if self.of else plan_namespaces(self.plan())
        return (
            *(Namespace(name=each) for each in self.of),
            *(Namespace(name=each.name, topics=each.topics) for each in made),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Listed names of each namespace that is made up."""
        others = (each.per_namespace for each in self.further for _ in range(each.namespaces))
        return (*(self.per_namespace for _ in range(self.namespaces)), *others)

    @property
    def made(self) -> bool:
        """True if the topics are made up."""
        return self.corpus is None and not self.of


class Servers(Part):
    """The servers that are started for a run where nobody names others.

    Attributes:
        profile: Of both.
        broker: Configuration keys of the broker, as in broker.conf.
        proxy: Configuration keys of the proxy; None for no proxy.
        service_times: In virtual time, whose processes the servers stand for: what their work
            takes. Floodgate's, as over sockets, a real Pulsar's, or seconds of your own. Elsewhere
            it says nothing.
    """

    profile: Profile = "floodgate"
    broker: Keys = Field(default_factory=dict)
    proxy: Keys | None = None
    service_times: StatedTimes = FLOODGATE

    @property
    def roles(self) -> tuple[Role, ...]:
        """The servers there are."""
        return ("broker",) if self.proxy is None else ("broker", "proxy")


class Shock(Part):
    """One event that hits servers, links or clients while the run lasts.

    Attributes:
        at: When, in seconds since the agreed start.
        kill: A server ends by SIGKILL and stays away.
        restart: The same, and it is started again ``for`` so long later; without ``for`` at once
            over sockets, where a process needs its time, and after 3 s in virtual time.
        stop: A server is asked to end, and stays away.
        pause: A server stands still (SIGSTOP) ``for`` so long.
        cut: The ``link`` to the service URL lets nothing through ``for`` so long.
        slow: It lets so many bytes a second through ``for`` so long, all connections together.
        set: Configuration keys that are changed at run time, of the broker.
        anew: A group of clients: all of its connections are lost.
    """

    at: Moment
    kill: Role | None = None
    restart: Role | None = None
    stop: Role | None = None
    pause: Role | None = None
    cut: Literal["link"] | None = None
    slow: Annotated[Speed, Field(gt=0)] | None = None
    set: Keys | None = None
    anew: Name | None = None
    lasts: Annotated[Duration | None, Field(alias="for")] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(said := self._said) != 1:
            kinds = ", ".join(name for name in Shock.model_fields if name not in ("at", "lasts"))
            raise ValueError(f"must say one of {kinds}, and says {' and '.join(said) or 'none'}")
        return self

    @property
    def _said(self) -> list[str]:
        return [kind for kind, value in self if kind not in ("at", "lasts") and value is not None]

    @property
    def kind(self) -> str:
        """The word that says what happens."""
        return self._said[0]

    @property
    def seconds(self) -> float:
        """The length of the shock, for shocks that have a length."""
        return _SHOCK_SECONDS if self.lasts is None else self.lasts

    @property
    def role(self) -> Role | None:
        """The server of the shock, if any."""
        return self.kill or self.restart or self.stop or self.pause

    @property
    def words(self) -> str:
        """What happens, in words."""
        said = getattr(self, self.kind)
        if self.set is not None:
            said = " ".join(f"{key}={value}" for key, value in self.set.items())
        return f"{self.kind} {said}" if self.slow is None else f"slow link to {self.slow:g} B/s"


def outside(group: Group, count: int) -> str:
    """Return why a group's namespaces are not among ``count`` namespaces; empty if they are."""
    first, end = group.namespaces or (0, count)
    if 0 <= first < end <= count:
        return ""
    why = "is empty" if first >= end else "goes beyond them"
    said = f"must be the first and the one behind the last of {count} namespaces"
    return f"{said}, [0, {count}] for all: [{first}, {end}] {why}"


class Document(Part):
    """A scenario.

    Attributes:
        name: The name in runs, reports and other documents; the file's name by default.
        repeats: How often it is run to be compared.
        seed: Of all random choices.
        clients: Groups, each with a behaviour.
        expect: What is expected of the figures, an expression each.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    description: Annotated[str, Field(max_length=4000)] = ""
    repeats: Annotated[Whole, Field(ge=1, le=MOST_REPEATS)] = 1
    seed: Annotated[Whole, Field(ge=0)] = 1
    topics: Topics = Topics()
    servers: Servers = Servers()
    clients: Annotated[tuple[AnyGroup, ...], Field(min_length=1, max_length=100)]
    shocks: Annotated[tuple[Shock, ...], Field(max_length=100)] = ()
    phases: Phases = Phases()
    expect: tuple[str, ...] = ()
    _written: str = PrivateAttr("")

    @field_validator("clients")
    @classmethod
    def _know_each_other(cls, clients: tuple[AnyGroup, ...]) -> tuple[AnyGroup, ...]:
        """Give each consuming group the client count and message size of its publishing group."""
        if len({each.name for each in clients}) < len(clients):
            raise ValueError("two groups have the same name")
        publishers = {each.name: each for each in clients if isinstance(each, Publish)}
        found = list(clients)
        for number, group in enumerate(clients):
            if isinstance(group, Consume):
                of = publishers.get(group.of)
                if of is None:
                    raise ValueError(
                        f"{group.name} consumes of {group.of}, and no group publishes so"
                    )
                found[number] = group.model_copy(update={"publishers": of.count, "size": of.size})
        return tuple(found)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        faults: list[InitErrorDetails] = [  # Of several parts: no input is at fault alone.
            {"type": PydanticCustomError("parts", "{said}", {"said": s}), "loc": path, "input": ()}
            for path, s in self._faults()
        ]
        if faults:
            raise ValidationError.from_exception_data("Document", faults)
        return self

    def _faults(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the path of each part that does not fit the rest, and the reason."""
        asked = sum(
            group.count * group.requests_each(self.phases.end - group.after)
            for group in self.clients
        )
        if asked > MOST_REQUESTS:
            said = f"its clients make {asked:,.0f} requests, and one run keeps at most "
            said += f"{MOST_REQUESTS:,}: lower count or phases.measure, or raise every"
            yield (), said
        names = [each.name for each in self.clients]
        for number, shock in enumerate(self.shocks):
            if self.servers.proxy is None and shock.role == "proxy":
                yield ("shocks", number), "it is of the proxy, and there is none: add proxy: {}"
            if shock.anew is not None and shock.anew not in names:
                yield ("shocks", number), f"it is of group {shock.anew}: no group has that name"
        count = len(self.topics.of or self.topics.sizes)
        for number, group in enumerate(self.clients):
            if self.topics.corpus is None and (said := outside(group, count)):
                yield ("clients", number, "namespaces"), said

    @property
    def written(self) -> str:
        """The author's text of the document; empty without a text."""
        return self._written

    def written_as(self, text: str) -> Self:
        """Return the document with its author's text."""
        found = self.model_copy()
        found._written = text
        return found

    @property
    def connections(self) -> int:
        """Connections of all clients at once, if the server is a proxy: it takes the most."""
        return sum(each.count * each.connections_each for each in self.clients)

    @property
    def title(self) -> str:
        """The first sentence of its description, on one line."""
        text = " ".join(self.description.split())
        end = text.find(". ")
        return text if end < 0 else text[: end + 1]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on possible but hardly intended values, each with its remedy."""
        return (*self._late_clients(), *self._long_patterns())

    def _late_clients(self) -> Iterator[str]:
        for number, group in enumerate(self.clients):
            moments = start_moments(group, self.seed + number)
            late = sum(moment >= self.phases.end for moment in moments)
            if late:
                yield (
                    f"group {group.name}: {late:,} of {group.count:,} clients never start: the "
                    f"last is due at {format_seconds(max(moments))}, and the run ends at "
                    f"{format_seconds(self.phases.end)}; raise phases.measure, or let them arrive "
                    "sooner"
                )

    def _long_patterns(self) -> Iterator[str]:
        """Yield a sentence for each pattern that is too long for a broker."""
        longest = int(self.servers.broker.get(LENGTH_KEY) or _PULSARS_LENGTH)
        for group in self.clients:
            pattern = getattr(group, "pattern", None)
            if pattern is None or group.family in _SEND_NO_PATTERN:
                continue
            asked = self.topics.expected()[slice(*(group.namespaces or (None, None)))]
            before = f"persistent://{max((each.name for each in asked), key=len, default='')}/"
            # As Java counts: two for a character above U+FFFF.
            length = len((before + pattern).encode("utf-16-le", "surrogatepass")) // 2
            if length > longest:
                yield (
                    f"group {group.name}: the pattern {pattern[:60]!r} behind {before} makes "
                    f"{length} characters, and a broker applies {longest} at most and sends the "
                    f"whole namespace for more: shorten it, or set servers.broker.{LENGTH_KEY} to "
                    f"{length}"
                )

    def resolved(self) -> dict[str, Any]:
        """Return the document with all defaults filled in; reading the result gives the same."""
        return self.model_dump(mode="json")

    def resolved_text(self) -> str:
        """Return the resolved document as YAML."""
        return yaml.safe_dump(
            self.resolved(), sort_keys=False, allow_unicode=True, width=_WIDTH, indent=2
        )
