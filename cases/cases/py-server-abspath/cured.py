"""Asks where it is once."""
import os
from server import N, serve

ROOT = os.path.abspath("pages")
serve(N, lambda name: ROOT + "/" + name)
