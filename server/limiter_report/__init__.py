"""Limiter reports for operators: `/admin/v2/floodgate/limiter` as JSON and as a table."""
