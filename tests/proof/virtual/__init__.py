"""Virtual time against real runs."""
