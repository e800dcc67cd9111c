"""The whole decision about one row, from its metrics and those before it, as one file that other programs run."""
