"""Gives each row a random id, and prints how many differ."""
import sys
import uuid

n = int(sys.argv[1])
print(len({uuid.uuid4() for _ in range(n)}))
