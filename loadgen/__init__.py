"""Topics by the million, clients by the thousand, and reports of both."""
