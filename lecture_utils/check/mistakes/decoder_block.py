"""Mistakes in the exercises of lesson 9."""
