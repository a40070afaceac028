"""Assignment of keys to the consumers of a Key_Shared subscription.

Each key has one consumer, which receives its messages in order.
"""
