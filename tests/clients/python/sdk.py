"""The official Python SDK: `auto` speaks 2026-07-28, `legacy` 2025-11-25. Commands as in node/agent.mjs."""

import json
import sys
from urllib.parse import parse_qs, urlsplit

import anyio
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

URL, MODE = sys.argv[1], sys.argv[2]
REDIRECT = "http://127.0.0.1:7/callback"


def say(message):
    print(json.dumps(message), flush=True)


async def hear():
    line = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return json.loads(line) if line else None


class Memory:
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def redirected(url):
    say({"authorize": url})


async def called_back():
    query = parse_qs(urlsplit((await hear())["redirect"]).query)
    first = {name: values[0] for name, values in query.items()}
    return AuthorizationCodeResult(code=first["code"], state=first.get("state"), iss=first.get("iss"))


async def call(client, command, scopes):
    with anyio.CancelScope() as scope:
        scopes[command["id"]] = scope
        try:
            result = await client.call_tool(command["name"], command["arguments"], read_timeout_seconds=120)
            say({"id": command["id"], "result": result.model_dump(mode="json", by_alias=True, exclude_none=True)})
        except Exception as error:
            say({"id": command["id"], "error": str(error)})
    if scope.cancelled_caught:
        say({"id": command["id"], "error": "cancelled"})


async def main():
    assert (await hear())["do"] == "connect"
    auth = OAuthClientProvider(
        URL,
        OAuthClientMetadata(client_name="an official SDK", redirect_uris=[REDIRECT], token_endpoint_auth_method="none"),
        Memory(),
        redirected,
        called_back,
    )
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode=MODE) as client:
            say({"connected": client.session.protocol_version})
            scopes = {}
            async with anyio.create_task_group() as tasks:
                while command := await hear():
                    match command["do"]:
                        case "list":
                            say({"tools": [tool.name for tool in (await client.list_tools()).tools]})
                        case "call":
                            tasks.start_soon(call, client, command, scopes)
                        case "cancel":
                            scopes[command["id"]].cancel()
                tasks.cancel_scope.cancel()


anyio.run(main)
