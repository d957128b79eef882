# Serves with a log file whose name is made of the request.
exec sh serve.sh "" "$1"
