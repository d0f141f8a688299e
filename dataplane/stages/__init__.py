"""The pure steps of a pipe's stages: each is a closure over its settings that changes one decoded JSON body."""
