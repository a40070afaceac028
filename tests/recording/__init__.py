"""Programs that record real servers' answers for replay in tests."""
