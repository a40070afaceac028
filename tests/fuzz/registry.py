"""All targets. A new target is a module and a line here."""

from tests.fuzz.target import Target

HALF_A_MILLION, FIFTY_THOUSAND = 500_000, 50_000

TARGETS = {
    "frames": Target(
        "Frame decoder",
        "tests.fuzz.targets.frames",
        ("proto",),
        (
            "proto/frames.py",
            "proto/parsing/*.py",
            "proto/transport/frame_intake.py",
            "proto/command_log.py",
        ),
        7_400_000,
        256,
        compares=True,
    ),
    "broker_commands": Target(
        "Commands of the broker",
        "tests.fuzz.targets.broker_commands",
        ("broker", "proto", "server"),
        ("broker/cnx.py", "broker/commands/*.py", "broker/messages/subscriptions/*.py"),
        HALF_A_MILLION,
        256,
    ),
    "configuration": Target(
        "Configuration files",
        "tests.fuzz.targets.configuration",
        ("broker", "proxy", "server", "loadgen"),
        (
            "broker/configuration/*.py",
            "proxy/config.py",
            "server/configuration/*.py",
            "loadgen/documents/*.py",
        ),
        HALF_A_MILLION,
        500,
    ),
    "imports": Target(
        "Imports of Parquet and text",
        "tests.fuzz.targets.imports",
        ("broker",),
        ("broker/imports/*.py", "broker/stores/memory.py", "broker/stores/property_rows.py"),
        FIFTY_THOUSAND,
        600,
    ),
    "recovery": Target(
        "Recovery of SQLite files",
        "tests.fuzz.targets.recovery",
        ("broker",),
        ("broker/messages/stores/sqlite/*.py", "broker/stores/sqlite/*.py"),
        FIFTY_THOUSAND,
        800,
    ),
    "tokens": Target(
        "Tokens and other credentials",
        "tests.fuzz.targets.tokens",
        ("server",),
        ("server/authentication/*.py", "server/configuration/secret_sources.py"),
        HALF_A_MILLION,
        300,
    ),
    "rest": Target(
        "REST of the broker",
        "tests.fuzz.targets.rest",
        ("broker", "server"),
        ("broker/admin/*.py", "server/http.py", "server/limits/http.py", "server/cross_site.py"),
        HALF_A_MILLION,
        500,
    ),
    "proxy_commands": Target(
        "Commands and pipes of the proxy",
        "tests.fuzz.targets.proxy_commands",
        ("proxy", "proto", "server", "client"),
        ("proxy/cnx.py", "proxy/commands/*.py", "proxy/pipe/*.py", "proxy/listing/*.py"),
        HALF_A_MILLION,
        256,
    ),
}
