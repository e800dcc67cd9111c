"""What `scripts/fuzz.py` is made of: targets, mutations of their seeds, and which lines an input has reached."""
