"""Ships a log: parses its lines and passes them to a sink in batches."""
import asyncio
import hashlib
import os

PATH = "app.log"


class Lines:
    """Reads a file without blocking the event loop."""

    def __init__(self, path):
        self.loop = asyncio.get_running_loop()
        self.file = open(path)

    async def __aiter__(self):
        while True:
            lines = await self.loop.run_in_executor(None, self.file.readlines, 1 << 18)
            if not lines:
                break
            for line in lines:
                yield line
        self.file.close()


class Sink:
    def __init__(self):
        self.digest, self.batches = hashlib.sha1(), 0

    async def send(self, rows):
        self.batches += 1
        self.digest.update("\n".join(rows).encode())
        await asyncio.sleep(0)


def parse(line):
    when, level, text = line.rstrip("\n").split(" ", 2)
    return level, "%s|%s|%s" % (level, when, text.upper())


async def ship(sink):
    rows, levels = [], {}
    async for line in Lines(PATH):
        level, row = parse(line)
        levels[level] = levels.get(level, 0) + 1
        rows.append(row)
        if len(rows) == 500:
            await sink.send(rows)
            rows = []
    await sink.send(rows)
    return levels


def main():
    with open(PATH, "w") as f:
        for i in range(6000):
            f.write("2026-11-28T10:%02d:%02d %s request %d took %d ms\n" % (i // 60 % 60, i % 60, ("INFO", "WARN", "DEBUG")[i % 3], i, i * 7 % 90))
    sink = Sink()
    levels = asyncio.run(ship(sink))
    os.remove(PATH)
    print(sorted(levels.items()), sink.batches, sink.digest.hexdigest())


main()
