"""Updates of watched sets: their encoding, permits and writes."""
