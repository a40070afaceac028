"""Oddities of a call: of its path, parameters, body, headers or method."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.differential.rest.calls import METADATA_TYPE
from tests.differential.rest.endpoints import Draft


@dataclass(frozen=True)
class Oddity:
    """Way to make a call odd.

    Attributes:
        name: Class in a report.
        done: Applies the oddity to a draft, and returns the draft.
        fits: Whether the oddity can apply to a draft.
    """

    name: str
    done: Callable[[Random, Draft], Draft]
    fits: Callable[[Draft], bool] = lambda _: True


def _changed(change: Callable[[Random, Draft], None]) -> Callable[[Random, Draft], Draft]:
    def done(random: Random, draft: Draft) -> Draft:
        change(random, draft)
        return draft

    return done


# -- paths ----------------------------------------------------------------------------------------


def _put_in(random: Random, draft: Draft, texts: tuple[str, ...], start: int = 0) -> None:
    draft.segments.insert(random.randint(start, len(draft.segments)), random.choice(texts))


def _trailing_slash(_: Random, draft: Draft) -> None:
    draft.segments.append("")


def _double_slash(random: Random, draft: Draft) -> None:
    _put_in(random, draft, ("",), 1)


def _dot_segment(random: Random, draft: Draft) -> None:
    _put_in(random, draft, (".", "..", "%2e", "%2E%2E"), 1)


def _extra_segment(random: Random, draft: Draft) -> None:
    _put_in(random, draft, ("standalone", "nothing", "partitions", "topics"), 2)


def _missing_segment(random: Random, draft: Draft) -> None:
    draft.segments.pop(random.randrange(len(draft.segments)))


def _first_version(_: Random, draft: Draft) -> None:
    """Use a path from before v2: without the version, with a cluster after the tenant."""
    draft.segments.pop(1)
    if len(draft.segments) > 3:
        draft.segments.insert(3, "standalone")


def _other_case(random: Random, draft: Draft) -> None:
    position = random.randrange(min(3, len(draft.segments)))
    draft.segments[position] = draft.segments[position].upper()


def _encoded(random: Random, draft: Draft) -> None:
    """Percent-encode an ordinary letter."""
    position = random.randrange(len(draft.segments))
    text = draft.segments[position] or "a"
    draft.segments[position] = f"%{ord(text[0]):02{random.choice('xX')}}{text[1:]}"


def _parameter(random: Random, draft: Draft) -> None:
    """Add a parameter to a segment (RFC 3986)."""
    position = random.randrange(len(draft.segments))
    draft.segments[position] += random.choice((";a=b", ";", ";jsessionid=1", ";a=b;c", "%3Ba"))


def _name(draft: Draft) -> bool:
    return len(draft.segments) > 3 and "configuration" not in draft.segments


def _last_name(draft: Draft) -> int:
    words = (
        "partitions",
        "properties",
        "subscriptions",
        "partitioned",
        "topics",
        "bundles",
        "bundle",
    )
    return len(draft.segments) - 1 - (draft.segments[-1] in words)


def _renamed(texts: tuple[str, ...]) -> Callable[[Random, Draft], None]:
    def change(random: Random, draft: Draft) -> None:
        position = _last_name(draft)
        text = random.choice(texts)
        draft.segments[position] = text.replace("@", draft.segments[position])

    return change


_UNICODE = (
    "%C3%BCn%C3%AF",
    "%F0%9F%98%80",
    "%E6%97%A5%E6%9C%AC",
    "@%C3%A9",
    "e%CC%81",
    "%EF%BB%BF@",
)
_SIGNS = (
    "a%20b",
    "@+b",
    "%40",
    "a%22b",
    "a%5Cb",
    "a%3Fb",
    "a%23b",
    "a%26b",
    "a,b",
    "a'b",
    "(@)",
    "a*",
    "$@",
    "a!b",
    "~@",
    "%7B@%7D",
    "a%3Cb%3E",
    "a%7Cb",
    "@@",
    "a%5Eb",
    "a%60b",
)
_SLASHES = ("a%2Fb", "@%2F", "%2F@", "a%2fb%2Fc", "persistent:%2F%2Fx")
_BROKEN = ("@%", "@%zz", "%FF", "a%C3", "%00", "a%0Ab", "@%1", "%u0041", "a%C0%80")
_ODD_NAMES = (
    "@-partition-0",
    "@-partition-7",
    "@-partition-",
    "@-partition--1",
    "@-partition-007",
    "-partition-1",
    "@-partition-99999999999",
    "@-PARTITION-0",
    "__change_events",
    "__x",
    "a-partition-0-partition-0",
    "partitions",
    "partitioned",
    "%20",
    "a" * 300,
    "null",
    "-1",
    "@.",
)


# -- parameters -----------------------------------------------------------------------------------


def _boolean_word(random: Random, draft: Draft) -> None:
    word = random.choice(("TRUE", "True", "yes", "1", "on", "", "false", "0", "null", "t"))
    names = ("includeSystemTopic", "force", "authoritative", "checkAllowAutoCreation")
    draft.query = [(random.choice(names), word)]


def _bad_mode(random: Random, draft: Draft) -> None:
    mode = random.choice(("persistent", "NOPE", "", "0", "ALL%20", "non_persistent", "All"))
    draft.query = [("mode", mode)]


def _repeated(random: Random, draft: Draft) -> None:
    pairs = draft.query or [("force", "false"), ("mode", "ALL")]
    draft.query = pairs + [(name, random.choice((value, "x"))) for name, value in pairs]


def _unknown_parameter(random: Random, draft: Draft) -> None:
    pair = random.choice(
        (("x", "y"), ("Mode", "ALL"), ("%C3%BC", "%C3%BC"), ("a%5B%5D", "1"), ("", ""))
    )
    draft.query = [*draft.query, pair]


def _odd_bundle(random: Random, draft: Draft) -> None:
    texts = (
        "bogus",
        "",
        "0x00000000_0xffffffff",
        "0x0_0x40000000",
        "0x40000000_0x00000000",
        "0x40000000",
    )
    draft.query = [("bundle", random.choice(texts))]


def _odd_key(random: Random, draft: Draft) -> None:
    """Use an empty or unknown key."""
    draft.query = random.choice(([], [("key", "none")], [("key", "%20")], [("Key", "team")]))


def _broken_query(random: Random, draft: Draft) -> None:
    draft.query = [("mode", random.choice(("%C3", "%FF", "a%20b", "a+b", "a;b", "%3D", "a=b")))]


# -- bodies ---------------------------------------------------------------------------------------


def _has_body(draft: Draft) -> bool:
    return draft.body is not None


def _body_of(*texts: str) -> Callable[[Random, Draft], None]:
    def change(random: Random, draft: Draft) -> None:
        draft.body = random.choice(texts)

    return change


def _unasked_body(random: Random, draft: Draft) -> None:
    draft.body = random.choice(("{}", "x", "[]", "3"))
    draft.headers["Content-Type"] = random.choice(("application/json", "text/plain"))


_OTHER_TYPES = (
    "[]",
    "{}",
    "3",
    '"x"',
    "true",
    "null",
    "[1]",
    '["a"]',
    "1.5",
    '{"a":[]}',
    '{"a":{}}',
)
_BROKEN_JSON = (
    "{",
    "{bad",
    '{"a":"b"',
    '{"a":"b"} x',
    "{'a':'b'}",
    '{"a":"b",}',
    "NaN",
    "// c",
    "[",
    '"',
    "03",
)
_NUMBERS = (
    "0",
    "-1",
    "3.7",
    "3e0",
    "99999999999",
    "2147483648",
    "-2147483648",
    '"3"',
    '"abc"',
    " 3 ",
    "-0",
    "1e400",
)
_MAPS = (
    '{"a":1}',
    '{"a":1.50}',
    '{"a":true}',
    '{"a":1e2}',
    '{"":"x"}',
    '{"a":"b","a":"c"}',
    '{"a":"\\u00e9"}',
    '{"a":-0}',
    '{"a":12345678901234567890}',
    '{"a\\n":"b\\t"}',
)
_INFOS = (
    '{"allowedClusters":[]}',
    '{"allowedClusters":["nowhere"]}',
    '{"allowedClusters":null}',
    '{"adminRoles":["x"]}',
    '{"allowedClusters":["standalone"],"x":1}',
    '{"allowedClusters":["standalone","standalone"]}',
    '{"allowedClusters":"standalone"}',
    '{"allowedClusters":[" "]}',
    '{"allowedClusters":[1]}',
    '{"allowedClusters":["standalone"],"adminRoles":"x"}',
    '{"allowedClusters":["standalone"],"adminRoles":["a","a"]}',
    '{"allowedClusters":["standalone",null]}',
    '{"AllowedClusters":["standalone"]}',
    '{"allowedClusters":["standalone"],"adminRoles":[1,true]}',
    '{"allowedClusters":["standalone"],"adminRoles":[null]}',
)
_POLICIES = (
    '{"bundles":{"numBundles":0}}',
    '{"bundles":{"numBundles":-1}}',
    '{"bundles":{"numBundles":"4"}}',
    '{"bundles":null}',
    '{"bundles":4}',
    '{"replication_clusters":["nowhere"]}',
    '{"replication_clusters":[]}',
    '{"replication_clusters":"standalone"}',
    '{"x":1}',
    '{"bundles":{}}',
    '{"bundles":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"numBundles":2}}',
    '{"bundles":{"x":1}}',
    '{"bundles":{"boundaries":["0x00000000","0x80000000","0xffffffff"]}}',
    '{"deleted":true}',
    '{"bundles":{"numBundles":3.5}}',
    '{"bundles":{"numBundles":null}}',
    '{"replication_clusters":null}',
    '{"bundles":{"boundaries":[],"numBundles":3}}',
    '{"bundles":{"numBundles":true}}',
)
_METADATA = (
    '{"partitions":"3"}',
    '{"partitions":3.5}',
    '{"partitions":null}',
    '{"partitions":0}',
    '{"partitions":-2}',
    '{"partitions":3,"x":1}',
    '{"partitions":3,"properties":null}',
    '{"partitions":3,"properties":{"a":1}}',
    '{"partitions":2,"properties":[]}',
    '{"partitions":true}',
    '{"partitions":2,"deleted":true}',
    "{}",
    "3",
    "[]",
    '{"partitions":2,"properties":{}}',
    '{"partitions":3,"partitions":4}',
    '{"Partitions":3}',
    '{"partitions":99999999999}',
)


def _path_ends(word: str) -> Callable[[Draft], bool]:
    return lambda draft: draft.body is not None and draft.segments[-1] == word


def _body_for(root: str) -> Callable[[Draft], bool]:
    return lambda draft: draft.body is not None and root in draft.segments[:3]


def _metadata_body(draft: Draft) -> bool:
    return draft.headers.get("Content-Type") == METADATA_TYPE


def _number_body(draft: Draft) -> bool:
    return _path_ends("partitions")(draft) and not _metadata_body(draft)


def _map_body(draft: Draft) -> bool:
    topics = _body_for("persistent")(draft) or _body_for("non-persistent")(draft)
    return topics and draft.segments[-1] != "partitions"


# -- headers and methods --------------------------------------------------------------------------


def _content_type(random: Random, draft: Draft) -> None:
    draft.headers["Content-Type"] = random.choice(
        (
            "text/plain",
            "application/xml",
            "application/json; charset=utf-8",
            "text/json",
            "*/*",
            "bogus",
            "application/*",
            METADATA_TYPE,
            "application/x-www-form-urlencoded",
            "",
            "APPLICATION/JSON",
            "application/hal+json",
            "text/html",
            "application/javascript",
            "application/json;x",
        )
    )


def _no_content_type(_: Random, draft: Draft) -> None:
    draft.headers.pop("Content-Type", None)


def _accept(random: Random, draft: Draft) -> None:
    draft.headers["Accept"] = random.choice(
        (
            "text/html",
            "text/plain",
            "application/xml",
            "bogus",
            "",
            "application/json;q=0",
            "text/*",
            "*/*",
            "image/png, application/json",
            "application/*",
            "*",
            "text/html, */*;q=0.1",
            "application/hal+json",
            "application/json;charset=utf-8",
            "APPLICATION/JSON",
        )
    )


def _method(name: str) -> Callable[[Random, Draft], None]:
    def change(_: Random, draft: Draft) -> None:
        draft.method = name

    return change


def _unknown_method(random: Random, draft: Draft) -> None:
    draft.method = random.choice(("FOO", "get", "PROPFIND", "TRACE", "LINK"))


def _others_are_harmless(draft: Draft) -> bool:
    """Deleting a cluster would break the whole server."""
    return "clusters" not in draft.segments


def _other_method(random: Random, draft: Draft) -> None:
    others = [one for one in ("GET", "PUT", "POST", "DELETE") if one != draft.method]
    draft.method = random.choice(others)


ODDITIES = (
    Oddity("trailing slash", _changed(_trailing_slash)),
    Oddity("double slash", _changed(_double_slash)),
    Oddity("dot segment", _changed(_dot_segment)),
    Oddity("extra segment", _changed(_extra_segment)),
    Oddity("missing segment", _changed(_missing_segment)),
    Oddity("path of v1", _changed(_first_version), lambda draft: draft.segments[0] == "admin"),
    Oddity("other case", _changed(_other_case)),
    Oddity("encoded letter", _changed(_encoded)),
    Oddity("segment parameter", _changed(_parameter)),
    Oddity("unicode name", _changed(_renamed(_UNICODE)), _name),
    Oddity("signs in a name", _changed(_renamed(_SIGNS)), _name),
    Oddity("slash in a name", _changed(_renamed(_SLASHES)), _name),
    Oddity("broken encoding", _changed(_renamed(_BROKEN)), _name),
    Oddity("odd name", _changed(_renamed(_ODD_NAMES)), _name),
    Oddity("boolean as a word", _changed(_boolean_word)),
    Oddity("bad mode", _changed(_bad_mode), lambda draft: draft.segments[-1] == "topics"),
    Oddity("repeated parameter", _changed(_repeated)),
    Oddity("unknown parameter", _changed(_unknown_parameter)),
    Oddity("odd bundle", _changed(_odd_bundle), lambda draft: draft.method == "GET"),
    Oddity("odd key", _changed(_odd_key), lambda draft: bool(draft.query)),
    Oddity("odd query", _changed(_broken_query)),
    Oddity("no body", _changed(_body_of("")), _has_body),
    Oddity("other JSON type", _changed(_body_of(*_OTHER_TYPES)), _has_body),
    Oddity("broken JSON", _changed(_body_of(*_BROKEN_JSON)), _has_body),
    Oddity("odd number", _changed(_body_of(*_NUMBERS)), _number_body),
    Oddity("odd properties", _changed(_body_of(*_MAPS)), _map_body),
    Oddity("odd tenant", _changed(_body_of(*_INFOS)), _body_for("tenants")),
    Oddity("odd policies", _changed(_body_of(*_POLICIES)), _body_for("namespaces")),
    Oddity("odd metadata", _changed(_body_of(*_METADATA)), _metadata_body),
    Oddity(
        "body not asked for",
        _changed(_unasked_body),
        lambda draft: draft.method in ("GET", "DELETE"),
    ),
    Oddity("content type", _changed(_content_type), _has_body),
    Oddity("no content type", _changed(_no_content_type), _has_body),
    Oddity("accept", _changed(_accept)),
    Oddity("HEAD", _changed(_method("HEAD"))),
    Oddity("OPTIONS", _changed(_method("OPTIONS"))),
    Oddity("PATCH", _changed(_method("PATCH"))),
    Oddity("unknown method", _changed(_unknown_method)),
    Oddity("other method", _changed(_other_method), _others_are_harmless),
)
