"""Step 8: a distribution → a version branch of a hub: all is planned first, then the branch moves in one step."""
