"""What a user declares and what follows from it by arithmetic: pydantic and pure functions.

Nothing here imports pulumi or does I/O.
"""
