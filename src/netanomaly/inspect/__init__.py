"""First contact: what a file, or a bundle, holds. Guesses are made here and nowhere else, each told with its reason."""
