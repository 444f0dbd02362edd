"""A template for each language: files(tables) gives the generated half of its client, by their names in clients/."""
from . import go, java, node, php, python

ALL = [python, node, go, java, php]
