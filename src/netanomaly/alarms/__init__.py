"""From probabilities of rows to alarms: incidents that somebody is told of."""
