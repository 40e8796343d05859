"""Lesson 00: …"""

IMAGES = {}
