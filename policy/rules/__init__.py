"""The rules, one per file: each judges what the engine shows by its namesake in `models.rules`."""
