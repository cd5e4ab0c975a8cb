"""Builds the pinned Pulumi toolchain from package registries alone."""
