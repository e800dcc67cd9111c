"""Trackers: whoever is told how a training goes, beside the run directory."""
