"""Coverage-guided fuzzing: targets, what must hold for every input, and the corpus that is kept."""
