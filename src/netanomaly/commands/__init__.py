"""One file per command: its options, and what it calls. Whatever is heavy is imported when the command runs."""
