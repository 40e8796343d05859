"""The exercises of lesson 0."""
