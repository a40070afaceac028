"""Odd names of topics and namespaces."""

from random import Random

from tests.differential.cases import NAMESPACE, NAMESPACE_TOKEN, World

WORDS = ("alpha", "beta-1", "gamma.x", "delta_7", "Eps", "zeta=1", "eta:2", "t-1", "t-2", "a", "7")
ODD_WORDS = (
    "ünï-çødé",
    "topic with space",
    "emoji-😀",
    "日本",
    "x%2Fy",
    "plus+and&",
    "quote'\"",
    "back\\slash",
    "q?x=1",
    "hash#1",
    "{brace}",
    "a,b",
    "e\u0301",
    "__odd",
    "-partition",
    "$dollar^",
)
DOMAINS = ("persistent://", "non-persistent://")
ODD_DOMAINS = (
    "PERSISTENT://",
    "Persistent://",
    "NON-PERSISTENT://",
    "Non-Persistent://",
    "non_persistent://",
    "unknown://",
    "://",
    "persistent:/",
    "persistent:///",
    "persistent//",
    " persistent://",
    "persistent ://",
    "http://",
    "topic://",
    "persistent://persistent://",
    "pulsar://",
    "PER\u017fISTENT://",
)
ODD_NAMESPACES = (
    f"{NAMESPACE}/",
    f"/{NAMESPACE}",
    f"{NAMESPACE}//",
    f"public//{NAMESPACE_TOKEN}",
    "",
    "/",
    "//",
    "public",
    "public/",
    "/x",
    " ",
    f"public/global/{NAMESPACE_TOKEN}",
    f"public/standalone/{NAMESPACE_TOKEN}",
    f"{NAMESPACE}/x",
    f"{NAMESPACE}/x/y",
    "public/missing-ns",
    "missing-tenant/missing-ns",
    "public/ünï",
    "ünï/x",
    "public/a b",
    "public/a%20b",
    f"public/{NAMESPACE_TOKEN} ",
    f" {NAMESPACE}",
    f"{NAMESPACE}\n",
    "public/..",
    "./.",
    "public/*",
    "public/x\u0000y",
    "public/" + "n" * 255,
    "public/" + "n" * 3_000,
    "t" * 300 + "/x",
    "public/x?y",
    "public/日本",
    "PUBLIC/x",
    f"persistent://{NAMESPACE}",
    f"public\\{NAMESPACE_TOKEN}",
    "public/a:b=c.d-e_f",
    "public/😀",
)
PARTITIONS = (
    "-partition-0",
    "-partition-1",
    "-partition-2",
    "-partition-3",
    "-partition-9",
    "-partition-00",
    "-partition-01",
    "-partition--1",
    "-partition-",
    "-partition-x",
    "-partition-1x",
    "-partition-+1",
    "-partition- 1",
    "-partition-2147483647",
    "-partition-2147483648",
    "-partition-99999999999999999999",
    "-partition-0-partition-0",
    "-partition-1-partition-x",
    "-partition-0-partition-1",
    "-partition-٣",
    "-PARTITION-0",
    "-partition-0 ",
)
ODD_LOCALS = (
    "",
    " ",
    "\t",
    "x/y",
    "/",
    "x/",
    "/x",
    ".",
    "..",
    "-partition-0",
    "-partition-3",
    "x\u0000y",
    "x\ny",
    "\u00a0",
    "\u2003",
    "\u200b",
    "\ufeff",
    "__change_events",
    "__transaction_buffer_snapshot",
    "__transaction_pending_ack",
    "x-__transaction_pending_ack",
    "long-" + "l" * 300,
    "long-" + "l" * 3_000,
    "*",
    "://",
    "a://b",
    "persistent",
    "DLQ-retry",
)


def world(random: Random) -> World:
    """Return contents for a namespace: a few topics of each sort, some with odd names."""
    words = random.sample(WORDS, len(WORDS))
    odd = random.sample([word for word in ODD_WORDS if "\\" not in word], 2)
    return World(
        topics=(*words[: random.randrange(1, 5)], *odd[: random.randrange(0, 3)]),
        partitioned=tuple(
            (f"p{count}", count) for count in random.sample((1, 2, 3, 4), random.randrange(1, 3))
        ),
        non_persistent=tuple(f"np-{word}" for word in words[5 : 5 + random.randrange(0, 3)]),
    )


def namespace(random: Random) -> str:
    """Return a namespace, mostly the case's own."""
    return NAMESPACE if random.random() < 0.8 else random.choice(ODD_NAMESPACES)


def known_local(random: Random, known: World) -> str:
    """Return the local name of an existing topic or partition."""
    partitioned = [name for name, _ in known.partitioned]
    partitions = [
        f"{name}-partition-{index}" for name, count in known.partitioned for index in range(count)
    ]
    return random.choice([*known.topics, *partitioned, *partitions, *known.non_persistent, "none"])


def local_name(random: Random, known: World) -> str:
    chance = random.random()
    if chance < 0.4:
        return known_local(random, known)
    if chance < 0.7:
        bases = [name for name, _ in known.partitioned] + list(known.topics)
        base = random.choice([*bases, *bases, *known.non_persistent, "none"])
        return base + random.choice(PARTITIONS)
    if chance < 0.85:
        return random.choice(WORDS + ODD_WORDS)
    return random.choice(ODD_LOCALS)


def topic_name(random: Random, known: World) -> str:
    """Return a topic's name: complete, short, or malformed."""
    chance = random.random()
    if chance < 0.08:
        return local_name(random, known)
    if chance < 0.14:
        return f"{namespace(random)}/{local_name(random, known)}"
    domain = random.choice(DOMAINS if random.random() < 0.8 else ODD_DOMAINS)
    if chance < 0.16:
        return f"{domain}{namespace(random)}"
    where = NAMESPACE if random.random() < 0.6 else namespace(random)
    return f"{domain}{where}/{local_name(random, known)}"
