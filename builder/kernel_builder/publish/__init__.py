"""A distribution → a version branch of a hub: everything is planned first, then the branch moves in one step."""
