"""Lesson 11: …"""

IMAGES = {}
