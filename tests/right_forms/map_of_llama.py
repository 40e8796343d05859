"""Right answers of lesson 0 in many forms."""
