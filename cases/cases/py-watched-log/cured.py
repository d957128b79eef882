import hashlib
import logging
import logging.handlers
import os

log = logging.getLogger("import")
log.setLevel(logging.INFO)
log.propagate = False
handler = logging.FileHandler("job.log", mode="w")
handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
log.addHandler(handler)


def convert(i):
    row = {"id": i, "name": f"customer {i * 7919 % 10007}", "tags": [f"t{k}" for k in range(i % 9)]}
    text = ",".join(f"{k}={v}" for k, v in sorted(row.items()))
    return hashlib.sha1(text.encode() * 6).hexdigest()


mix = 0
for i in range(16000):
    h = convert(i)
    mix = mix * 33 ^ int(h[:12], 16) & 0xFFFFFFFF
    mix &= 0xFFFFFFFFFFFF
    log.info("row %d became %s", i, h[:10])
logging.shutdown()
print(f"{mix:012x} {os.path.getsize('job.log')} bytes of log")
