"""The server: tools over standard input and output, by the official SDK of the Model Context Protocol."""

import json
from pathlib import Path
from typing import Any

from gpucost import __version__
from gpucost.agents.tools import call, tools
from gpucost.arguments.files import without_contents
from gpucost.errors import GpuCostError, UsageError

_INSTRUCTIONS = (
    "Costs of training and serving models on rented or owned GPUs. Start with estimate (training) or inference"
    " (serving); write counts as 8b or 100b and days as 14d. Answers are short; `detail` names a part to get in full."
    " Ranges are 80 %; every price has the day on which it was seen. Beside the arguments shown, tools take every"
    " argument of the command of the same name."
)


def run(folder: Path | None = None) -> None:
    """Serve until the client closes the connection; files are read under the folder alone."""
    try:
        import anyio
        from mcp.server import Server
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise UsageError("gpucost mcp needs the extra mcp: pip install 'gpucost[mcp]'.") from None

    async def called(context: Any, parameters: Any) -> Any:
        return await _called(parameters, folder)

    server: Any = Server(
        "gpucost", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=_listed, on_call_tool=called
    )

    async def served() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(served)


async def _listed(context: Any, parameters: Any) -> Any:
    from mcp import types

    tools_ = [
        types.Tool(name=name, description=tool.description, input_schema=tool.schema) for name, tool in tools().items()
    ]
    return types.ListToolsResult(tools=tools_)


async def _called(parameters: Any, folder: Path | None) -> Any:
    """Answer a call in a thread, so that the connection stays awake; a refusal is a sentence, not a crash."""
    import anyio
    from mcp import types

    text, failed = await anyio.to_thread.run_sync(answered, parameters.name, parameters.arguments, folder)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


def answered(name: str, arguments: Any, folder: Path | None = None) -> tuple[str, bool]:
    """Return the answer as compact JSON, or the sentence of the refusal, and whether it is one."""
    try:
        answer = call(name, arguments, folder)
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":")), isinstance(
            answer, dict
        ) and "error" in answer
    except GpuCostError as error:
        return " ".join(without_contents(error, arguments).split())[:1000], True
    except Exception as error:  # a client gets a sentence whatever happens, and the server lives on
        return f"internal error: {type(error).__name__}: {str(error)[:200]}. Please report it.", True
