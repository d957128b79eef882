"""A mail queue: accepts mails one by one and acknowledges each only when it is safe on disk."""
import json
import os
import shutil

QUEUE = "outbox"


class Outbox:
    def __init__(self, path):
        self.path = path
        os.makedirs(path)
        self.dir = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.next = 1

    def accept(self, mail):
        """Returns the id; from then on the mail must not be lost, whatever happens."""
        ident = "%06d" % self.next
        self.next += 1
        tmp = os.path.join(self.path, ident + ".tmp")
        fd = os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, json.dumps(mail).encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(tmp, os.path.join(self.path, ident + ".json"))
        os.fsync(self.dir)
        return ident

    def mails(self):
        for name in sorted(os.listdir(self.path)):
            with open(os.path.join(self.path, name)) as f:
                yield name, json.load(f)

    def close(self):
        os.close(self.dir)


def client(outbox, n):
    acknowledged = []
    for i in range(n):
        mail = {"to": "user%d@example.org" % (i * 7 % 50), "subject": "invoice %d" % i, "body": "x" * (i % 300)}
        acknowledged.append(outbox.accept(mail))  # the sender forgets the mail now
    return acknowledged


def main():
    outbox = Outbox(QUEUE)
    try:
        ids = client(outbox, 60)
        found = [name for name, mail in outbox.mails() if mail["subject"]]
        print("acknowledged %d, on disk %d, last %s" % (len(ids), len(found), found[-1]))
    finally:
        outbox.close()
        shutil.rmtree(QUEUE)


main()
