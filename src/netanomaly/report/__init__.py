"""The report: one HTML file that says what happened, on which series, from when to when, and how sure that is."""
