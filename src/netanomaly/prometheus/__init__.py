"""Prometheus and its Alertmanager: rows from the one, incidents to the other, and what is told of a watch at work."""
