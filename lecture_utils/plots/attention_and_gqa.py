"""Lesson 07: …"""

IMAGES = {}
