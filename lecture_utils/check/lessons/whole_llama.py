"""The exercises of lesson 11."""
