"""Labels that a model, trained on other series, finds hard to believe."""
