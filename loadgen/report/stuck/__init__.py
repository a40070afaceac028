"""The report's section about stuck peers."""
