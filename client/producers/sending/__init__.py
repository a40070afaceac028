"""Messages of one producer, from the program's call until the broker's answer."""
