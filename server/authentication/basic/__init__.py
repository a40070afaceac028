"""Names and passwords as credentials: files of them, hashes, and who guesses."""
