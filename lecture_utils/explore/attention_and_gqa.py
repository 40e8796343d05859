"""Explorers of lesson 07."""
