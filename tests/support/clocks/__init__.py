"""Hand-driven clocks, and waiting until no task is runnable."""
