"""A server and four clients of one process pass messages to and fro."""
import asyncio
import sys


async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()


async def ask(port, n):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    total = 0
    for i in range(n):
        writer.write(b"message %d\n" % i)
        total += len(await reader.readline())
    writer.close()
    return total


async def main(n):
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(sum(await asyncio.gather(*(ask(port, n) for _ in range(4)))))
    server.close()


asyncio.run(main(int(sys.argv[1])))
