"""Starts helpers, gives each time to settle, and asks it for a line."""
import subprocess, sys, time

n, cured = int(sys.argv[1]), len(sys.argv) > 2
for i in range(n):
    helper = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    if not cured:
        time.sleep(0.1)
    helper.stdin.write(b"ready?\n")
    helper.stdout.readline()
    helper.stdin.close()
    helper.wait()
print(n, "helpers")
