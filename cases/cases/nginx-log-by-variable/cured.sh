# Serves likewise, with the log files' descriptors kept.
exec sh serve.sh "open_log_file_cache max=10; open_file_cache max=10;" "$1"
