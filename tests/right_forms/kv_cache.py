"""Right answers of lesson 8 in many forms."""
