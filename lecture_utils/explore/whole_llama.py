"""Explorers of lesson 11."""
