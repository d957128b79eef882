# Waits a moment, as a script between two steps of a deployment does.
echo before
sleep 0.7
echo after
