"""Exports of known tools that are no wide table: recognised by their content, and turned into one."""
