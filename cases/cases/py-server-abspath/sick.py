"""A server that makes the names that each request leads to absolute."""
import os
from server import N, serve

serve(N, lambda name: os.path.abspath("pages/" + name))
