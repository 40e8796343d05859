"""Explorers of lesson 08."""
