"""The Deployer: rolls a release of the data plane out, cell by cell, and rolls it back automatically if it is bad."""
