"""Send the test requests to destinations that DestinationTest rows ask for."""
