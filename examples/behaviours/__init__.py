"""Client behaviours outside loadgen's own set."""
