"""Topic discovery: schedules of several client families, pattern consumers, watches."""
