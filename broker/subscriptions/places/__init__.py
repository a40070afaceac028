"""What is kept for each of very many entries, in numbers and in small pieces."""
