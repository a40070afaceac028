"""Updates of watchers: what they hold, and how they are written."""
