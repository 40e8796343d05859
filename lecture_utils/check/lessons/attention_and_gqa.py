"""The exercises of lesson 7."""
