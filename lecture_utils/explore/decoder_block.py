"""Explorers of lesson 09."""
