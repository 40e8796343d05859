"""Right answers of lesson 7 in many forms."""
