"""Key_Shared: every key has one consumer, which receives its messages in order."""
