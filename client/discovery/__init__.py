"""Topic discovery: schedules of several families, consumers of patterns, watches."""
