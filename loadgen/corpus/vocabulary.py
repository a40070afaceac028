"""The vocabulary of synthetic topics: invented names that read like those of a large cluster."""

from __future__ import annotations

TENANTS = (
    "payments", "orders", "logistics", "identity", "catalog", "telemetry", "marketing", "billing",
    "search", "fraud", "inventory", "pricing", "support", "mobility", "media", "insurance",
    "loyalty", "warehouse", "checkout", "messaging", "analytics", "devices", "booking", "content",
)  # fmt: skip
APPLICATIONS = (
    "ledger", "gateway", "events", "ingest", "audit", "sync", "stream", "export",
    "history", "alerts", "profile", "session", "routing", "metering", "archive", "staging",
)  # fmt: skip
REGIONS = ("eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east")
SUBJECTS = (
    "order", "invoice", "payment", "refund", "shipment", "parcel", "customer", "account",
    "device", "sensor", "vehicle", "session", "basket", "price", "stock", "ticket",
    "message", "profile", "contract", "claim", "voucher", "route", "driver", "meter",
)  # fmt: skip
EVENTS = (
    "created", "updated", "deleted", "accepted", "rejected", "settled", "shipped", "returned",
    "opened", "closed", "started", "stopped", "reading", "snapshot", "command", "retry",
)  # fmt: skip
SQUADS = ("core", "edge", "data", "platform", "risk", "growth", "partners", "mobile")
ENVIRONMENTS = ("prod", "staging", "dev", "test")
TIERS = ("gold", "silver", "bronze")
