"""What a person sees while a run goes on: one screen, or a line a second."""
