"""Topic discovery for pattern consumers: schedules as in several client libraries, watches."""
