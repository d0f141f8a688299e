"""Everything that must hold. Folders with services of their own are packages, so that these end with them."""
