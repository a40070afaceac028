"""Makes topics by the million, drives clients by the thousand, and reports what happened."""
