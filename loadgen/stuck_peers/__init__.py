"""Peers that do not read beside healthy clients, as several scenarios have them."""
