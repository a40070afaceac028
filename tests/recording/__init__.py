"""Programs that record what real servers answer, for tests to replay."""
