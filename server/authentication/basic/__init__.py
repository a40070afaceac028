"""Names and passwords as credentials: password files, hashes, and bounds on guessing."""
