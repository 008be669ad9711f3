"""The programs, one family a file: each beside its loops, graphs and texts for the peers that need them."""
