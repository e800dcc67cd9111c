"""Rows as they come, day and night: lines in, answers out, and a state to go on from."""
