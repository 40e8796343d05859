"""Lesson 09: …"""

IMAGES = {}
