"""The path of a producer's messages from the application's call to the broker's receipt."""
