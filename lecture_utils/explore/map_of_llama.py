"""Explorers of lesson 00."""
