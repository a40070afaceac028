"""The scenario ``produce-consume``: messages on a schedule, and consumers that check them."""
