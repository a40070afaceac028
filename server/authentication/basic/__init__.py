"""Authentication by user name and password: password files, hashes, and limits on guessing."""
