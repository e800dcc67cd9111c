"""From files to per-row input channels: read strictly, place on a grid, split honestly."""
