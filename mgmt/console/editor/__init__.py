"""The pipe editor: a spec as rows of fields, what becomes of them, and what a dry run of them shows."""
