"""Storms as stored scrapes: record a storm, and write promtool's alert tests from all storms.

    python tools/storms.py record --seconds 120 broker=http://127.0.0.1:8080/metrics/ > STORM.yaml
    python tools/storms.py tests > deploy/alerts_test.yml

A stored storm is a YAML file in tests/golden/storms. It has the scraped values of the servers
(``broker``, ``proxy``) and the clients (``loadgen``). It also has expectations, which are written
by hand: phases, and the times of each alert. promtool checks the expectations; docs and pictures
show storms.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import urllib.request
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
STORMS = ROOT / "tests" / "golden" / "storms"
DEPLOY = ROOT / "deploy"
EVERY_SECONDS = 5
ROLES = ("broker", "proxy")
KEPT = re.compile(
    r"(?:pulsar_(?:broker|proxy)_topic_list_\w+(?<!_created)"
    r"|floodgate_topic_list_oldest_waiter_seconds"
    r"|loadgen_(?:requests|client_events)_total)$"
)
DROPPED_LABELS = ("cluster", "run", "scenario", "group")
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_MISSING, _REPEAT = "_", re.compile(r"^(.+)x(\d+)$")
_FEW = 3
"""Longest run of equal values written out."""


@dataclass(frozen=True)
class Firing:
    """An alert of a server that is expected to fire: the times, and the text at the first one."""

    alert: str
    role: str
    spans: tuple[tuple[int, int], ...]
    summary: str

    @property
    def first(self) -> int:
        """The first evaluation at which the alert fires, in seconds."""
        return self.spans[0][0]

    def at(self, second: int) -> bool:
        """Return True if the alert fires at a given second of the storm."""
        return any(begin <= second <= end for begin, end in self.spans)


@dataclass(frozen=True)
class Storm:
    """A stored storm: scraped values, and the alerts that are expected to fire.

    Attributes:
        series: Values of each scrape (None if missing), by target (``broker``, ``proxy``,
            ``loadgen``) and name of the series.
        phases: Spans of seconds, each with a name.
    """

    name: str
    title: str
    series: dict[str, dict[str, list[float | None]]]
    firing: tuple[Firing, ...]
    phases: tuple[tuple[int, int, str], ...]

    @property
    def seconds(self) -> int:
        """The duration of the storm in seconds."""
        return EVERY_SECONDS * (len(next(iter(self.series["broker"].values()))) - 1)

    def points(self, target: str, name: str) -> list[tuple[float, float]]:
        """Return the times and values of a series of a target."""
        values = self.series[target].get(name, [])
        return [(EVERY_SECONDS * n, v) for n, v in enumerate(values) if v is not None]

    def as_proxy(self) -> Storm:
        """Return the same storm as if a proxy had it, because rules treat both roles alike."""
        renamed = {
            name.replace("pulsar_broker_", "pulsar_proxy_"): values
            for name, values in self.series["broker"].items()
        }
        told = (
            Firing(e.alert, "proxy", e.spans, e.summary.replace("broker:", "proxy:"))
            for e in self.firing
        )
        return Storm(f"{self.name}, of a proxy", self.title, {"proxy": renamed}, tuple(told), ())


def stored(name: str) -> Storm:
    """Read a stored storm, given its name."""
    told = yaml.safe_load((STORMS / f"{name}.yaml").read_text(encoding="utf-8"))
    series = {
        target: {each: unpacked(text) for each, text in named.items()}
        for target, named in told["series"].items()
    }
    firing = [
        Firing(alert, role, tuple(map(tuple, each["seconds"])), each["says"])
        for role, alerts in (told.get("fires") or {}).items()
        for alert, each in alerts.items()
    ]
    phases = [(each["from"], each["until"], each["what"]) for each in told.get("phases") or ()]
    return Storm(name, told["title"], series, tuple(firing), tuple(phases))


def all_stored() -> list[Storm]:
    """Read every stored storm."""
    return [stored(path.stem) for path in sorted(STORMS.glob("*.yaml"))]


def unpacked(text: str) -> list[float | None]:
    """Parse values that :func:`packed` has written."""
    values: list[float | None] = []
    for word in text.split():
        found = _REPEAT.match(word)
        one = found[1] if found else word
        value = None if one == _MISSING else float(one)
        values += [value] * (int(found[2]) if found else 1)
    return values


def packed(values: Iterable[float | None]) -> str:
    """Format the values of a series compactly: ``7x12`` is twelve sevens."""
    return " ".join(
        f"{word}x{number}" if number > _FEW else " ".join([word] * number)
        for word, number in _runs(values)
    )


def _notation(values: Iterable[float | None]) -> str:
    """Format values in promtool's notation: ``7x11`` is twelve sevens, and NaN is not repeated.

    For Prometheus a failed scrape ends a series until the next scrape.
    """
    told: list[str] = []
    for word, number in _runs(values):
        one = "stale" if told and word == _MISSING else word
        told += [f"{one}x{number - 1}"] if one[0].isdigit() else [one] * number
    return " ".join(told)


def _runs(values: Iterable[float | None]) -> Iterator[tuple[str, int]]:
    words = (_MISSING if each is None else f"{each:.12g}".replace("nan", "NaN") for each in values)
    for word, same in groupby(words):
        yield word, sum(1 for _ in same)


# -- recording ----------------------------------------------------------------------------------


def kept(page: str) -> dict[str, float]:
    """Return the samples of a metrics page that alerts and pictures need, summed over groups."""
    found: dict[str, float] = {}
    for name, labels, value in _SAMPLE.findall(page):
        pairs = [(key, text) for key, text in _LABEL.findall(labels) if key not in DROPPED_LABELS]
        if KEPT.match(name) and ("quantile", "0.5") not in pairs:
            told = ",".join(f'{key}="{text}"' for key, text in pairs)
            series = f"{name}{{{told}}}" if told else name
            found[series] = found.get(series, 0.0) + float(value)
    return found


def record(targets: dict[str, str], seconds: float) -> dict[str, dict[str, str]]:
    """Scrape each metrics page every five seconds; return the series in their stored form."""
    begun, scrapes = time.monotonic(), list[dict[str, dict[str, float]]]()
    while len(scrapes) * EVERY_SECONDS <= seconds:
        time.sleep(max(0.0, begun + len(scrapes) * EVERY_SECONDS - time.monotonic()))
        scrapes.append({target: kept(_page(url)) for target, url in targets.items()})
    told: dict[str, dict[str, str]] = {}
    for target in targets:
        names = sorted({name for scrape in scrapes for name in scrape[target]})
        told[target] = {
            name: packed([scrape[target].get(name) for scrape in scrapes]) for name in names
        }
    return told


def _page(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=EVERY_SECONDS) as answer:
            return str(answer.read().decode())
    except OSError:  # a missing scrape
        return ""


# -- promtool -----------------------------------------------------------------------------------


def promtool_document(storms: Sequence[Storm]) -> dict[str, Any]:
    """Return promtool's test document: each storm, and each broker's storm as that of a proxy."""
    replayed = [*storms, *(each.as_proxy() for each in storms if "proxy" not in each.series)]
    return {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": f"{EVERY_SECONDS}s",
        "tests": [_test(each) for each in replayed],
    }


def _test(storm: Storm) -> dict[str, Any]:
    seen = {role: storm.series[role] for role in ROLES if role in storm.series}
    length = max(len(values) for named in seen.values() for values in named.values())
    return {
        "name": f"{storm.name}: {storm.title}",
        "interval": f"{EVERY_SECONDS}s",
        "input_series": [
            {"series": _labelled(name, role), "values": _notation(values)}
            for role, named in seen.items()
            for name, values in named.items()
        ],
        "promql_expr_test": [
            _firing_at(storm, n * EVERY_SECONDS) for n in range(length)
        ],
        "alert_rule_test": [_words_of(storm, each) for each in storm.firing],
    }  # fmt: skip


def _labelled(name: str, role: str) -> str:
    bare, _, labels = name.rstrip("}").partition("{")
    own = ",".join(f'{key}="{text}"' for key, text in labels_of(role).items())
    return f"{bare}{{{own}{',' if labels else ''}{labels}}}"


def labels_of(role: str) -> dict[str, str]:
    """Return the labels that the shipped Prometheus configuration gives to a server's series."""
    shipped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    for job in shipped["scrape_configs"]:
        for target in job["static_configs"][0]["targets"]:
            if target.startswith(role):
                return {"cluster": "standalone", "instance": target, "job": job["job_name"]}
    raise ValueError(f"deploy/prometheus.yml has no target {role}")


def _firing_at(storm: Storm, second: int) -> dict[str, Any]:
    fires = sorted((each.alert, each.role) for each in storm.firing if each.at(second))
    return {
        "expr": 'count by (alertname, job) (ALERTS{alertstate="firing"})',
        "eval_time": f"{second}s",
        "exp_samples": [
            {"labels": f'{{alertname="{alert}", job="{labels_of(role)["job"]}"}}', "value": 1}
            for alert, role in fires
        ],
    }


def _words_of(storm: Storm, firing: Firing) -> dict[str, Any]:
    """Return promtool's test of an alert's text when it first fires, for one server."""
    rule = rules()[firing.alert]
    return {
        "eval_time": f"{firing.first}s",
        "alertname": firing.alert,
        "exp_alerts": [
            {
                "exp_labels": {**rule["labels"], **labels_of(firing.role)},
                "exp_annotations": {**rule["annotations"], "summary": firing.summary},
            }
        ],
    }


def rules() -> dict[str, dict[str, Any]]:
    """Return the shipped alerting rules, by the name of their alert."""
    told = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
    return {rule["alert"]: rule for group in told["groups"] for rule in group["rules"]}


def main() -> None:
    """Record a storm, or write promtool's tests, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    recorded = verbs.add_parser("record", help="scrape servers, print a stored storm")
    recorded.add_argument("--seconds", type=float, default=120.0)
    recorded.add_argument("target", nargs="+", help="broker=URL, proxy=URL, loadgen=URL")
    verbs.add_parser("tests", help="print promtool's tests of all stored storms")
    asked = parser.parse_args()
    if asked.verb == "record":
        targets = dict(each.split("=", 1) for each in asked.target)
        told: dict[str, Any] = {"title": "", "series": record(targets, asked.seconds)}
        yaml.safe_dump(told, sys.stdout, sort_keys=False, width=10_000)
    else:
        print("# Made by tools/storms.py: do not edit. promtool test rules alerts_test.yml")
        json.dump(promtool_document(all_stored()), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
