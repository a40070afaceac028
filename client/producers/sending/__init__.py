"""Path of a producer's messages from the program's call to the broker's receipt."""
