"""The management plane: captures intent. Writes rows and starts nothing; the control plane finds the rows."""
