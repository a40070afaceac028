"""Shows a run while it goes on: one screen, or a line a second."""
