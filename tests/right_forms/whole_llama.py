"""Right answers of lesson 11 in many forms."""
