"""Lists directories by going into each."""
import os
import sys

home = os.getcwd()
total = 0
for i in range(int(sys.argv[1])):
    os.chdir("/usr")
    total += os.path.isdir("bin")
    os.chdir(home)
print(total)
