"""Coverage-guided fuzzing: targets, rules for every input, and the kept corpus."""
