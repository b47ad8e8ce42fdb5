"""Speaks to people: progress and notes on stderr, results on stdout."""
