"""The classifier: encoder, attention as a look-up in the recent past, fully connected head.

Shapes in this package: B batch, S rows in (history and targets), T target rows, L rows of a window,
C channels, D width of an embedding, H heads, d width of a head, K classes.
"""
