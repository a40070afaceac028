"""``floodgate-admin namespaces``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from client.admin.commands.options import Option, words
from client.admin.commands.shows import Done, lines, names, set_members
from client.admin.commands.verbs import Verb, add, group

app = group("namespaces", "Namespaces, their policies and permissions.", "create acme/orders",
            "list acme", "VERB --help")  # fmt: skip


def _ranges(found: dict[str, Any]) -> list[str]:
    """Return the hash ranges between the boundaries in the answer."""
    return [f"{low}_{high}" for low, high in pairwise(found.get("boundaries") or [])]


_CREATION = {
    "bundles": Option(int, "--bundles -b", "Number of hash ranges (bundles).", None, None, least=1,
                      made=lambda number: number and {"numBundles": number}),
    "replication_clusters": words("--clusters -c", "Clusters that serve the namespace.", None),
}  # fmt: skip
add(
    app,
    Verb("list", "List the namespaces of a tenant.", "GET namespaces/{tenant}",
         "list the namespaces of {tenant}", names),
    Verb("create", "Create a namespace. Its tenant must exist.", "PUT namespaces/{namespace} {*}",
         "create the namespace {namespace}", Done("created {namespace}"), "\n-b 16", _CREATION),
    Verb("delete", "Delete a namespace that has no topics.",
         "DELETE namespaces/{namespace}?force={force}", "delete the namespace {namespace}",
         Done("deleted {namespace}")),
    Verb("policies", "Show the policies that a namespace sets; --json shows all.",
         "GET namespaces/{namespace}", "get the policies of {namespace}", set_members),
    Verb("topics", "List the topics of a namespace by the REST path of clients with HTTP lookup.",
         "GET namespaces/{namespace}/topics?mode={mode}&includeSystemTopic={include_system_topic}",
         "list the topics of {namespace}", names, "-m all"),
    Verb("bundles", "List the hash ranges (bundles) of a namespace, for `topics list -b`.",
         "GET namespaces/{namespace}/bundles", "get the bundles of {namespace}", lines(_ranges)),
    Verb("unload", "Close all topics of a namespace; their clients reconnect.",
         "PUT namespaces/{namespace}/{bundle}/unload", "unload {namespace}",
         Done("unloaded {namespace}")),
    Verb("clear-backlog", "Skip all messages of all subscriptions, or of those with one name.",
         "POST namespaces/{namespace}/{bundle}/clearBacklog/{only_sub}",
         "clear the backlogs of {namespace}", Done("cleared the backlogs of {namespace}"),
         "-s billing"),
    Verb("unsubscribe", "Delete all subscriptions with one name in a namespace.",
         "POST namespaces/{namespace}/{bundle}/unsubscribe/{subscriptions}",
         "delete the subscriptions {subscriptions} of {namespace}",
         Done("deleted {subscriptions}", "namespace"), "-s billing"),
)  # fmt: skip
