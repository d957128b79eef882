"""A client of the protocol's own makers (PyPI's mcp) that asks systoll's tools; prints what it got as JSON.

  agent_client.py SYSTOLL auto|legacy PROGRAM…
"""
import asyncio
import json
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def ask(systoll, mode, program):
    got = {"progress": []}

    async def told(done, of, message):
        got["progress"].append([done, of, message])

    async with Client(stdio_client(StdioServerParameters(command=systoll, args=["mcp"])), mode=mode) as client:
        got["protocol"] = client.protocol_version
        listed = (await client.list_tools()).tools
        got["tools"] = {t.name: t.annotations.model_dump() for t in listed}
        run = await client.call_tool("run", {"command": program, "env": {"TZ": None}}, progress_callback=told)
        got["run"] = run.structured_content
        got["text"] = json.loads(run.content[0].text)
        recording = got["run"]["recording"]
        nth = got["run"]["findings"][0]["rows"][0]
        part = await client.call_tool("report", {"recording": recording, "at": "/rows", "offset": nth, "limit": 1})
        got["row"] = part.structured_content
        explained = await client.call_tool("explain", {"cause": got["run"]["findings"][0]["cause"], "language": "c"})
        got["explain"] = explained.content[0].text
        same = await client.call_tool("diff", {"old": [recording], "new": [recording]})
        got["diff"] = same.structured_content
        wrong = [("run", {"command": "ls -l"}), ("run", {"command": ["/no/such"]}), ("report", {"recording": "/etc/passwd"}),
                 ("explain", {"cause": "--help"}), ("prove", {"command": ["true"]}), ("run", {"comand": ["true"]})]
        got["wrong"] = []
        for tool, arguments in wrong:
            r = await client.call_tool(tool, arguments)
            got["wrong"].append([r.is_error, r.content[0].text])
    print(json.dumps(got))


asyncio.run(ask(sys.argv[1], sys.argv[2], sys.argv[3:]))
