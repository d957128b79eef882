"""Exports a table from a service page by page; the service gives the next page's cursor with each page."""
import hashlib
import json
import socket
import threading

ROWS = [{"id": i, "name": "article %d" % (i * 7919 % 1000)} for i in range(6000)]
PAGE = 20


def cursor_for(position):
    return hashlib.sha256(b"secret%d" % position).hexdigest()[:16]


def service(conn):
    positions = {"": 0}
    with conn, conn.makefile("rw") as f:
        for line in f:
            at = positions[line.strip()]
            page = ROWS[at:at + PAGE]
            nxt = cursor_for(at + PAGE) if at + PAGE < len(ROWS) else None
            if nxt:
                positions[nxt] = at + PAGE
            f.write(json.dumps({"rows": page, "next": nxt}) + "\n")
            f.flush()


class Client:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.file = self.sock.makefile("rw")

    def pages(self):
        cursor = ""
        while cursor is not None:
            self.file.write(cursor + "\n")
            self.file.flush()
            answer = json.loads(self.file.readline())
            yield answer["rows"]
            cursor = answer["next"]

    def close(self):
        self.file.close()
        self.sock.close()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    client = Client(listener.getsockname()[1])
    conn, _ = listener.accept()
    t = threading.Thread(target=service, args=(conn,))
    t.start()
    rows, pages, digest = 0, 0, hashlib.sha1()
    for page in client.pages():
        pages += 1
        rows += len(page)
        digest.update(json.dumps(page).encode())
    client.close()
    t.join()
    listener.close()
    print(rows, "rows,", pages, "pages,", digest.hexdigest())


main()
