"""Reports on the memory limiter for operators (``/admin/v2/floodgate/limiter``)."""
