"""Release trains: what each image holds, what a model and an image need, and what does not meet."""
