"""Reads what users declare from the project's files, and hands it to `models`."""
