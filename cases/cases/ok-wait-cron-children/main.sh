# Runs the steps of a build, each of which needs the one before it.
for step in 1 2 3 4; do
    /usr/bin/python3 -c "
import time
until = time.perf_counter() + 0.08
while time.perf_counter() < until: pass
print('step $step')"
done
