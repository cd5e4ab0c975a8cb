"""Simulated GPUs: a directory per GPU, a locked file per process that holds memory on it.

It is installed on the simulated host as its "driver" and mounted into containers by the stand-in
for NVIDIA's container hook, as the real hook mounts the driver's libraries. Standard library only,
Python 3.10 or newer.
"""
