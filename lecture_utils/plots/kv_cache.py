"""Lesson 08: …"""

IMAGES = {}
