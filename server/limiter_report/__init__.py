"""The limiter as an operator sees it: `/admin/v2/floodgate/limiter` as JSON and as a table."""
