"""Where topics live: one interface, several stores."""
