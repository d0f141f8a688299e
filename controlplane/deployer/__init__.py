"""The Deployer: brings a release of the data plane out, cell by cell, and takes it back by itself if it is bad."""
