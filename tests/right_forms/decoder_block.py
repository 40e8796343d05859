"""Right answers of lesson 9 in many forms."""
