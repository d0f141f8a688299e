"""Management plane: stores intent as rows and starts nothing; the control plane finds the rows."""
