"""A broker's loaded topics: finding, creating, opening, closing and deleting topics."""
