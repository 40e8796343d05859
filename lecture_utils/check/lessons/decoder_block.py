"""The exercises of lesson 9."""
