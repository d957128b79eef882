"""Applications for gunicorn (WSGI) and uvicorn (ASGI) that read the file $FILE for each request."""
import os


def length():
    with open(os.environ["FILE"], "rb") as f:
        return b"%d bytes\n" % len(f.read())


def wsgi(environ, start_response):
    body = length()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    body = length()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
