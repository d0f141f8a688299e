"""The pipe editor: a spec as rows of fields, its actions, and its dry run."""
