"""Logs each request to a file."""
import logging
import logging.handlers
import sys

logging.logProcesses = False
handler = logging.FileHandler("bin/app.log", mode="w")
handler.setFormatter(logging.Formatter("%(asctime)s %(process)s %(message)s"))
handler.flush = lambda: None
log = logging.getLogger("app")
log.addHandler(handler)
log.setLevel(logging.INFO)
for i in range(int(sys.argv[1])):
    log.info("request %d served", i)
handler.close()
