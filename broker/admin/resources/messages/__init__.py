"""Admin requests about topics' messages, subscriptions, backlogs and statistics."""
