"""Topics' schemas: storing versions, and checking their compatibility."""
