"""The Provisioner: places pipes, makes topics, publishes control records, submits cells, brings revisions live."""
