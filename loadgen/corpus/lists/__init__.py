"""An operator's own list of topics, made a corpus."""
