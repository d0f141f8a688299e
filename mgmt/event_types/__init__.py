"""Event types of sources: the subjects of the schema registry that their events must fit."""
