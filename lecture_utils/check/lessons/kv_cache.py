"""The exercises of lesson 8."""
