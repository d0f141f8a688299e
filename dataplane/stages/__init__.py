"""The pure steps of a pipe's stages: each is a closure over its own settings that changes one decoded JSON body."""
