"""Finds wheels where pip would, and reads parts of them. The builder's only door to the network."""
