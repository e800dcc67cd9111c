"""Losses, schedule, loops, and the trainer that holds them together."""
